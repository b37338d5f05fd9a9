"""Parts of a tensor as views: select, narrow, split, chunk, unbind, diagonal, unfold."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..arrays import spec_of
from ..dims import canonical_dim
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Shape, Size, Tensor

__all__: list[str] = []


def _ndim(x: Any) -> int:
    return len(x.shape)


# -- parts -----------------------------------------------------------------------------------------------


@composite(
    names=both("select"),
    alias=True,
    samples=calls(call(tensor(2, 3), 0, 1), call(tensor(2, 3), -1, -1)),
    errors=[
        error(IndexError, "index 5 is out of bounds for dimension 0 with size 2", tensor(2, 3), 0, 5),
        error(IndexError, "no dimensions", tensor(), 0, 0),
    ],
)
def select(input: Tensor, dim: int, index: Size) -> Tensor:
    """The slice ``index`` along ``dim``, without that dimension."""
    if not input.shape:
        raise IndexError("select: a tensor with no dimensions has nothing to select")
    place = canonical_dim("select", dim, _ndim(input))
    size = input.shape[place]
    if not -size <= index or not index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    start = index + size if index < 0 else index
    part = ops.slice(input, place, start, start + 1)
    return ops.reshape(part, (*input.shape[:place], *input.shape[place + 1 :]))


@composite(
    names=both("narrow"),
    alias=True,
    samples=calls(call(tensor(5, 3), 0, 1, 3), call(tensor(5, 3), 1, -2, 2)),
    errors=[error(RuntimeError, r"start \(1\) \+ length \(5\) exceeds dimension size \(2\)", tensor(2, 3), 0, 1, 5)],
)
def narrow(input: Tensor, dim: int, start: Size, length: Size) -> Tensor:
    """``length`` slices along ``dim``, from ``start`` on."""
    size = input.shape[canonical_dim("narrow", dim, _ndim(input))]
    if length < 0:
        raise RuntimeError(f"narrow: length must be non-negative, not {length}")
    begin = start + size if start < 0 else start
    if begin < 0 or begin + length > size:
        raise RuntimeError(f"narrow: start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return ops.slice(input, dim, begin, begin + length)


def _cut(input: Any, dim: int, sizes: Sequence[Any]) -> tuple[Any, ...]:
    parts, start = [], 0
    for size in sizes:
        parts.append(ops.slice(input, dim, start, start + size))
        start = start + size
    return tuple(parts)


@composite(
    names=both("split"),
    alias=True,
    samples=calls(call(tensor(5, 2), 2), call(tensor(5, 2), [1, 4]), call(tensor(2, 6), 3, -1), call(tensor(4), 4)),
    errors=[error(RuntimeError, "sum exactly to 5", tensor(5), [2, 2])],
)
def split(tensor: Tensor, split_size_or_sections: int | Shape, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of this size along ``dim`` (the last may be smaller), or parts of these sizes."""
    place = canonical_dim("split", dim, _ndim(tensor))
    size = tensor.shape[place]
    if isinstance(split_size_or_sections, (tuple, list)):
        if sum(split_size_or_sections) != size:
            raise RuntimeError(
                f"split: the sizes {list(split_size_or_sections)} must sum exactly to {size} "
                f"(the size of dimension {dim})"
            )
        return _cut(tensor, place, split_size_or_sections)
    step: Any = split_size_or_sections
    if step <= 0 and not (step == 0 and size == 0):
        raise RuntimeError(f"split: the size of a part must be positive, not {step}")
    whole = int(size)
    starts = range(0, whole, step) if whole else (0,)
    return _cut(tensor, place, [min(step, whole - s) for s in starts])


