"""What CPython 3.14 spells otherwise than 3.13: subscripts are a BINARY_OP, the iterator outlives the END_FOR."""

from __future__ import annotations

from bytecode import BinaryOp, CellVar, FreeVar, Instr

from .. import _core
from .assemble import Constant
from .py313 import (
    NULL_AFTER_CALLABLE,
    call,
    is_call_group,
    load_attr,
    load_global,
    make_function,
)
from .py313 import load_method_as_attribute as load_method_before

LOOP_EXIT_DROPS = 0

__all__ = [
    "LOOP_EXIT_DROPS",
    "NULL_AFTER_CALLABLE",
    "call",
    "call_ex",
    "is_call_group",
    "load_attr",
    "load_cell",
    "load_global",
    "load_method_as_attribute",
    "loop_exit_pad",
    "make_function",
    "reraise",
    "subscript",
]


def call_ex(has_keywords: bool) -> list[Instr]:
    """Call with a tuple and, if asked, a dict: ``callable null tuple dict-or-null``."""
    return [*([] if has_keywords else [Instr("PUSH_NULL")]), Instr("CALL_FUNCTION_EX")]


def load_cell(variable: CellVar | FreeVar) -> Instr:
    """Push the cell itself: it lies in the variable's slot."""
    return Instr("LOAD_FAST", variable)


def load_method_as_attribute(instruction: Instr) -> list[Instr] | None:
    """For an instruction that pushes a method in two slots: the same as attribute and NULL. None for any other.

    LOAD_SPECIAL leaves a method and its owner, or a callable and a NULL: which, only the value tells.
    """
    if instruction.name != "LOAD_SPECIAL":
        return load_method_before(instruction)
    function, name = Constant(_core.special_method), ("__enter__", "__exit__")[int(instruction.arg)]
    below = [Instr("LOAD_CONST", function), Instr("SWAP", 2), Instr("PUSH_NULL"), Instr("SWAP", 2)]
    return [*below, Instr("LOAD_CONST", name), Instr("CALL", 2), Instr("PUSH_NULL")]


def reraise(instruction: Instr) -> Instr:
    """RERAISE as it may stand where the stack was rebuilt.

    The offset below the exception, which it would restore, is no object: only the interpreter's own unwinding can push
    one, and what was rebuilt has an int there. Without it the frame's line is that of the RERAISE; tracebacks keep the
    line that raised.
    """
    return Instr("RERAISE", 0, location=instruction.location)


def subscript() -> Instr:
    """``container key -> container[key]``."""
    return Instr("BINARY_OP", BinaryOp.SUBSCR)


def loop_exit_pad() -> tuple[list[Instr], int]:
    """FOR_ITER leaves the iterator and skips the END_FOR at its target; a POP_ITER follows it."""
    return [Instr("END_FOR")], 1
