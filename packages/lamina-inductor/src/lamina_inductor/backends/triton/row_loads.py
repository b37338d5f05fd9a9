"""Loads of whole rows: all under way before the first reduction, and apart from what is read again and again.

A reduction may need a barrier, behind which the next load would wait for memory once more. And where rows are combined
with a smaller table (the angles of rotary embeddings) that many of them share, the rows, which are read and written
once, make way for it in the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx.symbolic import Expr

from ...ir.kernel import Load, Loop, Stmt, Store, walk
from .tiles import constant

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["rows_first", "stores_last", "streaming"]

MOST_REGISTERS = 64
"""Of a thread, for rows that are loaded ahead of their use."""

TABLE = 1 << 22
"""Most elements of a table that stays in the cache."""


def rows_first(writer: PhaseWriter) -> None:
    """Print the loads of rows at the start of a phase whose tile holds them."""
    loop = next((s for s in writer.phase.body if type(s) is Loop), None)
    if loop is None:
        return
    stored = {s.buffer for s in walk(writer.phase.body) if type(s) is Store}
    loads = {s.name: s for s in walk(writer.phase.body) if type(s) is Load and _is_row(writer, loop, s)}
    writer.repeated = max([_table(s) for s in loads.values()], default=-1)
    per_thread = writer.tile.x * writer.tile.r / (32 * writer.tile.warps)
    taken = sum(per_thread * writer.declared[s.buffer].itemsize / 4 for s in loads.values())
    if len(loads) < 2 or taken > MOST_REGISTERS:
        return
    writer.begin_row(loop)
    for load in [s for s in walk(writer.phase.body) if type(s) is Load]:
        # A weight among them, too: the compiler gives all of them one layout then.
        wanted = load.name in loads or (writer.tile.x > 1 and _is_weight(writer, loop, load))
        if wanted and load.name not in writer.shapes and load.buffer not in stored and load.mask is None:
            writer.statement(load)


def _is_row(writer: PhaseWriter, loop: Loop, stmt: Load | Store) -> bool:
    """Does the access go over the whole tile, at places that are known at once?"""
    axes = {writer.phase.axis, loop.axis}
    return isinstance(stmt.index, Expr) and axes <= stmt.index.free_symbols <= axes | set(writer.names)


def _is_weight(writer: PhaseWriter, loop: Loop, stmt: Load) -> bool:
    """Is it the same for all rows?"""
    return isinstance(stmt.index, Expr) and {loop.axis} <= stmt.index.free_symbols <= {loop.axis, *writer.names}


def _table(stmt: Load | Store) -> int:
    """The last element of a small table; -1: it is none."""
    last: Any = constant(stmt.index.range()[1]) if isinstance(stmt.index, Expr) else None
    return last if last is not None and last < TABLE else -1


def streaming(writer: PhaseWriter, stmt: Load | Store) -> str:
    """The hint for an access to rows that makes way: in a phase that reads a table, too, or in the last pass over one
    row, beside the rows that other programs will read once more."""
    loop = next((s for s in writer.phase.body if type(s) is Loop), None)
    if writer.turned and writer.tile.x == 1 and loop is not None and _is_row(writer, loop, stmt):
        return ', eviction_policy="evict_first"'
    if writer.repeated < 0 or loop is None or not _is_row(writer, loop, stmt) or _table(stmt) >= 0:
        return ""
    return ', eviction_policy="evict_first"'


def stores_last(body: tuple[Stmt, ...]) -> list[Stmt]:
    """The statements with stores behind everything else, so that all loads are under way together: the compiler must
    take it that a store changes what a later load reads. Here an element is read before it is written."""
    loaded = {s.buffer for s in body if type(s) is Load}
    stores = [s for s in body if type(s) is Store]
    if any(s.mode != "set" or _loaded_after(body, s) for s in stores if s.buffer in loaded):
        return list(body)
    return [s for s in body if type(s) is not Store] + stores


def _loaded_after(body: tuple[Stmt, ...], store: Store) -> bool:
    return any(type(s) is Load and s.buffer == store.buffer for s in body[body.index(store) :])