@composite(names=("split_with_sizes", "Tensor.split_with_sizes"), alias=True, samples=calls(call(tensor(5, 2), [1, 4])))
def split_with_sizes(input: Tensor, split_sizes: Shape, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of these sizes along ``dim``."""
    return split(input, list(split_sizes), dim)


@composite(
    names=both("chunk"),
    alias=True,
    samples=calls(call(tensor(5, 2), 2), call(tensor(2, 6), 3, -1), call(tensor(3), 5)),
    errors=[error(RuntimeError, "greater than 0", tensor(3), 0)],
)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` parts of equal size along ``dim`` (the last may be smaller)."""
    if chunks <= 0:
        raise RuntimeError(f"chunk: the number of chunks must be greater than 0, not {chunks}")
    size = int(input.shape[canonical_dim("chunk", dim, _ndim(input))])
    return split(input, max(-(-size // chunks), 1), dim) if size else tuple(split(input, [0] * chunks, dim))


def _even(size: int, sections: int) -> list[int]:
    base, extra = divmod(size, sections)
    return [base + (k < extra) for k in range(sections)]


@composite(
    names=both("tensor_split"),
    alias=True,
    samples=calls(call(tensor(7, 2), 3), call(tensor(7), [2, 5]), call(tensor(2, 7), 3, 1)),
)
def tensor_split(input: Tensor, indices_or_sections: int | Shape, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts that differ in size by at most 1, or parts cut before these indices."""
    place = canonical_dim("tensor_split", dim, _ndim(input))
    size = int(input.shape[place])
    if isinstance(indices_or_sections, int):
        return _cut(input, place, _even(size, indices_or_sections))
    cuts = [0, *indices_or_sections, size]
    return tuple(ops.slice(input, place, a, b) for a, b in itertools.pairwise(cuts))


def _split_along(name: str, dim: int, minimum: int) -> None:
    def along(input: Tensor, indices_or_sections: int | Shape) -> tuple[Tensor, ...]:
        if _ndim(input) < minimum:
            raise RuntimeError(f"{name}: at least {minimum} dimensions are wanted, the shape is {list(input.shape)}")
        return tensor_split(input, indices_or_sections, 0 if _ndim(input) == 1 else dim)

    along.__name__ = name
    along.__doc__ = f"``tensor_split`` along dimension {dim}."
    shape = (4, 4, 4)[:minimum]
    composite(names=both(name), alias=True, samples=calls(call(tensor(*shape), 2)))(along)


_split_along("hsplit", 1, 1)
_split_along("vsplit", 0, 2)
_split_along("dsplit", 2, 3)


@composite(names=both("unbind"), alias=True, samples=calls(call(tensor(3, 2)), call(tensor(2, 3), -1)))
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along ``dim``, without that dimension."""
    place = canonical_dim("unbind", dim, _ndim(input))
    return tuple(select(input, place, k) for k in range(int(input.shape[place])))


@composite(
    names=both("diagonal"),
    alias=True,
    samples=calls(call(tensor(3, 4)), call(tensor(3, 4), 1), call(tensor(2, 3, 4), -1, 1, 2)),
    errors=[error(RuntimeError, "cannot be identical", tensor(2, 3), 0, 1, 1)],
)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions as a new last dimension."""
    spec = spec_of(input)
    ndim = len(spec.shape)
    a, b = canonical_dim("diagonal", dim1, ndim), canonical_dim("diagonal", dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal: the dimensions cannot be identical: {dim1}, {dim2}")
    rows, columns = spec.shape[a], spec.shape[b]
    down, right = max(-offset, 0), max(offset, 0)
    height, width = rows - down, columns - right
    length = max(height if height <= width else width, 0)
    rest = [d for d in range(ndim) if d not in (a, b)]
    start = 0 if type(length) is int and length == 0 else down * spec.strides[a] + right * spec.strides[b]
    size = (*(spec.shape[d] for d in rest), length)
    stride = (*(spec.strides[d] for d in rest), spec.strides[a] + spec.strides[b])
    return ops.as_strided(input, size, stride, start)


@diagonal.vjp
def _(ct, input_spec, offset, dim1, dim2):
    zeros = ops.zeros(input_spec.shape, dtype=ct.dtype, device=ct.device)
    return (ops.diagonal_scatter(zeros, ct, offset, dim1, dim2),)


@composite(
    id="unfold.dimension",
    names=("Tensor.unfold",),
    alias=True,
    samples=calls(call(tensor(7), 0, 3, 2), call(tensor(2, 6), 1, 2, 2)),
    errors=[error(RuntimeError, "at most", tensor(3), 0, 4, 1)],
)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of ``size`` elements along ``dimension``, ``step`` apart; the window is a new last dimension."""
    spec = spec_of(input)
    place = canonical_dim("unfold", dimension, len(spec.shape))
    if size > spec.shape[place] or step <= 0:
        raise RuntimeError(f"unfold: size {size} must be at most {spec.shape[place]} and step {step} greater than 0")
    shape, strides = list(spec.shape), list(spec.strides)
    shape[place] = (shape[place] - size) // step + 1
    inner = strides[place]
    strides[place] = inner * step
    return ops.as_strided(input, (*shape, size), (*strides, inner), 0)
