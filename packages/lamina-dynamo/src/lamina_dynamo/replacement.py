"""Code objects that stand in for others.

The flat form of a replacement, and the code through which dropped frames leave.
"""

from __future__ import annotations

import dis
from types import CodeType

from . import _core

__all__ = ["flat_code"]


def flat_code(code: CodeType, more: int = 0) -> CodeType:
    """The same code with every argument slot a positional parameter: how a frame without room for it runs it.

    ``more``: that many variables behind the arguments are parameters as well.
    """
    count = more + code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    flags = code.co_flags & ~0x0C
    return code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)


def _drop_code() -> CodeType:
    """``return None`` without RESUME: frames that never run leave through it, without a trace event."""
    code = (lambda: None).__code__
    if "RETURN_CONST" in dis.opmap:
        words = [dis.opmap["RETURN_CONST"], code.co_consts.index(None)]
    else:
        words = [dis.opmap["LOAD_CONST"], code.co_consts.index(None), dis.opmap["RETURN_VALUE"], 0]
    return code.replace(co_code=bytes(words))


_core.set_drop_code(_drop_code())
