"""What a guard is: kind, sources, expectation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..source import FrameScope, Source
from .kinds import GuardKind
from .values import Identity
from .words import describe

__all__ = ["Ambient", "Guard", "GuardKind", "GuardSet", "TensorFacts"]


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What a tensor or array must look like. None in `shape` or `strides` leaves that dimension unchecked.

    `kind` is the type (by identity); `strides` None leaves the layout unchecked; `flags` are bits of
    `lamina/tensor_abi.h` that must be as in `flag_values` where `flag_mask` is set.
    """

    kind: Identity
    dtype: str
    device: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    flag_mask: int = 0
    flag_values: int = 0

    def __str__(self) -> str:
        dims = ", ".join("*" if s is None else str(s) for s in self.shape)
        text = f"{self.dtype}[{dims}]"
        if self.strides is not None:
            text += f"@({', '.join('*' if s is None else str(s) for s in self.strides)})"
        if self.device != "cpu":
            text += f" {self.device}"
        if self.flag_mask & 1:
            text += " requires_grad" if self.flag_values & 1 else " no grad"
        return text


@dataclass(frozen=True, slots=True, eq=False)
class Ambient:
    """State that belongs to no frame, such as the grad mode: a name and how to read it.

    `read()` must be cheap, return a plain immutable value and have no effect; on a hit it is called only where
    there is no `cell`. `cell` is a capsule named ``"lamina.int_cell"`` over an `int32_t` that has the same value:
    read in C++ without a call.
    """

    name: str
    read: Callable[[], object]
    cell: object = None


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition. `sources` has one entry, or several for the relational kinds; `expected` depends on `kind`."""

    kind: GuardKind
    sources: tuple[Source, ...]
    expected: object
    wording: str | Callable[[], str] = field(compare=False)
    """The condition as Python-like text, or what writes it: few guards are ever shown."""
    reason: str = field(default="", compare=False)
    """Why it is needed, in words."""
    line: str = field(default="", compare=False)
    """``file:line`` of the user's code that made it necessary."""

    @property
    def text(self) -> str:
        """The condition as Python-like text."""
        return self.wording if isinstance(self.wording, str) else self.wording()

    @property
    def source(self) -> Source:
        """The source of a guard that has one."""
        return self.sources[0]

    def __str__(self) -> str:
        return f"{self.text}  ({self.reason})" if self.reason else self.text

    def explain(self, scope: FrameScope) -> str:
        """Say in words why this guard fails in `scope`: the condition, then what is there instead."""
        return f"{self}, but {describe(self, scope)}"


class GuardSet:
    """Guards of one entry: no duplicates, in the order they are evaluated (by kind, then as added)."""

    __slots__ = ("_guards", "_sorted")

    def __init__(self, guards: Sequence[Guard] = ()) -> None:
        self._guards: dict[Guard, None] = {}
        self._sorted: list[Guard] | None = None
        for guard in guards:
            self.add(guard)

    def add(self, guard: Guard) -> None:
        """Add a guard, unless an equal one is there."""
        if guard not in self._guards:
            self._guards[guard] = None
            self._sorted = None

    def update(self, guards: Sequence[Guard] | GuardSet) -> None:
        """Add several."""
        for guard in guards:
            self.add(guard)

    def _ordered(self) -> list[Guard]:
        if self._sorted is None:
            self._sorted = sorted(self._guards, key=lambda guard: guard.kind)
        return self._sorted

    def __iter__(self) -> Iterator[Guard]:
        return iter(self._ordered())

    def __getitem__(self, index: int) -> Guard:
        return self._ordered()[index]

    def __len__(self) -> int:
        return len(self._guards)

    def __contains__(self, guard: Guard) -> bool:
        return guard in self._guards

    def copy(self) -> GuardSet:
        """A copy that can be changed alone (for speculation)."""
        copied = GuardSet()
        copied._guards = dict(self._guards)
        return copied

    def __str__(self) -> str:
        return "\n".join(map(str, self))
