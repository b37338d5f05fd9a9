"""How a value is reached from the frame: sources, which build both guards and code.

A source is a path: it begins at the frame (a local, a global, a cell) or at a fixed object and goes on by attributes, items and so on.
Each class says one step in four ways: as text (`name`), in Python while compiling (`fetch`), as an instruction of a C++
guard program (`step`), and as bytecode (`emit`). Sources are immutable, hashable and compare by structure; two that are
equal read the same value.

>>> x = Attr(Local("self"), "weight")
>>> x.name
"L['self'].weight"
>>> x.fetch(FrameScope({"self": type("M", (), {"weight": 3})}, {}, {}))
3

Which class for which read:

- a name in the frame: `Local`, `Global`, `Builtin`, `FreeCell` (the cell itself; its value is `CellContents(FreeCell(name))`);
- an attribute: `InstanceAttr` where the value was found in the instance's `__dict__` (no Python code can run), `TypeAttr` on the
  source of a type where it was found on the type (the raw descriptor), `Attr` where only a full `getattr` will do;
- a module's parameter: `module_entry(base, "_parameters", name)`;
- a container: `Item` with an int for lists and tuples, `DictItem` for dicts (subclasses too, `__getitem__` is not called),
  `DictKey` for the n-th key, `GetItem` for `base[key]` by the full protocol;
- a function: `FunctionCode`, `FunctionGlobals`, `FunctionDefault`, `FunctionKwDefault`, `FunctionCell`; a method: `MethodFunction`, `MethodSelf`;
- a tensor: `TensorProperty(base, "size" | "stride" | "storage_offset" | "numel" | "ndim", dim)` (an int), `Grad`;
- no path: `Const` for plain immutable values, `WeakObject` for an object that has no path, `Module` for an imported module;
- `Temp`: a variable of the emitted code. It can not be guarded.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import CellType
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = [
    "Attr",
    "Builtin",
    "CellContents",
    "Const",
    "DictItem",
    "DictKey",
    "DictValue",
    "FrameScope",
    "FreeCell",
    "FunctionCell",
    "FunctionCode",
    "FunctionDefault",
    "FunctionGlobals",
    "FunctionKwDefault",
    "GetItem",
    "Global",
    "Grad",
    "InstanceAttr",
    "Item",
    "Local",
    "MethodFunction",
    "MethodSelf",
    "Module",
    "Source",
    "Temp",
    "TensorProperty",
    "TypeAttr",
    "TypeOf",
    "WeakObject",
    "base_of",
    "chain",
    "module_entry",
]


@dataclass(frozen=True, slots=True)
class FrameScope:
    """What a frame can see while it is compiled. `closure` maps free variable names to their cells."""

    locals: Mapping[str, object]
    globals: Mapping[str, object]
    builtins: Mapping[str, object]
    closure: Mapping[str, CellType] = field(default_factory=dict)


class Source:
    """One way to reach a value. Subclasses are the steps; `base_of(source)` is the source a step starts from."""

    __slots__ = ()
    opcode: ClassVar[str] = ""
    """Name of the step in a guard program."""

    @property
    def name(self) -> str:
        """The path as text, for messages: ``L['self'].layers[0]``."""
        raise NotImplementedError

    def step(self) -> tuple[str, object]:
        """The step as an instruction of a guard program: its name and its operand."""
        return self.opcode, None

    def fetch(self, scope: FrameScope) -> object:
        """Read the value now. Raises what reading it raises."""
        raise NotImplementedError

    def emit(self, emitter: Emitter) -> None:
        """Write code that pushes the value."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name


class _Step(Source):
    """A source with a base: text, fetch and code are the base's and then one step more."""

    __slots__ = ()
    base: Source

    @property
    def name(self) -> str:
        return self.base.name + self.suffix()

    def suffix(self) -> str:
        """The step as text, appended to the base's."""
        raise NotImplementedError

    def fetch(self, scope: FrameScope) -> object:
        return self.read(self.base.fetch(scope))

    def read(self, value: object) -> object:
        """Make the step from this value of the base."""
        raise NotImplementedError


def base_of(source: Source) -> Source | None:
    """The source this one starts from, None for the first of a path."""
    return source.base if isinstance(source, _Step) else None


def chain(source: Source) -> Iterator[Source]:
    """The source and its bases, first step first."""
    path: list[Source] = []
    at: Source | None = source
    while at is not None:
        path.append(at)
        at = base_of(at)
    return reversed(path)


