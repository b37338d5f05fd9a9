"""Sampling images at given places: grid_sample and affine_grid. Source: Jaderberg et al. 2015."""

from __future__ import annotations

from typing import Any

from ..along import along
from ..arrays import element_type
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Shape, Tensor
from .vision import cubic_weights, to_index

__all__: list[str] = []


def _pixel(place: Tensor, size: Any, align: bool) -> Tensor:
    """From [-1, 1] to pixel coordinates."""
    if align:
        return ops.mul(ops.add(place, 1.0), (size - 1) / 2)
    return ops.mul(ops.sub(ops.mul(ops.add(place, 1.0), size), 1.0), 0.5)


def _reflected(place: Tensor, size: Any, align: bool) -> Tensor:
    low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
    if span == 0.0:
        return ops.mul(place, 0.0)
    distance = ops.abs(ops.sub(place, low))
    flips = ops.floor(ops.div(distance, span))
    rest = ops.sub(distance, ops.mul(flips, span))
    half = ops.mul(flips, 0.5)
    odd = ops.ne(half, ops.floor(half))
    return ops.add(ops.where(odd, ops.sub(span, rest), rest), low)


def _bounded(place: Tensor, size: Any, padding_mode: str, align: bool) -> Tensor:
    if padding_mode == "reflection":
        place = _reflected(place, size, align)
    if padding_mode == "zeros":
        return place
    return ops.hardtanh(place, 0.0, float(size - 1)) if type(size) is int else ops.clamp(place, 0.0, size - 1)


class _Sampler:
    """Reads elements of (N, C, *sizes) at integer places of shape (N, *out); outside it is 0."""

    def __init__(self, input: Tensor, out: tuple[Any, ...]) -> None:
        self.sizes = tuple(input.shape[2:])
        self.n, self.c = input.shape[:2]
        count: Any = 1
        for size in self.sizes:
            count = count * size
        self.flat = ops.reshape(input, (self.n, self.c, count))
        self.out = out

    def __call__(self, places: list[Tensor]) -> Tensor:
        """``places``: one for each spatial dimension, the first dimension first, as floats."""
        inside: Any = None
        flat: Any = None
        for place, size in zip(places, self.sizes, strict=True):
            good = ops.logical_and(ops.ge(place, 0), ops.le(place, size - 1))
            inside = good if inside is None else ops.logical_and(inside, good)
            safe = ops.clamp(to_index(ops.where(good, place, 0.0)), 0, size - 1)
            flat = safe if flat is None else ops.add(ops.mul(flat, size), safe)
        count: Any = 1
        for size in self.out:
            count = count * size
        index = ops.expand(ops.reshape(flat, (self.n, 1, count)), (self.n, self.c, count))
        value = ops.reshape(ops.gather(self.flat, 2, index), (self.n, self.c, *self.out))
        return ops.where(ops.unsqueeze(inside, 1), value, 0.0)


def _multilinear(read: _Sampler, places: list[Tensor]) -> Tensor:
    lows = [ops.floor(p) for p in places]
    shares = [ops.sub(p, low) for p, low in zip(places, lows, strict=True)]
    total: Any = None
    for corner in range(2 ** len(places)):
        bits = [corner >> d & 1 for d in range(len(places))]
        weight: Any = None
        for bit, share in zip(bits, shares, strict=True):
            factor = share if bit else ops.sub(1.0, share)
            weight = factor if weight is None else ops.mul(weight, factor)
        where = [ops.add(low, float(bit)) if bit else low for low, bit in zip(lows, bits, strict=True)]
        term = ops.mul(read(where), ops.unsqueeze(weight, 1))
        total = term if total is None else ops.add(total, term)
    return total


def _bicubic(read: _Sampler, places: list[Tensor], padding_mode: str, align: bool) -> Tensor:
    lows = [ops.floor(p) for p in places]
    weights = [cubic_weights(ops.sub(p, low)) for p, low in zip(places, lows, strict=True)]
    total: Any = None
    for i in range(4):
        for j in range(4):
            where = [ops.add(lows[0], float(i - 1)), ops.add(lows[1], float(j - 1))]
            where = [_bounded(p, s, padding_mode, align) for p, s in zip(where, read.sizes, strict=True)]
            term = ops.mul(read(where), ops.unsqueeze(ops.mul(weights[0][i], weights[1][j]), 1))
            total = term if total is None else ops.add(total, term)
    return total


