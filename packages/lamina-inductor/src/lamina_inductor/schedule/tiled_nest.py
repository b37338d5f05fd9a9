"""Loops of a pointwise group whose accesses walk memory along different axes: tiles of two or three axes.

One axis for all (``parallel simd x``) lets neighbours in a program be neighbours in memory for one access only; another
one, of a transposed operand, would step from line to line. With a tile of both axes each access has whole lines, and
the backend exchanges the elements inside of the program. All other axes are one, whose place is a number of the
program.

    a + b.T over [R, C]:    parallel i2 < 1:  tile i0 < R:  tile i1 < C:  v1 = a[C*i0 + i1];  v2 = b[R*i1 + i0];  ...
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from lamina_fx.symbolic import Expr, Symbol

from ..ir.kernel import Load, Loop, Stmt, Store
from .blocks import as_index
from .coalesce import coalesce, order_axes, walked_axis, walked_last
from .flat import Flat, affine, analyse, substitute
from .groups import axis_symbol
from .rows import flat_rows
from .split_axes import split_axes

__all__ = ["tiled_nest"]

FEW = 1024
"""So many elements are one tile anyway. Two axes with fewer take a third one into the tile."""

BLOCK, SHORT = 512, 4
"""Elements of a block of memory that an access walks in another order, and of an axis that it walks single bytes by: up
to these one axis for all is better."""

SHARED, FEW_NEIGHBOURS = 24, 32
"""Work that is worth a tile to do it once for several elements, and the fewest elements along the other axis."""


def tiled_nest(flat: Flat) -> Loop | None:
    """The phase for statements without reductions; None where one axis for all is as good."""
    split = split_axes(flat.statements, flat.axes, flat.sizes)
    if split is not None:
        statements, axes, sizes = split
        axes = walked_last(statements, order_axes(statements, axes))
        phase = _phase(analyse(*coalesce(statements, axes, sizes, frozenset())))
        if phase is not None:
            return phase
    return _phase(flat)


def _phase(flat: Flat) -> Loop | None:
    tiled = _tiled_axes(flat)
    if not tiled:
        return None
    flat = _forwards(flat, tiled)
    others, number = [a for a in flat.axes if a not in tiled], len(flat.axes)
    flat, batch = flat_rows(flat, others, number) if others else (flat, axis_symbol(number, 1))
    body: tuple[Stmt, ...] = tuple([i.stmt for i in flat.info.values()])
    for axis in reversed(tiled):
        body = (Loop(axis, as_index(flat.sizes[axis]), "tile", body),)
    return Loop(batch, as_index(flat.sizes.get(batch, 1)), "parallel", body)


def _tiled_axes(flat: Flat) -> list[Symbol]:
    """Outermost first; none where no access that steps along the last axis walks memory by another one."""
    total = flat.extent(flat.axes)
    if len(flat.axes) < 2 or (type(total) is int and total <= FEW):
        return []
    last, known = flat.axes[-1], frozenset(flat.axes)
    sizes = [flat.sizes[a] for a in flat.axes]
    within = dict(zip(reversed(flat.axes), accumulate(reversed(sizes), _product, initial=1), strict=False))
    votes: dict[Symbol, int] = {}
    for stmt in flat.statements:
        if type(stmt) is not Load and type(stmt) is not Store:
            continue
        steps = affine(stmt.index, known)
        walked = walked_axis(steps, last)
        if walked is None or walked is last or last not in _varies(stmt.index, flat):
            continue
        block = within[walked] * flat.sizes[walked]
        short = type(stmt) is Load and stmt.dtype.itemsize == 1 and _at_most(flat.sizes[walked], SHORT)
        if not short and not _at_most(block, BLOCK):
            votes[walked] = votes.get(walked, 0) + len(steps)  # type: ignore[arg-type]
    if not votes:
        return _shared(flat)
    chosen = {last, *sorted(votes, key=lambda a: -votes[a])[:2]}
    if len(chosen) == 2 and _is_small([flat.sizes[a] for a in chosen]):
        chosen.update([a for a in flat.axes if a not in chosen][-1:])
    return [a for a in flat.axes if a in chosen]


def _shared(flat: Flat) -> list[Symbol]:
    """The last axis and the one along which most of the work is the same, if there is much: what many channels read at
    one place, whose position takes some computing. A backend may do it once for several of them, or have a program stay
    in one image.

    The last axis comes first: a backend that sees no neighbours in the indices that were looked up gives neighbouring
    threads those along the first one."""
    last, same = flat.axes[-1], dict.fromkeys(flat.axes[:-1], 0)
    for info in flat.info.values():
        for axis in same:
            if last in info.axes and axis not in info.axes and type(info.stmt) is not Store:
                same[axis] += info.cost
    axis = max(same, key=lambda a: same[a])
    several, neighbours = flat.sizes[axis], flat.sizes[last]
    if same[axis] < SHARED or type(several) is not int or (type(neighbours) is int and neighbours < FEW_NEIGHBOURS):
        return []
    return [last, axis]


def _varies(index: Any, flat: Flat) -> frozenset[Symbol]:
    """The axes that an index depends on, by what was looked up for it, too."""
    free = index.free_symbols if isinstance(index, Expr) else frozenset()
    return free.union(*[flat.info[s].axes for s in free if s in flat.info])


def _forwards(flat: Flat, tiled: list[Symbol]) -> Flat:
    """The same with axes turned round that are walked backwards alone: forth, a thread moves several elements at
    once."""
    known, steps = frozenset(flat.axes), {axis: set[int]() for axis in tiled}
    for stmt in flat.statements:
        if type(stmt) is Load or type(stmt) is Store:
            found = affine(stmt.index, known)
            walked = walked_axis(found, tiled[-1])
            if found and walked in steps:
                steps[walked].add(found[walked])
    turned: dict[Any, Any] = {a: flat.sizes[a] - 1 - a for a in tiled if steps[a] == {-1}}
    if not turned:
        return flat
    return analyse([substitute(s, turned) for s in flat.statements], flat.axes, flat.sizes, flat.inner)


def _at_most(size: Any, most: int) -> bool:
    return type(size) is int and size <= most


def _product(a: Any, b: Any) -> Any:
    return a * b


def _is_small(sizes: list[Any]) -> bool:
    """With sides that are powers of two."""
    return all(type(s) is int for s in sizes) and _product(*[1 << (s - 1).bit_length() for s in sizes]) < FEW
