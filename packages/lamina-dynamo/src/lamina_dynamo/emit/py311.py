"""How CPython 3.11 spells calls, closures and loops. The later versions say only what differs from the one before.

Each function returns the instructions; the emitter adds locations and counts the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from bytecode import CellVar, FreeVar, Instr

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

NULL_AFTER_CALLABLE = False
"""Whether the empty slot of a plain call lies above the callable (3.13) or below it."""
LOOP_EXIT_DROPS = 1
"""Stack slots less where a loop is left by FOR_ITER, behind `loop_exit_pad`."""


def call(arguments: int, keywords: Sequence[str]) -> list[Instr]:
    """Call with `arguments` values in all, the last ones by these keywords."""
    code = [Instr("KW_NAMES", tuple(keywords))] if keywords else []
    return [*code, Instr("PRECALL", arguments), Instr("CALL", arguments)]


def call_ex(has_keywords: bool) -> list[Instr]:
    """Call with a tuple and, if asked, a dict: ``null callable tuple [dict]``."""
    return [Instr("CALL_FUNCTION_EX", int(has_keywords))]


def is_call_group(name: str) -> bool:
    """Whether the instruction belongs in front of the CALL that follows it."""
    return name in ("PRECALL", "KW_NAMES")


def load_global(name: str) -> Instr:
    """Push a global or builtin."""
    return Instr("LOAD_GLOBAL", (False, name))


def load_attr(name: str) -> Instr:
    """Replace the top by its attribute."""
    return Instr("LOAD_ATTR", name)


def load_method_as_attribute(instruction: Instr) -> list[Instr] | None:
    """For an instruction that pushes a method in two slots: the same as attribute and NULL. None for any other."""
    if instruction.name != "LOAD_METHOD":
        return None
    return [load_attr(instruction.arg), Instr("PUSH_NULL"), Instr("SWAP", 2)]


def load_cell(variable: CellVar | FreeVar) -> Instr:
    """Push the cell itself."""
    return Instr("LOAD_CLOSURE", variable)


def make_function(flags: int) -> list[Instr]:
    """Make a function from ``[defaults] [kwdefaults] [annotations] [closure] code``, as far as `flags` (1, 2, 4, 8)
    says."""
    return [Instr("MAKE_FUNCTION", flags)]


def reraise(instruction: Instr) -> Instr:
    """RERAISE as it may stand where the stack was rebuilt: the offset below the exception is an int like any other."""
    return instruction


def subscript() -> Instr:
    """``container key -> container[key]``."""
    return Instr("BINARY_SUBSCR")


def loop_exit_pad() -> tuple[list[Instr], int]:
    """What must stand where FOR_ITER jumps at the end of a loop, and the stack slots still to drop behind it.

    None here.
    """
    return [], 0
