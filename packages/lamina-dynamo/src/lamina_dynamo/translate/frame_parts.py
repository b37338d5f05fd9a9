"""The empty stack slot, apart from ``frame`` because both frames and handlers need it."""

from __future__ import annotations

from typing import Any

from ..variables import VariableTracker

__all__ = ["NULL"]


class _Null(VariableTracker):
    """The empty slot that CPython pushes beside a callable."""

    __slots__ = ()

    def reconstruct(self, cg: Any) -> None:
        cg.emitter.push_null()

    def __repr__(self) -> str:
        return "NULL"


NULL = _Null()