# ---- the frame ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Local(Source):
    """An argument of the frame, as it was when the frame was entered."""

    local: str
    opcode: ClassVar[str] = "local"

    @property
    def name(self) -> str:
        """``L['x']``."""
        return f"L[{self.local!r}]"

    def step(self) -> tuple[str, object]:
        """The slot is found by name when the guard program is made for a code object."""
        return self.opcode, self.local

    def fetch(self, scope: FrameScope) -> object:
        """The argument's value."""
        return scope.locals[self.local]

    def emit(self, emitter: Emitter) -> None:
        """The argument; it must not have been overwritten yet."""
        emitter.load_argument(self.local)


@dataclass(frozen=True, slots=True)
class Global(Source):
    """A name in the frame's globals (not its builtins)."""

    variable: str
    opcode: ClassVar[str] = "global"

    @property
    def name(self) -> str:
        """``G['x']``."""
        return f"G[{self.variable!r}]"

    def step(self) -> tuple[str, object]:
        """Looked up in the frame's globals."""
        return self.opcode, self.variable

    def fetch(self, scope: FrameScope) -> object:
        """The value in the globals."""
        return scope.globals[self.variable]

    def emit(self, emitter: Emitter) -> None:
        """LOAD_GLOBAL."""
        emitter.load_global(self.variable)


@dataclass(frozen=True, slots=True)
class Builtin(Source):
    """A name in the frame's builtins, where the globals do not have it (guard that too: `name_absent`)."""

    variable: str
    opcode: ClassVar[str] = "builtin"

    @property
    def name(self) -> str:
        """``B['len']``."""
        return f"B[{self.variable!r}]"

    def step(self) -> tuple[str, object]:
        """Looked up in the frame's builtins."""
        return self.opcode, self.variable

    def fetch(self, scope: FrameScope) -> object:
        """The value in the builtins."""
        return scope.builtins[self.variable]

    def emit(self, emitter: Emitter) -> None:
        """LOAD_GLOBAL falls through to the builtins."""
        emitter.load_global(self.variable)


@dataclass(frozen=True, slots=True)
class FreeCell(Source):
    """The cell of a free variable of the frame's function."""

    variable: str
    opcode: ClassVar[str] = "free_cell"

    @property
    def name(self) -> str:
        """``C['x']``."""
        return f"C[{self.variable!r}]"

    def step(self) -> tuple[str, object]:
        """The index is found by name when the guard program is made for a code object."""
        return self.opcode, self.variable

    def fetch(self, scope: FrameScope) -> object:
        """The cell object."""
        return scope.closure[self.variable]

    def emit(self, emitter: Emitter) -> None:
        """Push the cell object."""
        emitter.load_cell(self.variable)


@dataclass(frozen=True, slots=True)
class Temp(Source):
    """A variable of the emitted code."""

    variable: str

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable

    def step(self) -> tuple[str, object]:
        """A temporary exists only in emitted code: it has no step."""
        raise TypeError(f"{self.variable} is a variable of the emitted code and can not be guarded")

    def emit(self, emitter: Emitter) -> None:
        """LOAD_FAST."""
        emitter.load_temp(self.variable)


# ---- fixed objects --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Const(Source):
    """A plain immutable value: number, string, bytes, None, Ellipsis, tuple or frozenset of such, code object."""

    value: object
    opcode: ClassVar[str] = "const"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const) and type(other.value) is type(self.value) and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))

    @property
    def name(self) -> str:
        """The value's repr."""
        return repr(self.value)

    def step(self) -> tuple[str, object]:
        """The value itself."""
        return self.opcode, self.value

    def fetch(self, scope: FrameScope) -> object:
        """The value."""
        return self.value

    def emit(self, emitter: Emitter) -> None:
        """LOAD_CONST."""
        emitter.load_const(self.value)


class WeakObject(Source):
    """An object that has no path from the frame, held weakly. Emitted code raises ReferenceError when it is gone."""

    __slots__ = ("identity", "reference", "text")
    opcode: ClassVar[str] = "weak"

    def __init__(self, value: object) -> None:
        self.reference = weakref.ref(value)
        self.identity = id(value)
        self.text = f"<{type(value).__name__} at {id(value):#x}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeakObject) and other.identity == self.identity and other.reference is self.reference

    def __hash__(self) -> int:
        return hash(self.identity)

    @property
    def name(self) -> str:
        """The object's type and address."""
        return self.text

    def step(self) -> tuple[str, object]:
        """The weak reference."""
        return self.opcode, self.reference

    def fetch(self, scope: FrameScope) -> object:
        """The object; ReferenceError when it is gone."""
        value = self.reference()
        if value is None:
            raise ReferenceError(f"{self.text} was freed")
        return value

    def emit(self, emitter: Emitter) -> None:
        """Call the weak reference."""
        emitter.prepare_call(lambda: emitter.load_const(self.reference))
        emitter.call(0)


