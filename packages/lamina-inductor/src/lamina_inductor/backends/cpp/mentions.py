"""Which parameters of a kernel a phase uses, so that it declares no others."""

from __future__ import annotations

from collections.abc import Iterator

from lamina_fx.symbolic import Expr

from ...ir.kernel import Loop, Stmt, walk

__all__ = ["mentioned"]


def mentioned(loop: Loop) -> frozenset[str]:
    """Names of the buffers and size symbols that a loop uses."""
    found: set[str] = set()
    for stmt in walk((loop,)):
        for expr in _expressions(stmt):
            found.update(s.name for s in expr.free_symbols)
        buffer = getattr(stmt, "buffer", None)
        if buffer is not None:
            found.add(buffer)
    return frozenset(found)


_INDEX_FIELDS = (
    "extent", "index", "expr", "size", "grain", "first", "count", "start", "pitch", "stride", "rows", "columns",
)  # fmt: skip


def _expressions(stmt: Stmt) -> Iterator[Expr]:
    for field in _INDEX_FIELDS:
        value = getattr(stmt, field, None)
        if isinstance(value, Expr):
            yield value
