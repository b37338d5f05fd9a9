"""A phase of ``schedule.staged_nest`` over blocks of rows, as statements of a phase's writer: a program takes a tile of
the kept axis and one block. Programs side by side take tiles side by side; every other phase begins where the one
before ended, which is in the cache still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.kernel import Loop
from .tiles import constant

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["block_loop", "write_block"]


def block_loop(phase: Loop) -> Loop | None:
    """The loop over blocks, if the phase has one."""
    return next((s for s in phase.body if type(s) is Loop and s.kind == "blocks"), None)


def write_block(writer: PhaseWriter, phase: Loop, blocks: Loop) -> None:
    """The whole phase."""
    wide = ".to(tl.int64)" if writer.wide else ""
    extent, x = constant(phase.extent), writer.tile.x
    tiles = f"(({writer.index(phase.extent)} + {x - 1}) // {x})" if extent is None else str(-(-extent // x))
    back = "tl.num_programs(0) - 1 - " if writer.turns else ""
    writer.add(f"program = {back}tl.program_id(0){wide}")
    writer.add(f"{blocks.axis.name} = program // {tiles}")
    writer.shapes[blocks.axis.name] = frozenset()
    writer.begin(f"program % {tiles}")
    for stmt in phase.body:
        if stmt is blocks:
            writer.all_of(blocks.body)
        else:
            writer.statement(stmt)
