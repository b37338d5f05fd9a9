"""Exceptions of the traced program."""

from __future__ import annotations

from typing import Any

from .base import VariableTracker
from .constant import NONE, ConstantVariable
from .objects import UserObjectVariable

__all__ = ["HANDLED_AT_ENTRY", "ExceptionVariable", "HandledAtEntry", "ObservedException"]


class HandledAtEntry(VariableTracker):
    """The exception that was being handled when the frame was entered (by the caller, or by the frame that is
    resumed), or None.
    """

    __slots__ = ()

    def reconstruct(self, cg: Any) -> None:
        """Ask the interpreter."""
        cg.emitter.call_runtime("handled_exception", lambda: None, 0)

    def __repr__(self) -> str:
        return "the exception handled at entry"


HANDLED_AT_ENTRY = HandledAtEntry()


class ObservedException(Exception):
    """Carries an exception of the traced program through the interpreter; ``variable`` is the exception object."""

    def __init__(self, variable: ExceptionVariable) -> None:
        super().__init__(variable)
        self.variable = variable


class ExceptionVariable(UserObjectVariable):
    """An exception: ``args`` is a tuple tracker; ``cause`` and ``context`` are None or other exceptions.

    ``where`` are the frames it went through while tracing, innermost first: its traceback when it is made.
    """

    __slots__ = ("args", "cause", "context", "suppress", "where")

    def __init__(self, cls: type, args: VariableTracker, **known: Any) -> None:
        super().__init__(cls, **known)
        self.args = args
        self.cause: VariableTracker = NONE
        self.context: VariableTracker = NONE
        self.suppress = False
        self.where: list[tuple[str, str, int]] = []

    def children(self) -> list[Any]:
        return [*super().children(), self.args, self.cause, self.context]

    def generic_getattr(self, tx: Any, name: str) -> VariableTracker:
        if name == "args":
            return self.args
        if name == "__cause__":
            return self.cause
        if name == "__context__":
            return self.context
        if name == "__suppress_context__":
            return ConstantVariable(self.suppress)
        if name == "__traceback__":
            return NONE
        if name == "value" and issubclass(self.cls, StopIteration):
            elements = self.args.elements  # type: ignore[attr-defined]
            return tx.realize(elements[0]) if elements else NONE
        return super().generic_getattr(tx, name)

    def generic_setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        if name == "args":
            self.args = tx.tuple_of(tx.unpack(value))
        elif name == "__cause__":
            self.cause, self.suppress = value, True
        elif name == "__context__":
            self.context = value
        elif name == "__suppress_context__":
            self.suppress = tx.truth(value)
        elif name == "__traceback__":
            return
        else:
            super().generic_setattr(tx, name, value)

    def method(self, tx: Any, name: str, args: Any, kwargs: Any) -> VariableTracker:
        if name == "with_traceback":
            return self
        return super().method(tx, name, args, kwargs)

    def truth(self, tx: Any) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{self.cls.__name__} exception"
