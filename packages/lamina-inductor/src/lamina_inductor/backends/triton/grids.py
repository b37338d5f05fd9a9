"""How many programs run a phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina_fx.symbolic import Expr

from ...ir.kernel import Loop
from .axis_tiles import tile_loops
from .block_printer import block_loop
from .tiles import Tile, constant

__all__ = ["program_count"]


def program_count(phase: Loop, tile: Tile, in_call: Callable[[Any], Any]) -> Expr | int:
    """Tiles of the phase's axis, times blocks of a staged nest, or tiles of the axes below it. ``in_call`` gives the
    value of an extent."""
    count = _tiles(in_call(phase.extent), tile.step)
    blocks = block_loop(phase)
    if blocks is not None:
        count = count * _tiles(in_call(blocks.extent), 1)
    for loop, dim in zip(tile_loops(phase), tile.dims, strict=False):
        count = count * _tiles(in_call(loop.extent), tile.side(dim))
    return count


def _tiles(extent: Any, side: int) -> Any:
    known = constant(extent)
    return (extent + (side - 1)) // side if known is None else -(-known // side)
