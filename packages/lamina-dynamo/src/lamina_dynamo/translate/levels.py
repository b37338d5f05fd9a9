"""Inlined frames in which the graph ends: what they go on with, and the calls that make them go on."""

from __future__ import annotations

from typing import Any

from ..emit import Emitter
from ..resume import ResumePoint, push_resume_function
from ..resume_points import locate
from .frame_parts import NULL
from .liveness import live_locals
from .rebuild import Rebuilder

__all__ = ["InnerFrames", "Level"]


class Level:
    """A frame that goes on after a break: what lies on its stack, and its locals that are still read."""

    def __init__(self, frame: Any, is_innermost: bool) -> None:
        self.frame = frame
        # an outer frame goes on behind its CALL, whose operands are off the stack already
        self.index = frame.ip if is_innermost else frame.started_at
        alive = live_locals(frame.code, self.index if is_innermost else self.index + 1)
        self.stack = list(frame.stack)
        self.live = {n: v for n, v in frame.locals.items() if n in alive and v is not None}
        self.temps: dict[Any, str] = {}

    @property
    def offset(self) -> int:
        """Of the instruction at which the frame goes on."""
        return self.frame.instructions[self.index].offset

    @property
    def mask(self) -> tuple[bool, ...]:
        """The stack: True a value, False a NULL."""
        return tuple([v is not NULL for v in self.stack])

    def point(self, pending: int | None) -> ResumePoint:
        """Where the frame goes on; ``pending``: with a call of this many arguments, instead of its own."""
        own = None if pending is not None else locate(self.frame.code, self.offset)[2]
        if own is None:
            return ResumePoint(self.offset, self.mask, self.bound(), pending)
        return ResumePoint(self.offset, self.mask[: len(self.stack) - own - 2], self.bound(), own)

    def positions(self, point: ResumePoint, *, operands: bool) -> list[int]:
        """Positions of values on the stack: those that the point has on it, or the operands of its call."""
        below = len(point.stack)
        chosen = range(below, len(self.stack)) if operands else range(below)
        return [k for k in chosen if self.stack[k] is not NULL]

    def bound(self) -> frozenset[str]:
        """Plain locals that are bound."""
        cells = self.frame.code.co_cellvars
        return frozenset(n for n in self.live if n not in cells)

    def cells(self) -> list[Any]:
        """Its free variables' cells, then its own."""
        code = self.frame.code
        return [self.frame.cells[n] for n in (*code.co_freevars, *code.co_cellvars)]


class InnerFrames:
    """The part of the end of a translation that writes the inlined frames."""

    frame: Any
    emitter: Emitter
    levels: list[Level]

    def _load_inner(self, rebuilder: Rebuilder) -> None:
        """Values of the inlined frames that go on, into variables: before any effect changes what they are read
        from.
        """
        for level in self.levels[1:]:
            for position, value in enumerate(level.stack):
                if value is not NULL:
                    level.temps[position] = self._temp(rebuilder, value)
            for name in level.bound():
                level.temps[name] = self._temp(rebuilder, level.live[name])
            for cell in level.cells():
                level.temps[cell] = self._temp(rebuilder, cell)

    def _points(self) -> list[ResumePoint]:
        """Where the inlined frames go on, outermost first."""
        points: list[ResumePoint] = []
        pending: int | None = None
        for level in reversed(self.levels[1:]):
            point = level.point(pending)
            points.insert(0, point)
            pending = point.parameters(level.frame.code)
        return points

    def _push_values(self, rebuilder: Rebuilder, number: int, points: list[ResumePoint]) -> None:
        """Parameters of the resume function of an inlined frame; those of a middle frame end with the call of the
        next one.
        """
        emitter, level, point = self.emitter, self.levels[number], points[number - 1]
        for position in level.positions(point, operands=False):
            emitter.load_temp(level.temps[position])
        for name in point.order(level.frame.code):
            emitter.load_temp(level.temps[name])
        if number + 1 < len(self.levels):
            inner = self.levels[number + 1]
            push_resume_function(
                emitter, inner.frame.code, points[number], self._globals_of(rebuilder, inner), self._cells_of(inner)
            )
            self._push_values(rebuilder, number + 1, points)
        for position in level.positions(point, operands=True):
            emitter.load_temp(level.temps[position])

    def _globals_of(self, rebuilder: Rebuilder, level: Level) -> Any:
        function = level.frame.function
        if function.globals is self.frame.function.globals:
            return None
        return lambda: rebuilder.load_globals(function)

    def _cells_of(self, level: Level) -> Any:
        cells = level.cells()
        if not cells:
            return None

        def load() -> None:
            for cell in cells:
                self.emitter.load_temp(level.temps[cell])
            self.emitter.build_tuple(len(cells))

        return load
