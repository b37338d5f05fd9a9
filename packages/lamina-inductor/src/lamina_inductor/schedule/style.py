"""How a kind of machine wants its loops: what a backend passes to ``build_program``.

``CPU_LOOPS`` is for cores with caches and vectors: rows in order, local arrays, epilogues of products. ``GRID_LOOPS``
is for a grid of programs over tiles: two axes at most, no local arrays, every reduction in the program of its row,
epilogues on the tiles of products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .epilogues import fits_rows
from .grid_nest import grid_nest, grid_scatter
from .nests import build_nest
from .scatter_nest import scatter_phases
from .tables import tables_of
from .tile_nest import fits_tile

__all__ = ["CPU_LOOPS", "GRID_LOOPS", "LoopStyle"]


@dataclass(frozen=True, slots=True)
class LoopStyle:
    """Which loops are made.

    nest: the phases of a group's statements, as ``nests.build_nest``. scatter: those of a scatter, as
    ``scatter_nest.scatter_phases``. late: how long rows may be where a kernel also reduces over them (0: it may not).
    epilogue: may a kernel run on the rows, or the tiles, of a product (``epilogues.fits_rows``,
    ``tile_nest.fits_tile``)? tiles: do epilogues take tiles from registers (then one that does not fit is made again
    with loops of its own)? fuse_limit: most values in one kernel. images_last: do convolutions read images with their
    channels last? row_scans: do scans stand in loops over rows (``fuse.Fusion``)? again: which values are computed
    again where they are read (``materialize.materialize``)?
    """

    nest: Callable[..., Any]
    scatter: Callable[..., Any]
    late: int
    epilogue: Callable[..., bool]
    tiles: bool
    fuse_limit: int
    images_last: bool = False
    row_scans: bool = False
    again: Callable[..., Any] | None = None


CPU_LOOPS = LoopStyle(build_nest, scatter_phases, late=1 << 40, epilogue=fits_rows, tiles=False, fuse_limit=192)
GRID_LOOPS = LoopStyle(
    *(grid_nest, grid_scatter),
    late=8192,
    epilogue=fits_tile,
    tiles=True,
    fuse_limit=96,
    images_last=True,
    row_scans=True,
    again=tables_of,
)
