"""Stacking, repeating, rolling, triangles and diagonals: composites that arrange elements anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import as_shape, canonical_dim, numel
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Shape, Tensor

__all__: list[str] = []


# -- stacking --------------------------------------------------------------------------------------------


@composite(
    names=("stack",),
    samples=calls(call([tensor(2, 3), tensor(2, 3)]), call([tensor(2, 3), tensor(2, 3)], -1), call([tensor()])),
    errors=[
        error(RuntimeError, "non-empty", []),
        error(RuntimeError, "equal size", [tensor(2), tensor(3)]),
        error(IndexError, "out of range", [tensor(2)], 2),
    ],
)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, all of one shape, side by side along a new dimension."""
    if not tensors:
        raise RuntimeError("stack: expected a non-empty list of tensors")
    shape = tuple(tensors[0].shape)
    place = canonical_dim("stack", dim, len(shape) + 1)
    for position, t in enumerate(tensors):
        if tuple(t.shape) != shape:
            raise RuntimeError(
                f"stack: each tensor is expected to be of equal size, but got {list(shape)} at entry 0 and "
                f"{list(t.shape)} at entry {position}"
            )
    return ops.cat([ops.unsqueeze(t, place) for t in tensors], place)


def _stacks(name: str, aliases: tuple[str, ...], least: int, dim: int, words: str) -> None:
    def join(tensors: Sequence[Tensor]) -> Tensor:
        wide = [getattr(ops, f"atleast_{least}d")(t) for t in tensors]
        return ops.cat(wide, 0 if name == "hstack" and len(wide[0].shape) == 1 else dim)

    join.__name__ = name
    join.__doc__ = f"The tensors joined {words}."
    composite(names=(name, *aliases), samples=calls(call([tensor(3), tensor(3)]), call([tensor(2, 3), tensor(2, 3)])))(
        join
    )


_stacks("hstack", (), 1, 1, "along the second dimension (the first of 1-d tensors)")
_stacks("vstack", ("row_stack",), 2, 0, "along the first dimension, 1-d tensors as rows")
_stacks("dstack", (), 3, 2, "along the third dimension")


@composite(names=("column_stack",), samples=calls(call([tensor(3), tensor(3, 2)])))
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side, 1-d tensors as columns."""
    return ops.cat([t if len(t.shape) > 1 else ops.reshape(t, (-1, 1)) for t in tensors], 1)


@composite(names=("block_diag",), variadic="tensors", samples=calls(call([tensor(2, 3), tensor(1, 2), tensor(2)])))
def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Matrices along the diagonal of a larger one, zeros elsewhere."""
    blocks = [ops.atleast_2d(t) for t in tensors]
    width = sum(b.shape[1] for b in blocks)
    rows, left = [], 0
    for block in blocks:
        rows.append(ops.pad(block, (0, left), (0, width - left - block.shape[1])))
        left = left + block.shape[1]
    return ops.cat(rows, 0)


# -- repeating -------------------------------------------------------------------------------------------


def _tiled(input: Any, counts: tuple[Any, ...]) -> Any:
    """``input`` (as many dimensions as counts) repeated: a broadcast in front of each dimension, then joined."""
    if all(type(c) is int and c == 1 for c in counts):
        return ops.clone(input)
    wide, dims = [], []
    for count, size in zip(counts, input.shape, strict=True):
        if not (type(count) is int and count == 1):
            wide.append(count)
        dims.append(len(wide))
        wide.append(size)
    shape = tuple(c * s for c, s in zip(counts, input.shape, strict=True))
    return ops.reshape(ops.broadcast_in_dim(input, tuple(wide), tuple(dims)), shape)


@composite(
    names=("Tensor.repeat",),
    variadic="repeats",
    samples=calls(
        call(tensor(2, 3), (2, 2)), call(tensor(3), (2, 1)), call(tensor(2, 3), (1, 1)), call(tensor(), (3,))
    ),
    errors=[error(RuntimeError, "can not be smaller", tensor(2, 3), (2,))],
)
def repeat(input: Tensor, repeats: Shape) -> Tensor:
    """``input`` repeated this often along each dimension (new dimensions in front)."""
    counts = as_shape("repeat", repeats)
    lead = len(counts) - len(input.shape)
    if lead < 0:
        raise RuntimeError(
            f"repeat: the number of counts {list(counts)} can not be smaller than the number "
            f"of dimensions of {list(input.shape)}"
        )
    return _tiled(ops.reshape(input, (1,) * lead + tuple(input.shape)), counts)


@composite(names=both("tile"), variadic="dims", samples=calls(call(tensor(2, 3), (2,)), call(tensor(3), (2, 2))))
def tile(input: Tensor, dims: Shape) -> Tensor:
    """``repeat`` with counts of 1 put in front where there are too few."""
    counts = as_shape("tile", dims)
    lead = max(len(input.shape) - len(counts), 0)
    return repeat(input, (1,) * lead + counts)


