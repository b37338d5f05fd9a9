"""Sources that begin at the frame: arguments, globals, builtins, cells, temporaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .base import FrameScope, Source

if TYPE_CHECKING:
    from ..emit import Emitter

__all__ = [
    "Builtin",
    "FreeCell",
    "Global",
    "Local",
    "Temp",
]


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