_IMAGE, _GRID = tensor(2, 2, 4, 5), tensor(2, 3, 2, 2, low=-1.3, high=1.3)


@composite(
    names=("nn.functional.grid_sample",),
    samples=calls(
        *(
            call(_IMAGE, _GRID, m, p, a)
            for m in ("bilinear", "bicubic")
            for p in ("zeros", "border", "reflection")
            for a in (False, True)
        ),
        call(_IMAGE, _GRID, "nearest", gradient=False),
        call(tensor(1, 2, 3, 4, 3), tensor(1, 2, 2, 3, 3, low=-1.2, high=1.2)),
    ),
    errors=[
        error(ValueError, "mode", _IMAGE, _GRID, "area"),
        error(RuntimeError, "size 2", _IMAGE, tensor(2, 3, 2, 3)),
    ],
)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Read (N, C, *sizes) at ``grid`` (N, *out, d), whose coordinates x, y, (z) run from -1 to 1."""
    rank = len(input.shape) - 2
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank != 2):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or (2-D) 'bicubic', got {mode!r}"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border' or 'reflection', "
            f"got {padding_mode!r}"
        )
    if rank not in (2, 3) or len(grid.shape) != rank + 2 or grid.shape[-1] != rank or grid.shape[0] != input.shape[0]:
        raise RuntimeError(
            f"grid_sample(): expected grid to have size {rank} in its last dimension, one dimension for each of the "
            f"input's and the same batch size; got input {list(input.shape)} and grid {list(grid.shape)}"
        )
    align = bool(align_corners)
    image, where = widen(input), widen(grid)
    read = _Sampler(image, tuple(grid.shape[1:-1]))
    places = []
    for d in range(rank):  # the grid names the last dimension first
        place = ops.select(where, -1, rank - 1 - d)
        place = _pixel(place, read.sizes[d], align)
        places.append(place if mode == "bicubic" else _bounded(place, read.sizes[d], padding_mode, align))
    if mode == "nearest":
        return narrow(read([ops.round(p) for p in places]), input)
    if mode == "bicubic":
        return narrow(_bicubic(read, places, padding_mode, align), input)
    return narrow(_multilinear(read, places), input)


def _base(count: Any, align: bool, like: Tensor) -> Tensor:
    index = ops.arange(count, dtype=element_type(like), device=like.device)
    if align:
        return ops.sub(ops.mul(index, 2.0 / (count - 1)), 1.0) if count > 1 else ops.mul(index, 0.0)
    return ops.sub(ops.div(ops.add(ops.mul(index, 2.0), 1.0), count), 1.0)


@composite(
    names=("nn.functional.affine_grid", "affine_grid_generator"),
    samples=calls(
        call(tensor(2, 2, 3), (2, 3, 4, 5)),
        call(tensor(2, 2, 3), (2, 3, 4, 5), True),
        call(tensor(1, 3, 4), (1, 2, 2, 3, 4)),
    ),
    errors=[error(ValueError, "theta", tensor(2, 3, 3), (2, 3, 4, 5))],
)
def affine_grid(theta: Tensor, size: Shape, align_corners: bool | None = None) -> Tensor:
    """The grid (N, *out, d) that the affine maps ``theta`` (N, d, d + 1) make of (N, C, *out)."""
    rank = len(size) - 2
    if tuple(theta.shape) != (size[0], rank, rank + 1):
        raise ValueError(f"affine_grid: expected theta of shape {[size[0], rank, rank + 1]}, got {list(theta.shape)}")
    align = bool(align_corners)
    spatial = tuple(size[2:])
    columns = []
    for d in reversed(range(rank)):
        columns.append(ops.expand(along(_base(spatial[d], align, theta), d, rank), spatial))
    ones = ops.full(spatial, 1.0, dtype=element_type(theta), device=theta.device)
    points = ops.stack([*columns, ones], -1)
    count: Any = 1
    for n in spatial:
        count = count * n
    flat = ops.matmul(ops.reshape(points, (count, rank + 1)), ops.mT(theta))
    return ops.reshape(flat, (size[0], *spatial, rank))