@composite(
    id="repeat_interleave",
    names=both("repeat_interleave"),
    samples=calls(call(tensor(2, 3), 2), call(tensor(2, 3), 3, 1), call(tensor(2, 3), 2, dim=-1)),
)
def repeat_interleave(input: Tensor, repeats: int, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element repeated ``repeats`` times in a row along ``dim`` (of the flat tensor when None)."""
    if dim is None:
        input, dim = ops.reshape(input, (-1,)), 0
    place = canonical_dim("repeat_interleave", dim, len(input.shape))
    shape = tuple(input.shape)
    wide = (*shape[: place + 1], repeats, *shape[place + 1 :])
    dims = tuple(d if d <= place else d + 1 for d in range(len(shape)))
    spread = ops.clone(input) if repeats == 1 else input  # never a view of the argument: the result may be written
    return ops.reshape(
        ops.broadcast_in_dim(spread, wide, dims), (*shape[:place], shape[place] * repeats, *shape[place + 1 :])
    )


@composite(
    id="repeat_interleave.tensor",
    names=both("repeat_interleave"),
    tags=frozenset({"dynamic"}),
)
def repeat_interleave_tensor(
    input: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Element i repeated ``repeats[i]`` times along ``dim``; ``output_size`` is the sum of ``repeats`` when known."""
    if dim is None:
        input, dim = ops.reshape(input, (-1,)), 0
    place = canonical_dim("repeat_interleave", dim, len(input.shape))
    repeats = ops.broadcast_to(repeats, (input.shape[place],))
    ends = ops.cumsum(repeats, 0)
    total = int(ops.select(ends, 0, -1)) if output_size is None else output_size
    return ops.index_select(input, place, ops.searchsorted(ends, ops.iota(total, device=input.device), right=True))


@composite(
    names=both("roll"),
    samples=calls(
        call(tensor(2, 3), 1), call(tensor(2, 3), 1, 0), call(tensor(2, 3), (1, -1), (0, 1)), call(tensor(5), 7, 0)
    ),
    errors=[error(RuntimeError, "as many", tensor(2, 3), (1, 2), (0,))],
)
def roll(input: Tensor, shifts: int | Shape, dims: int | Shape | None = None) -> Tensor:
    """Elements moved by ``shifts`` along ``dims``; those pushed out come in at the other end. None: the flat tensor."""
    if dims is None or dims == ():
        return ops.reshape(roll(ops.reshape(input, (-1,)), shifts, 0), tuple(input.shape))
    shifts, dims = as_shape("roll", shifts), as_shape("roll", dims)
    if len(shifts) != len(dims):
        raise RuntimeError(f"roll: as many shifts as dims are wanted, got {shifts} and {dims}")
    given = input
    for shift, dim in zip(shifts, dims, strict=True):
        place = canonical_dim("roll", dim, len(input.shape))
        size = input.shape[place]
        if type(size) is int and size == 0:
            continue
        by = shift % size
        if not (type(by) is int and by == 0):
            input = ops.cat([ops.slice(input, place, size - by), ops.slice(input, place, 0, size - by)], place)
    return ops.clone(input) if input is given else input  # never the argument itself: what it gives may be written


@composite(names=both("fliplr"), samples=calls(call(tensor(2, 3))))
def fliplr(input: Tensor) -> Tensor:
    """The order of the columns reversed."""
    return ops.flip(input, (1,))


@composite(names=both("flipud"), samples=calls(call(tensor(2, 3))))
def flipud(input: Tensor) -> Tensor:
    """The order of the rows reversed."""
    return ops.flip(input, (0,))


@composite(
    names=both("rot90"),
    samples=calls(call(tensor(2, 3)), call(tensor(2, 3), 2), call(tensor(2, 3), -1), call(tensor(2, 3), 4)),
)
def rot90(input: Tensor, k: int = 1, dims: Shape = (0, 1)) -> Tensor:
    """Turned ``k`` times by 90 degrees in the plane of ``dims``, from the first towards the second."""
    a, b = (canonical_dim("rot90", d, len(input.shape)) for d in dims)
    turns = k % 4
    if turns == 0:
        return ops.clone(input)
    if turns == 2:
        return ops.flip(input, (a, b))
    flipped = ops.flip(input, (b if turns == 1 else a,))
    return ops.transpose(flipped, a, b) if turns == 1 else ops.transpose(ops.flip(input, (a,)), a, b)


# -- grids -----------------------------------------------------------------------------------------------


@composite(
    names=("meshgrid",),
    variadic="tensors",
    samples=calls(call([tensor(2), tensor(3)]), call([tensor(2), tensor(3)], indexing="xy")),
    errors=[error(RuntimeError, "indexing", [tensor(2)], indexing="no")],
)
def meshgrid(tensors: Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid: tensor k varies along dimension k (``"ij"``), or the first two exchanged (``"xy"``)."""
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f"meshgrid: indexing must be 'ij' or 'xy', not {indexing!r}")
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    swap = indexing == "xy" and len(given) > 1
    if swap:
        given[0], given[1] = given[1], given[0]
    shape = tuple(numel(t.shape) for t in given)
    grids = [ops.broadcast_in_dim(ops.reshape(t, (shape[d],)), shape, (d,)) for d, t in enumerate(given)]
    if swap:
        grids = [ops.transpose(g, 0, 1) for g in grids]
        grids[0], grids[1] = grids[1], grids[0]
        grids[0], grids[1] = ops.transpose(grids[0], 0, 1), ops.transpose(grids[1], 0, 1)
        grids[2:] = [ops.transpose(g, 0, 1) for g in grids[2:]]
    return tuple(grids)


@composite(
    names=("cartesian_prod",), variadic="tensors", samples=calls(call([tensor(2), tensor(3)]), call([tensor(3)]))
)
def cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    """All tuples with one element from each vector, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    return ops.stack([ops.reshape(g, (-1,)) for g in meshgrid(tensors)], 1)


@composite(names=both("kron"), samples=calls(call(tensor(2, 3), tensor(3, 2)), call(tensor(2), tensor(2, 2))))
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of ``input`` times ``other``."""
    ndim = max(len(input.shape), len(other.shape))
    a = (1,) * (ndim - len(input.shape)) + tuple(input.shape)
    b = (1,) * (ndim - len(other.shape)) + tuple(other.shape)
    left = ops.reshape(input, tuple(x for s in a for x in (s, 1)))
    right = ops.reshape(other, tuple(x for s in b for x in (1, s)))
    return ops.reshape(ops.mul(left, right), tuple(x * y for x, y in zip(a, b, strict=True)))
