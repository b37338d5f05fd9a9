"""From instructions to a code object, in the encoder's raw mode.

Depths and stack size are given, never computed by it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import CodeType

from bytecode import Bytecode, CellVar, FreeVar, Instr

from ..guard import is_plain

__all__ = ["Constant", "assemble", "cell_variable", "entry_sequence"]


_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
# 3.14: who makes a function of such code reads its first constant as the docstring; assembled code may have none
_HAS_DOCSTRING = getattr(inspect, "CO_HAS_DOCSTRING", 0)


class Constant:
    """A constant that the encoder must not compare by content: it merges equal ones, and arrays with equal bytes."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    @staticmethod
    def wrap(value: object) -> object:
        """Plain values as they are, others wrapped until the code object is made.

        A `Constant` itself may get its value any time before.
        """
        if type(value) is Constant:
            return value
        return value if is_plain(value) and type(value) not in (range, slice) else Constant(value)


def cell_variable(code: CodeType, name: str) -> CellVar | FreeVar | None:
    """The variable as the encoder wants it; None for a plain local."""
    if name in code.co_cellvars:
        return CellVar(name)
    return FreeVar(name) if name in code.co_freevars else None


def entry_sequence(code: CodeType, line: int | None = None) -> list[Instr]:
    """What a function does before its first statement: take its free variables, make its cells, RESUME."""
    line = code.co_firstlineno if line is None else line
    sequence = [Instr("COPY_FREE_VARS", len(code.co_freevars), lineno=line)] if code.co_freevars else []
    sequence += [Instr("MAKE_CELL", CellVar(name), lineno=line) for name in code.co_cellvars]
    return [*sequence, Instr("RESUME", 0, lineno=line)]


def assemble(
    code: CodeType,
    items: Sequence[object],
    depth: int,
    *,
    parameters: Sequence[str] | None = None,
    cells: Sequence[str] | None = None,
    free: Sequence[str] | None = None,
    name: str | None = None,
    first: Sequence[str] = (),
) -> CodeType:
    """Encode `items` with the names, flags and signature of `code`.

    Args:
        depth: the most the items themselves push; `code`'s own stack size is added, for parts of its body among them.
        parameters: plain positional parameters instead of `code`'s signature.
        cells: cell variables instead of `code`'s.
        free: free variables instead of `code`'s.
        name: another function name.
        first: variables whose slots are the first behind the arguments.
    """
    result = Bytecode(items)
    result.filename = code.co_filename
    result.first_lineno = code.co_firstlineno
    result.name = name or code.co_name
    result.qualname = name or code.co_qualname
    result.cellvars = list(code.co_cellvars if cells is None else cells)
    result.freevars = list(code.co_freevars if free is None else free)
    flags = code.co_flags & ~_HAS_DOCSTRING
    if parameters is None:
        count = code.co_argcount + code.co_kwonlyargcount + (flags & _VARIADIC).bit_count()
        result.argnames = [*code.co_varnames[:count], *first]
        result.argcount = code.co_argcount
        result.posonlyargcount = code.co_posonlyargcount
        result.kwonlyargcount = code.co_kwonlyargcount
        result.flags = flags  # type: ignore[assignment]
    else:
        result.argnames = list(parameters)
        result.argcount = len(parameters)
        result.flags = flags & ~_VARIADIC | inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS  # type: ignore[assignment]
    made = result.to_code(stacksize=code.co_stacksize + depth + 4, compute_exception_stack_depths=False)
    if any(type(value) is Constant for value in made.co_consts):
        made = made.replace(co_consts=tuple(v.value if type(v) is Constant else v for v in made.co_consts))
    return made
