"""Sources that begin at no frame: constants, objects held weakly, modules."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .base import FrameScope, Source

if TYPE_CHECKING:
    from ..emit import Emitter

__all__ = [
    "Const",
    "Module",
    "WeakObject",
]


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
