"""What CPython 3.13 spells otherwise than 3.12.

NULL above the callable, CALL_KW, cells by LOAD_FAST, function attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bytecode import CellVar, FreeVar, Instr

from .py312 import LOOP_EXIT_DROPS, call_ex, load_attr, load_global, reraise, subscript

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

NULL_AFTER_CALLABLE = True


def call(arguments: int, keywords: Sequence[str]) -> list[Instr]:
    """Call with `arguments` values in all, the last ones by these keywords."""
    if keywords:
        return [Instr("LOAD_CONST", tuple(keywords)), Instr("CALL_KW", arguments)]
    return [Instr("CALL", arguments)]


def is_call_group(name: str) -> bool:
    """Keyword names are an ordinary stack value here."""
    del name
    return False


def load_method_as_attribute(instruction: Instr) -> list[Instr] | None:
    """For an instruction that pushes a method in two slots: the same as attribute and NULL. None for any other."""
    if instruction.name == "LOAD_ATTR" and instruction.arg[0]:
        return [load_attr(instruction.arg[1]), Instr("PUSH_NULL")]
    if instruction.name == "LOAD_SUPER_ATTR" and instruction.arg[0]:
        return [Instr("LOAD_SUPER_ATTR", (False, *instruction.arg[1:])), Instr("PUSH_NULL")]
    return None


def load_cell(variable: CellVar | FreeVar) -> Instr:
    """Push the cell itself: it lies in the variable's slot."""
    return Instr("LOAD_FAST", variable)


def make_function(flags: int) -> list[Instr]:
    """Make a function from ``[defaults] [kwdefaults] [annotations] [closure] code``, as far as `flags` (1, 2, 4, 8)
    says."""
    attributes = [Instr("SET_FUNCTION_ATTRIBUTE", flag) for flag in (8, 4, 2, 1) if flags & flag]
    return [Instr("MAKE_FUNCTION"), *attributes]


def loop_exit_pad() -> tuple[list[Instr], int]:
    """FOR_ITER drops the iterator and skips the END_FOR and POP_TOP at its target."""
    return [Instr("END_FOR"), Instr("POP_TOP")], 2
