"""A phase of ``schedule.late_nest`` as statements of a phase's writer: one program walks a chunk of rows.

A local array is a tile with a row for each row that the program has in hand, which lives through the loop over the
chunk; its rows are added up behind it. What varies along the row only (a weight) is loaded before the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx.symbolic import Expr, Symbol

from ...ir.kernel import Let, Load, Local, Loop, Store, walk
from .literals import language_type
from .tiles import constant

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

PIPELINE_BYTES = 64 << 10
"""Most shared memory for rows that are on their way."""

__all__ = ["chunk_loop", "load_local", "store_local", "write_chunk"]


def chunk_loop(phase: Loop) -> Loop | None:
    """The loop over the rows of a chunk, if the phase has one."""
    return next((s for s in phase.body if type(s) is Loop and s.kind == "serial"), None)


def write_chunk(writer: PhaseWriter, phase: Loop, serial: Loop) -> None:
    """The whole phase."""
    wide = ".to(tl.int64)" if writer.wide else ""
    writer.add(f"{phase.axis.name} = tl.program_id(0){wide}")
    for local in [s for s in phase.body if type(s) is Local]:
        writer.locals[local.name] = local
        sides = "[XBLOCK, RBLOCK]" if local.size > 1 else "[XBLOCK, 1]"
        writer.add(f"{local.name} = tl.full({sides}, 0.0, {language_type(local.dtype)})")
    row = next(s for s in serial.body if type(s) is Loop)
    writer.begin_row(row)
    _hoist(writer, serial, row.axis)
    most: Any = constant(serial.extent) or constant(serial.extent.range()[1])
    end = writer.index(serial.extent)
    if most is None:
        writer.add(f"rows = {end}")
        most = end = "rows"
    stages = _stages(writer, serial)
    ahead = f"tl.range(0, {most}, XBLOCK, num_stages={stages})" if stages > 1 else f"range(0, {most}, XBLOCK)"
    writer.add(f"for step in {ahead}:")
    writer.depth += 1
    name = serial.axis.name
    writer.add(f"{name} = step + tl.arange(0, XBLOCK)[:, None]{wide}")
    writer.shapes[name] = frozenset("x")
    if constant(serial.extent) is None or most % writer.tile.x:
        writer.add(f"inside_x = {name} < {end}")
        writer.masks["x"] = ("inside_x", frozenset("x"))
    for stmt in serial.body:
        writer.statement(stmt)
    writer.depth -= 1
    writer.masks.pop("x", None)
    writer.summed = True
    for stmt in phase.body[phase.body.index(serial) + 1 :]:
        writer.statement(stmt)


def _stages(writer: PhaseWriter, serial: Loop) -> int:
    """How many steps are under way together: the rows of the next ones come into shared memory meanwhile."""
    axes = {serial.axis, next(s for s in serial.body if type(s) is Loop).axis}
    loads = {s.name: s for s in walk(serial.body) if type(s) is Load and s.buffer not in writer.locals}
    rows = [s for s in loads.values() if isinstance(s.index, Expr) and axes <= s.index.free_symbols]
    taken = sum(writer.declared[s.buffer].itemsize for s in rows) * writer.tile.x * writer.tile.r
    return 3 if 2 * taken <= PIPELINE_BYTES else 2 if taken <= PIPELINE_BYTES else 1


def _hoist(writer: PhaseWriter, serial: Loop, r: Symbol) -> None:
    """What depends on the place in the row alone, before the loop."""
    for loop in [s for s in serial.body if type(s) is Loop]:
        for stmt in loop.body:
            if type(stmt) is Load and stmt.buffer not in writer.locals and stmt.mask is None:
                fixed = isinstance(stmt.index, Expr) and stmt.index.free_symbols <= {r, *writer.names}
            elif type(stmt) is Let:
                fixed = all(a in writer.shapes for a in stmt.args if type(a) is str)
                fixed = fixed and any(type(a) is str for a in stmt.args)
            else:
                continue
            if fixed and stmt.name not in writer.shapes:
                writer.statement(stmt)


def load_local(writer: PhaseWriter, stmt: Load) -> None:
    """What the program has added up: its tile inside the loop, the sum of the tile's rows behind it."""
    local = writer.locals[stmt.buffer]
    vector = local.size > 1
    if not writer.summed:
        writer.define(stmt.name, local.name, local.dtype, frozenset("xr" if vector else "x"))
    elif vector:
        writer.define(stmt.name, f"tl.sum({local.name}, 0)[None, :]", local.dtype, frozenset("r"))
    else:
        writer.define(stmt.name, f"tl.sum({local.name})", local.dtype, frozenset())


def store_local(writer: PhaseWriter, stmt: Store) -> None:
    """The new tile; rows behind the last one add nothing."""
    mask, _ = writer.mask(frozenset("x"))
    value: Any = stmt.value
    writer.add(f"{stmt.buffer} = {f'tl.where({mask}, {value}, {stmt.buffer})' if mask else value}")
