"""Generators of the traced program."""

from __future__ import annotations

from types import GeneratorType
from typing import Any

from .base import Args, Kwargs, VariableTracker
from .constant import NONE, is_none
from .iterators import IteratorVariable

__all__ = ["GeneratorVariable"]


class GeneratorVariable(IteratorVariable):
    """A generator: its frame is suspended between ``next`` calls. ``remake`` rebuilds one that was not started."""

    __slots__ = ("birth", "finished", "frame", "remake", "running", "started")

    def __init__(self, frame: Any, remake: Any, birth: int) -> None:
        self.source = None
        self.frame = frame
        self.remake = remake
        self.birth = birth
        self.started = self.finished = self.running = False

    def python_type(self) -> type:
        return GeneratorType

    def children(self) -> list[Any]:
        if self.finished:
            return []
        function, args, kwargs = self.remake
        return [function, *args, *kwargs.values()]

    def next(self, tx: Any) -> VariableTracker:
        return self.resume(tx, NONE)

    def resume(self, tx: Any, sent: VariableTracker | None, thrown: Any = None) -> VariableTracker:
        """Run to the next yield with a value sent in, or an exception raised at the yield."""
        tx.direct_call = False
        if self.running:
            raise tx.error(ValueError, "generator already executing")
        if self.finished:
            raise tx.stop_iteration() if thrown is None else thrown
        if not self.started and thrown is None and not is_none(sent):
            raise tx.error(TypeError, "can't send non-None value to a just-started generator")
        self.running = True
        try:
            status, value = tx.run_generator(self, sent, thrown)
        except tx.Observed as error:
            self.finished = True
            if tx.is_exception(error, StopIteration):
                raise tx.error(RuntimeError, "generator raised StopIteration") from error
            raise
        finally:
            self.running = False
        if status == "yield":
            return value
        self.finished = True
        raise tx.stop_iteration(value)

    def method(self, tx: Any, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "send":
            return self.resume(tx, args[0])
        if name == "throw":
            return self.resume(tx, None, tx.observed_from(args[0] if len(args) < 2 or is_none(args[1]) else args[1]))
        if name == "close":
            return self._close(tx)
        return super().method(tx, name, args, kwargs)

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name in ("send", "throw", "close"):
            return tx.bound_native(self, name)
        return super().getattr(tx, name)

    def _close(self, tx: Any) -> VariableTracker:
        if self.finished or not self.started:
            self.finished = True
            return NONE
        try:
            self.resume(tx, None, tx.error(GeneratorExit))
        except tx.Observed as error:
            if tx.is_exception(error, (GeneratorExit, StopIteration)):
                return NONE
            raise
        raise tx.error(RuntimeError, "generator ignored GeneratorExit")

    def reconstruct(self, cg: Any) -> None:
        if self.finished:
            cg.call_constant(_empty_generator, [])
            return
        if self.started:
            cg.tx.break_before(self.birth, "a generator that was started in the region lives on after it")
        function, args, kwargs = self.remake
        original = cg.tx.original_of(function)
        if original is None:
            cg.call_variable(function, args, kwargs)
        else:
            cg.call_constant(original, args, kwargs)


def _empty_generator() -> Any:
    return (x for x in ())
