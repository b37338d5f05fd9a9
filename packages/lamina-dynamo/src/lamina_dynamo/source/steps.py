"""Steps from a value: attributes, items, the type, the contents of a cell."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .. import _core
from .base import Source, Step

if TYPE_CHECKING:
    from ..emit import Emitter

__all__ = [
    "Attr",
    "AttributeStep",
    "CellContents",
    "DictItem",
    "DictKeys",
    "DictValues",
    "GetItem",
    "InstanceAttr",
    "Item",
    "NamedStep",
    "SuperAttr",
    "TypeAttr",
    "TypeOf",
]


class AttributeStep(Step):
    """A step whose code is LOAD_ATTR of a fixed attribute."""

    __slots__ = ()
    attribute: ClassVar[str] = ""

    def suffix(self) -> str:
        """The step as text."""
        return f".{self.attribute}"

    def read(self, value: object) -> object:
        """Make the step from this value of the base."""
        return getattr(value, self.attribute)

    def emit(self, emitter: Emitter) -> None:
        """The base, then LOAD_ATTR."""
        self.base.emit(emitter)
        emitter.load_attr(self.attribute)


class NamedStep(Step):
    """A step whose code is LOAD_ATTR of an attribute given by the instance."""

    __slots__ = ()
    attr: str

    def step(self) -> tuple[str, object]:
        """Name and operand."""
        return self.opcode, self.attr

    def suffix(self) -> str:
        """The step as text."""
        return f".{self.attr}"

    def emit(self, emitter: Emitter) -> None:
        """The base, then the step."""
        self.base.emit(emitter)
        emitter.load_attr(self.attr)


@dataclass(frozen=True, slots=True)
class Attr(NamedStep):
    """`getattr(base, attr)` by the full protocol; a guard over it may run the user's code: prefer the raw reads."""

    base: Source
    attr: str
    opcode: ClassVar[str] = "attr"

    def read(self, value: object) -> object:
        """`getattr`."""
        return getattr(value, self.attr)


@dataclass(frozen=True, slots=True)
class InstanceAttr(NamedStep):
    """`base.__dict__[attr]`, raw. The code is LOAD_ATTR: a type attribute that hides it must be guarded absent."""

    base: Source
    attr: str
    opcode: ClassVar[str] = "instance_attr"

    def read(self, value: object) -> object:
        """The entry of the instance dict."""
        return object.__getattribute__(value, "__dict__")[self.attr]


@dataclass(frozen=True, slots=True)
class TypeAttr(NamedStep):
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
class SuperAttr(Step):
    """What the classes behind `start` in the mro of the type `base` hold under this name, raw: ``super()``'s lookup."""

    base: Source
    start: weakref.ref[type]
    attr: str
    opcode: ClassVar[str] = "super_attr"

    def step(self) -> tuple[str, object]:
        """The class, held weakly, and the name."""
        return self.opcode, (self.start, self.attr)

    @property
    def name(self) -> str:
        """``super(C, type(L['x'])).<name>``."""
        return f"super({getattr(self.start(), '__qualname__', '?')}, {self.base.name}).<{self.attr}>"

    def read(self, value: object) -> object:
        """Search the mro behind the class."""
        return _core.super_lookup(value, (self.start, self.attr))

    def emit(self, emitter: Emitter) -> None:
        """Call the C reader."""
        where = (self.start, self.attr)
        emitter.call_runtime("super_lookup", lambda: (self.base.emit(emitter), emitter.load_const(where)), 2)


@dataclass(frozen=True, slots=True)
class TypeOf(Step):
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
class CellContents(AttributeStep):
    """The value in a cell; an empty cell fails the guard."""

    base: Source
    opcode: ClassVar[str] = "cell_contents"
    attribute: ClassVar[str] = "cell_contents"


@dataclass(frozen=True, slots=True)
class Item(Step):
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
class _Keyed(Step):
    """A step by a key, which must be hashable, immutable and equal only to itself (1, 1.0 and True are three keys)."""

    base: Source
    key: object

    def step(self) -> tuple[str, object]:
        """Name and operand."""
        return self.opcode, self.key

    def suffix(self) -> str:
        """The step as text."""
        return f"[{self.key!r}]"

    def emit(self, emitter: Emitter) -> None:
        """The base, then the step."""
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


class _DictView(Step):
    """All keys or values of a dict as a tuple, read once for the items that are taken from it."""

    __slots__ = ()

    def emit(self, emitter: Emitter) -> None:
        """Call the C reader."""
        emitter.call_runtime(self.opcode, lambda: self.base.emit(emitter), 1)


@dataclass(frozen=True, slots=True)
class DictKeys(_DictView):
    """The keys of a dict, in its order, as a tuple. The n-th is an `Item` of it."""

    base: Source
    opcode: ClassVar[str] = "dict_keys"

    def suffix(self) -> str:
        """``.keys()``."""
        return ".keys()"

    def read(self, value: object) -> object:
        """The keys, raw."""
        return tuple(dict.keys(value))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class DictValues(_DictView):
    """The values of a dict, in its order, as a tuple: for keys that are objects (guard the keys with `dict_keys`)."""

    base: Source
    opcode: ClassVar[str] = "dict_values"

    def suffix(self) -> str:
        """``.values()``."""
        return ".values()"

    def read(self, value: object) -> object:
        """The values, raw."""
        return tuple(dict.values(value))  # type: ignore[arg-type]
