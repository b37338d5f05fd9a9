"""Resizing by weighted averages of all elements that a result covers, so that shrinking leaves no aliases.

Sources: K. Turkowski 1990, "Filters for common resampling tasks"; R. Keys 1981, with a = -0.5.
"""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import int64

from ..arrays import element_type
from ..registry import ops
from ..types import Tensor

__all__ = ["resized"]


def resized(value: Tensor, dim: int, want: Any, scale: Any, align: bool, cubic: bool) -> Tensor:
    """``value`` with ``want`` elements along ``dim``; ``scale``: how many times larger the result is said to be."""
    have, rank = value.shape[dim], len(value.shape)
    step = _step(have, want, scale, align)
    width = max(float(step), 1.0)
    support = (2.0 if cubic else 1.0) * width
    taps = 2 * math.ceil(support) + 1
    places, weights = _taps(value, have, want, step, (support, 1.0 / width, taps), cubic)
    shape = (*value.shape[:dim], want, taps, *value.shape[dim + 1 :])
    read = ops.reshape(ops.index_select(value, dim, ops.reshape(places, (want * taps,))), shape)
    return ops.sum(ops.mul(read, ops.reshape(weights, (want, taps, *[1] * (rank - dim - 1)))), dim + 1)


def _step(have: Any, want: Any, scale: Any, align: bool) -> Any:
    """Elements of the input for each of the result."""
    if align:
        return (have - 1) / (want - 1) if want > 1 else 0.0
    return have / want if scale is None else 1.0 / scale


def _taps(
    like: Tensor, have: Any, want: Any, step: Any, filter: tuple[float, float, int], cubic: bool
) -> tuple[Tensor, Tensor]:
    """int64 and float [want, taps]: which elements each result reads, and their weights, which are 1 together."""
    support, squeeze, taps = filter
    index = ops.arange(want, dtype=element_type(like), device=like.device)
    centre = ops.unsqueeze(ops.mul(ops.add(index, 0.5), step), 1)
    first = ops.clamp(_whole(ops.add(ops.sub(centre, support), 0.5)), 0, None)
    count = ops.sub(ops.clamp(_whole(ops.add(ops.add(centre, support), 0.5)), None, have), first)
    tap = ops.arange(taps, dtype=int64, device=like.device)
    places = ops.add(first, tap)
    distance = ops.mul(ops.add(ops.sub(ops.convert_element_type(places, element_type(like)), centre), 0.5), squeeze)
    weights = ops.where(ops.lt(tap, count), (_keys if cubic else _hat)(ops.abs(distance)), 0.0)
    return ops.clamp(places, 0, have - 1), ops.div(weights, ops.sum(weights, 1, True))


def _whole(value: Tensor) -> Tensor:
    return ops.convert_element_type(ops.floor(value), int64)


def _hat(x: Tensor) -> Tensor:
    return ops.clamp(ops.sub(1.0, x), 0.0, None)


def _keys(x: Tensor) -> Tensor:
    """The cubic convolution kernel at distances x >= 0."""
    near = ops.add(ops.mul(ops.mul(ops.sub(ops.mul(x, 1.5), 2.5), x), x), 1.0)
    far = ops.add(ops.mul(ops.sub(ops.mul(ops.sub(2.5, ops.mul(x, 0.5)), x), 4.0), x), 2.0)
    return ops.where(ops.lt(x, 1.0), near, ops.where(ops.lt(x, 2.0), far, 0.0))
