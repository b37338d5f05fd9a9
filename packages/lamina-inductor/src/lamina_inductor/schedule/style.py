"""How a kind of machine wants its loops: what a backend passes to ``build_program``.

``CPU_LOOPS`` is for cores with caches and vectors: rows in order, local arrays, epilogues of products. ``GRID_LOOPS``
is for a grid of programs over tiles: two axes at most, no local arrays, every reduction in the program of its row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .grid_nest import grid_nest, grid_scatter
from .nests import build_nest
from .scatter_nest import scatter_phases

__all__ = ["CPU_LOOPS", "GRID_LOOPS", "LoopStyle"]


@dataclass(frozen=True, slots=True)
class LoopStyle:
    """Which loops are made.

    nest: the phases of a group's statements, as ``nests.build_nest``. scatter: those of a scatter, as
    ``scatter_nest.scatter_phases``. late: may a kernel also reduce over the rows of its row reductions? epilogues: do
    kernels run on the rows of a product? fuse_limit: most values in one kernel.
    """

    nest: Callable[..., Any]
    scatter: Callable[..., Any]
    late: bool
    epilogues: bool
    fuse_limit: int


CPU_LOOPS = LoopStyle(build_nest, scatter_phases, late=True, epilogues=True, fuse_limit=192)
GRID_LOOPS = LoopStyle(grid_nest, grid_scatter, late=False, epilogues=False, fuse_limit=96)
