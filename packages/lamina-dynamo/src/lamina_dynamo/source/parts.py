"""Steps into functions, methods and tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .base import Source, Step
from .steps import AttributeStep, DictItem, InstanceAttr

if TYPE_CHECKING:
    from ..emit import Emitter

__all__ = [
    "FunctionCell",
    "FunctionCode",
    "FunctionDefault",
    "FunctionGlobals",
    "FunctionKwDefault",
    "Grad",
    "MethodFunction",
    "MethodSelf",
    "TensorProperty",
    "module_entry",
]


@dataclass(frozen=True, slots=True)
class FunctionCode(AttributeStep):
    """`base.__code__`."""

    base: Source
    opcode: ClassVar[str] = "function_code"
    attribute: ClassVar[str] = "__code__"


@dataclass(frozen=True, slots=True)
class FunctionGlobals(AttributeStep):
    """`base.__globals__`: the globals of an inlined function; go on with `DictItem`."""

    base: Source
    opcode: ClassVar[str] = "function_globals"
    attribute: ClassVar[str] = "__globals__"


class _FunctionEntry(Step):
    """An entry of a tuple or dict that hangs on a function."""

    __slots__ = ()
    attribute: ClassVar[str] = ""
    entry: int | str

    def step(self) -> tuple[str, object]:
        """Name and operand."""
        return self.opcode, self.entry

    def suffix(self) -> str:
        """The step as text."""
        return f".{self.attribute}[{self.entry!r}]"

    def read(self, value: object) -> object:
        """Make the step from this value of the base."""
        return getattr(value, self.attribute)[self.entry]

    def emit(self, emitter: Emitter) -> None:
        """The base, then the step."""
        self.base.emit(emitter)
        emitter.load_attr(self.attribute)
        emitter.load_const(self.entry)
        emitter.load_item()


@dataclass(frozen=True, slots=True)
class FunctionDefault(_FunctionEntry):
    """`base.__defaults__[entry]`."""

    base: Source
    entry: int
    opcode: ClassVar[str] = "function_default"
    attribute: ClassVar[str] = "__defaults__"


@dataclass(frozen=True, slots=True)
class FunctionKwDefault(_FunctionEntry):
    """`base.__kwdefaults__[entry]`."""

    base: Source
    entry: str
    opcode: ClassVar[str] = "function_kwdefault"
    attribute: ClassVar[str] = "__kwdefaults__"


@dataclass(frozen=True, slots=True)
class FunctionCell(_FunctionEntry):
    """`base.__closure__[entry]`: the cell object; its value is `CellContents` of it."""

    base: Source
    entry: int
    opcode: ClassVar[str] = "function_cell"
    attribute: ClassVar[str] = "__closure__"


@dataclass(frozen=True, slots=True)
class MethodFunction(AttributeStep):
    """`base.__func__` of a bound method."""

    base: Source
    opcode: ClassVar[str] = "method_function"
    attribute: ClassVar[str] = "__func__"


@dataclass(frozen=True, slots=True)
class MethodSelf(AttributeStep):
    """`base.__self__` of a bound method."""

    base: Source
    opcode: ClassVar[str] = "method_self"
    attribute: ClassVar[str] = "__self__"


@dataclass(frozen=True, slots=True)
class Grad(AttributeStep):
    """`base.grad` of a tensor."""

    base: Source
    opcode: ClassVar[str] = "grad"
    attribute: ClassVar[str] = "grad"


@dataclass(frozen=True, slots=True)
class TensorProperty(Step):
    """An int of a tensor.

    ``"size"`` or ``"stride"`` (in elements) of `dim`, ``"storage_offset"``, ``"numel"`` or ``"ndim"``.
    """

    base: Source
    attribute: str
    dim: int = 0
    opcode: ClassVar[str] = "tensor_property"

    def step(self) -> tuple[str, object]:
        """Property and dimension."""
        return self.opcode, (self.attribute, self.dim)

    def suffix(self) -> str:
        """``.size(0)``."""
        return f".{self.attribute}({self.dim})" if self.attribute in ("size", "stride") else f".{self.attribute}()"

    def read(self, value: object) -> object:
        """The property, by the names that tensors and NumPy arrays share."""
        if self.attribute == "size":
            return value.shape[self.dim]  # type: ignore[attr-defined]
        if self.attribute == "ndim":
            return value.ndim  # type: ignore[attr-defined]
        if hasattr(value, "strides") and self.attribute == "stride":
            return value.strides[self.dim] // value.itemsize  # type: ignore[attr-defined]
        if self.attribute == "numel":
            return value.numel() if hasattr(value, "numel") else value.size  # type: ignore[attr-defined]
        return getattr(value, self.attribute)(*((self.dim,) if self.attribute == "stride" else ()))

    def emit(self, emitter: Emitter) -> None:
        """`x.shape[dim]` for sizes, the C reader for the rest."""
        if self.attribute == "size":
            self.base.emit(emitter)
            emitter.load_attr("shape")
            emitter.load_const(self.dim)
            emitter.load_item()
            return
        arguments = lambda: (  # noqa: E731
            self.base.emit(emitter),
            emitter.load_const(self.attribute),
            emitter.load_const(self.dim),
        )
        emitter.call_runtime("tensor_property", arguments, 3)


def module_entry(base: Source, table: str, name: str) -> Source:
    """The entry `name` of a module's table (``"_parameters"``, ``"_buffers"``, ``"_modules"``): a raw read."""
    return DictItem(InstanceAttr(base, table), name)
