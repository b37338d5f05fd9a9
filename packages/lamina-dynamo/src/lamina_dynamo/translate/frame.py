"""One symbolic frame: value stack, locals, cells, and the loop that runs handlers."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..variables import (
    NONE,
    CellVariable,
    ConstantVariable,
    FunctionVariable,
    ObservedException,
    VariableTracker,
    realize,
)
from .frame_parts import NULL
from .instructions import decode
from .opcodes import handlers

__all__ = ["NULL", "RETURNED", "YIELDED", "Frame", "StopTranslation"]

RETURNED = "return"
YIELDED = "yield"


class StopTranslation(Exception):
    """The graph ends in front of the current instruction of ``frame``."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame


class Frame:
    """The interpreter state of one function: the root frame's, or that of an inlined call."""

    __slots__ = (
        "cells",
        "code",
        "decoded",
        "function",
        "instructions",
        "ip",
        "is_direct",
        "keyword_names",
        "locals",
        "parent",
        "result",
        "stack",
        "started_at",
        "step_at",
        "tx",
    )  # fmt: skip

    def __init__(self, tx: Any, function: FunctionVariable, locals_: dict[str, Any], parent: Frame | None) -> None:
        self.tx = tx
        self.function = function
        self.code = function.code
        self.decoded = decode(self.code)
        self.instructions = self.decoded.instructions
        bind_handlers(self.instructions)
        self.locals = locals_
        self.cells: dict[str, CellVariable] = {}
        self.stack: list[VariableTracker] = []
        self.ip = 0
        self.started_at = 0
        self.parent = parent
        self.step_at = 0
        self.is_direct = False
        """Whether the result of this inlined call is the result of the caller's CALL instruction: then it can be
        resumed.
        """
        self.keyword_names: tuple[str, ...] = ()
        self.result: VariableTracker = NONE

    # -- stack -----------------------------------------------------------------------------------------

    def push(self, value: VariableTracker) -> None:
        """Push a value."""
        self.stack.append(value)

    def pop(self) -> VariableTracker:
        """Pop the top value."""
        return self.stack.pop()

    def pop_many(self, count: int) -> list[VariableTracker]:
        """Pop ``count`` values; the last one pushed is last."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    # -- variables -------------------------------------------------------------------------------------

    def load_local(self, name: str) -> VariableTracker:
        """The value of a local."""
        value = self.locals.get(name)
        if type(value) is not VariableTracker and value is not None and not isinstance(value, VariableTracker):
            value = self.locals[name] = realize(self.tx, value)
        if value is None:
            message = f"cannot access local variable {name!r} where it is not associated with a value"
            raise self.tx.error(UnboundLocalError, message)
        return value

    def first_argument(self) -> VariableTracker:
        """The first parameter, wherever it lives now."""
        name = self.code.co_varnames[0]
        cell = self.cells.get(name)
        return cell.load(self.tx, name) if cell is not None else self.load_local(name)

    @property
    def line(self) -> int:
        """The line of the instruction that runs."""
        return self.instructions[self.started_at].line

    def steps_to_break(self) -> list[int]:
        """Steps where the graph can end because of what runs here, best first: in this frame, if it can be resumed,
        then in its callers.
        """
        chain: list[Frame] = []
        at: Frame | None = self
        while at is not None:
            chain.append(at)
            at = at.parent
        chain.reverse()
        usable = [chain[0]]
        for inner in chain[1:]:
            if not inner.is_direct:
                break
            usable.append(inner)
        return [f.step_at for f in reversed(usable)]

    # -- running ---------------------------------------------------------------------------------------

    def run(self) -> str:
        """Interpret until the frame returns or yields; the value is in ``result``.

        Raises:
            StopTranslation: at a step where the graph must end, in this frame or in one that it inlines.
            ObservedException: an exception of the traced program leaves an inlined frame.
        """
        tx = self.tx
        instructions = self.instructions
        breaks = tx.breaks
        outer, tx.frame = tx.frame, self
        try:
            while True:
                index = self.ip
                self.started_at = index
                self.ip = index + 1
                instruction = instructions[index]
                tx.step = self.step_at = tx.step + 1
                if breaks and tx.step in breaks:
                    self.ip = index
                    raise StopTranslation(self)
                try:
                    status = instruction.handler(self, instruction)
                except ObservedException as error:
                    self._handle(error)
                    continue
                if status is not None:
                    return status
        except Unsupported as error:
            if error.frame is None:
                error.frame = self
            raise
        finally:
            tx.frame = outer

    def _handle(self, error: ObservedException) -> None:
        """Unwind; an exception that leaves the root frame is raised by Python itself, so the graph ends in front
        of it.
        """
        if self.parent is not None:
            self.unwind(error)
            return
        try:
            self.unwind(error)
        except ObservedException:
            raise Unsupported(f"an exception that leaves the function: {_describe(error)}") from error

    def unwind(self, error: ObservedException) -> None:
        """Go to the handler of the instruction that raised; raises ``error`` again when the frame has none."""
        entry = self.decoded.handler_of(self.started_at)
        where = getattr(error.variable, "where", None)
        if where is not None and self.instructions[self.started_at].name != "RERAISE":
            where.append((self.code.co_name, self.code.co_filename, self.line))
        if entry is None:
            raise error
        if self.instructions[entry.target].name == "LIST_APPEND":
            # the body of an except*: what is raised again is told from what is new by tracebacks, which replayed errors
            # lack
            raise Unsupported("an exception raised inside except*")
        del self.stack[entry.depth :]
        if entry.lasti:
            self.stack.append(ConstantVariable(self.instructions[self.started_at].offset // 2))
        self.stack.append(error.variable)
        self.ip = entry.target


def bind_handlers(instructions: list[Any]) -> None:
    """Look up the handlers of a code object's instructions, once."""
    if instructions[0].handler is None:
        table = handlers()
        for instruction in instructions:
            instruction.handler = table.get(instruction.name, _missing)


def _missing(frame: Frame, instruction: Any) -> None:
    raise Unsupported(f"the bytecode instruction {instruction.name}")


def _describe(error: ObservedException) -> str:
    args = error.variable.args
    try:
        return f"{error.variable.cls.__name__}{args.as_constant()!r}"
    except Exception:  # noqa: BLE001  (only a message; an argument may be anything)
        return error.variable.cls.__name__