@dataclass(frozen=True, slots=True)
class Module(Source):
    """An imported module, by its full name in sys.modules."""

    module: str
    opcode: ClassVar[str] = "module"

    @property
    def name(self) -> str:
        """``sys.modules['m']``."""
        return f"sys.modules[{self.module!r}]"

    def step(self) -> tuple[str, object]:
        """Looked up in sys.modules."""
        return self.opcode, self.module

    def fetch(self, scope: FrameScope) -> object:
        """The module."""
        return sys.modules[self.module]

    def emit(self, emitter: Emitter) -> None:
        """Read sys.modules, which is a constant of the code."""
        emitter.load_const(sys.modules)
        emitter.load_const(self.module)
        emitter.load_item()


# ---- steps ----------------------------------------------------------------------------------------------------------


class _AttributeStep(_Step):
    """A step whose code is LOAD_ATTR of a fixed attribute."""

    __slots__ = ()
    attribute: ClassVar[str] = ""

    def suffix(self) -> str:
        return f".{self.attribute}"

    def read(self, value: object) -> object:
        return getattr(value, self.attribute)

    def emit(self, emitter: Emitter) -> None:
        """The base, then LOAD_ATTR."""
        self.base.emit(emitter)
        emitter.load_attr(self.attribute)


class _NamedStep(_Step):
    """A step whose code is LOAD_ATTR of an attribute given by the instance."""

    __slots__ = ()
    attr: str

    def step(self) -> tuple[str, object]:
        return self.opcode, self.attr

    def suffix(self) -> str:
        return f".{self.attr}"

    def emit(self, emitter: Emitter) -> None:
        self.base.emit(emitter)
        emitter.load_attr(self.attr)


@dataclass(frozen=True, slots=True)
class Attr(_NamedStep):
    """`getattr(base, attr)` by the full protocol; a guard over it may run the user's code: prefer the raw reads."""

    base: Source
    attr: str
    opcode: ClassVar[str] = "attr"

    def read(self, value: object) -> object:
        """`getattr`."""
        return getattr(value, self.attr)


@dataclass(frozen=True, slots=True)
class InstanceAttr(_NamedStep):
    """`base.__dict__[attr]`, raw. The code is LOAD_ATTR: a type attribute that hides it must be guarded absent."""

    base: Source
    attr: str
    opcode: ClassVar[str] = "instance_attr"

    def read(self, value: object) -> object:
        """The entry of the instance dict."""
        return object.__getattribute__(value, "__dict__")[self.attr]


@dataclass(frozen=True, slots=True)
class TypeAttr(_NamedStep):
    """What the type `base` or its bases hold under this name, raw: no descriptor is called."""

    base: Source
    attr: str
    opcode: ClassVar[str] = "type_attr"

    def suffix(self) -> str:
        """Marked as a raw read."""
        return f".<{self.attr}>"

    def read(self, value: object) -> object:
        """Search the mro."""
        for cls in type.__dict__["__mro__"].__get__(value):
            if self.attr in cls.__dict__:
                return cls.__dict__[self.attr]
        raise AttributeError(self.attr)

    def emit(self, emitter: Emitter) -> None:
        """`inspect.getattr_static` has the same meaning and is public, but slow; the C reader does one lookup."""
        emitter.call_runtime("type_lookup", lambda: (self.base.emit(emitter), emitter.load_const(self.attr)), 2)


@dataclass(frozen=True, slots=True)
class TypeOf(_Step):
    """`type(base)`."""

    base: Source
    opcode: ClassVar[str] = "type"

    @property
    def name(self) -> str:
        """``type(L['x'])``."""
        return f"type({self.base.name})"

    def read(self, value: object) -> object:
        """`type(value)`."""
        return type(value)

    def emit(self, emitter: Emitter) -> None:
        """Call `type`."""
        emitter.prepare_call(lambda: emitter.load_const(type))
        self.base.emit(emitter)
        emitter.call(1)


@dataclass(frozen=True, slots=True)
class CellContents(_AttributeStep):
    """The value in a cell; an empty cell fails the guard."""

    base: Source
    opcode: ClassVar[str] = "cell_contents"
    attribute: ClassVar[str] = "cell_contents"


@dataclass(frozen=True, slots=True)
class Item(_Step):
    """`base[index]` of a list or tuple (subclasses too; `__getitem__` is not called). `index` >= 0."""

    base: Source
    index: int
    opcode: ClassVar[str] = "item"

    def step(self) -> tuple[str, object]:
        """The index."""
        return self.opcode, self.index

    def suffix(self) -> str:
        """``[0]``."""
        return f"[{self.index}]"

    def read(self, value: object) -> object:
        """The item, raw."""
        if isinstance(value, tuple):
            return tuple.__getitem__(value, self.index)
        return list.__getitem__(value, self.index)  # type: ignore[arg-type]

    def emit(self, emitter: Emitter) -> None:
        """Subscript by the full protocol: equal for lists and tuples whose class does not define `__getitem__`."""
        self.base.emit(emitter)
        emitter.load_const(self.index)
        emitter.load_item()


