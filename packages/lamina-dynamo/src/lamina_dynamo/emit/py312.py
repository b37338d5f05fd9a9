"""What CPython 3.12 spells otherwise than 3.11: no PRECALL, method bit in LOAD_ATTR, END_FOR behind loops."""

from __future__ import annotations

from collections.abc import Sequence

from bytecode import Instr

from .py311 import (
    LOOP_EXIT_DROPS,
    NULL_AFTER_CALLABLE,
    call_ex,
    load_cell,
    load_global,
    make_function,
    reraise,
    subscript,
)

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


def call(arguments: int, keywords: Sequence[str]) -> list[Instr]:
    """Call with `arguments` values in all, the last ones by these keywords."""
    code = [Instr("KW_NAMES", tuple(keywords))] if keywords else []
    return [*code, Instr("CALL", arguments)]


def is_call_group(name: str) -> bool:
    """Whether the instruction belongs in front of the CALL that follows it."""
    return name == "KW_NAMES"


def load_attr(name: str) -> Instr:
    """Replace the top by its attribute."""
    return Instr("LOAD_ATTR", (False, name))


def load_method_as_attribute(instruction: Instr) -> list[Instr] | None:
    """For an instruction that pushes a method in two slots: the same as attribute and NULL. None for any other."""
    if instruction.name == "LOAD_ATTR" and instruction.arg[0]:
        return [load_attr(instruction.arg[1]), Instr("PUSH_NULL"), Instr("SWAP", 2)]
    if instruction.name == "LOAD_SUPER_ATTR" and instruction.arg[0]:
        plain = Instr("LOAD_SUPER_ATTR", (False, *instruction.arg[1:]))
        return [plain, Instr("PUSH_NULL"), Instr("SWAP", 2)]
    return None


def loop_exit_pad() -> tuple[list[Instr], int]:
    """FOR_ITER drops the iterator and skips the END_FOR at its target."""
    return [Instr("END_FOR")], 1