@dataclass(frozen=True, slots=True)
class _Keyed(_Step):
    """A step by a key, which must be hashable, immutable and equal only to itself (1, 1.0 and True are three keys)."""

    base: Source
    key: object

    def step(self) -> tuple[str, object]:
        return self.opcode, self.key

    def suffix(self) -> str:
        return f"[{self.key!r}]"

    def emit(self, emitter: Emitter) -> None:
        self.base.emit(emitter)
        emitter.load_const(self.key)
        emitter.load_item()


@dataclass(frozen=True, slots=True)
class DictItem(_Keyed):
    """The value under `key` in a dict (subclasses too; `__getitem__` is not called)."""

    opcode: ClassVar[str] = "dict_item"

    def read(self, value: object) -> object:
        """The entry, raw."""
        return dict.__getitem__(value, self.key)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class GetItem(_Keyed):
    """`base[key]` by the full protocol; a guard over it may run the user's code."""

    opcode: ClassVar[str] = "get_item"

    def read(self, value: object) -> object:
        """`value[key]`."""
        return value[self.key]  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class DictKey(_Step):
    """The n-th key of a dict, in its order."""

    base: Source
    index: int
    opcode: ClassVar[str] = "dict_key"

    def step(self) -> tuple[str, object]:
        """The position."""
        return self.opcode, self.index

    def suffix(self) -> str:
        """``.keys()[0]``."""
        return f".keys()[{self.index}]"

    def read(self, value: object) -> object:
        """Walk the keys."""
        return next(islice(iter(value), self.index, None))  # type: ignore[call-overload]

    def emit(self, emitter: Emitter) -> None:
        """Call the C reader: walks the dict without making a list."""
        emitter.call_runtime("dict_key", lambda: (self.base.emit(emitter), emitter.load_const(self.index)), 2)


@dataclass(frozen=True, slots=True)
class DictValue(_Step):
    """The n-th value of a dict, in its order: for keys that are objects (guard the keys with `dict_keys`)."""

    base: Source
    index: int
    opcode: ClassVar[str] = "dict_value"

    def step(self) -> tuple[str, object]:
        """The position."""
        return self.opcode, self.index

    def suffix(self) -> str:
        """``.values()[0]``."""
        return f".values()[{self.index}]"

    def read(self, value: object) -> object:
        """Walk the values."""
        return next(islice(dict.values(value), self.index, None))  # type: ignore[call-overload]

    def emit(self, emitter: Emitter) -> None:
        """Call the C reader: walks the dict without making a list."""
        emitter.call_runtime("dict_value", lambda: (self.base.emit(emitter), emitter.load_const(self.index)), 2)


@dataclass(frozen=True, slots=True)
class FunctionCode(_AttributeStep):
    """`base.__code__`."""

    base: Source
    opcode: ClassVar[str] = "function_code"
    attribute: ClassVar[str] = "__code__"


@dataclass(frozen=True, slots=True)
class FunctionGlobals(_AttributeStep):
    """`base.__globals__`: the globals of an inlined function; go on with `DictItem`."""

    base: Source
    opcode: ClassVar[str] = "function_globals"
    attribute: ClassVar[str] = "__globals__"


class _FunctionEntry(_Step):
    """An entry of a tuple or dict that hangs on a function."""

    __slots__ = ()
    attribute: ClassVar[str] = ""
    entry: int | str

    def step(self) -> tuple[str, object]:
        return self.opcode, self.entry

    def suffix(self) -> str:
        return f".{self.attribute}[{self.entry!r}]"

    def read(self, value: object) -> object:
        return getattr(value, self.attribute)[self.entry]

    def emit(self, emitter: Emitter) -> None:
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
class MethodFunction(_AttributeStep):
    """`base.__func__` of a bound method."""

    base: Source
    opcode: ClassVar[str] = "method_function"
    attribute: ClassVar[str] = "__func__"


@dataclass(frozen=True, slots=True)
class MethodSelf(_AttributeStep):
    """`base.__self__` of a bound method."""

    base: Source
    opcode: ClassVar[str] = "method_self"
    attribute: ClassVar[str] = "__self__"


@dataclass(frozen=True, slots=True)
class Grad(_AttributeStep):
    """`base.grad` of a tensor."""

    base: Source
    opcode: ClassVar[str] = "grad"
    attribute: ClassVar[str] = "grad"


@dataclass(frozen=True, slots=True)
class TensorProperty(_Step):
    """An int of a tensor: ``"size"`` or ``"stride"`` (in elements) of `dim`, ``"storage_offset"``, ``"numel"``, ``"ndim"``."""

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
