"""Random bits: Philox 4x32-10, the one source of randomness, as a pure function of a generator's state.

Element i of ``philox(state, shape)`` is word ``i % 4`` of the block cipher applied to the 128-bit counter
``offset + i // 4`` under the 64-bit key ``seed``. Every backend computes the same bits.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina_fx import TensorSpec, int64, uint32

from ..arrays import array_namespace
from ..registry import primitive
from ..samples import call, calls, error
from ..types import Shape, Tensor

__all__ = ["counters", "philox", "philox_block"]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF


def counters(shape: Shape) -> Any:
    """How many counters ``philox(state, shape)`` uses: the offset of the next draw is that much larger."""
    count: Any = 1
    for size in shape:
        count = count * size
    return (count + 3) // 4


def philox_block(xp: Any, counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Ten rounds over arrays of four counter words (uint64 arrays holding 32-bit values) under one key of two words.

    >>> import numpy as np
    >>> zero = np.zeros(1, np.uint64)
    >>> [hex(int(w[0])) for w in philox_block(np, (zero, zero, zero, zero), (0, 0))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    low, shift = xp.uint64(_LOW), xp.uint64(32)
    m0, m1 = (xp.uint64(m) for m in _MULTIPLIERS)
    c0, c1, c2, c3 = counter
    k0, k1 = (xp.uint64(k) if isinstance(k, int) else k for k in key)
    w0, w1 = (xp.uint64(w) for w in _WEYL)
    for _ in range(10):
        p0, p1 = m0 * c0, m1 * c2
        c0, c1, c2, c3 = (
            (p1 >> shift) ^ c1 ^ k0,
            p1 & low,
            (p0 >> shift) ^ c3 ^ k1,
            p0 & low,
        )
        k0, k1 = (k0 + w0) & low, (k1 + w1) & low
    return c0, c1, c2, c3


def _philox_meta(state: Tensor, shape: Shape) -> TensorSpec:
    if state.dtype is not int64 or len(state.shape) != 1 or state.shape[0] != 2:
        raise RuntimeError(f"philox: the state must be an int64 tensor [seed, offset], got {state}")
    for size in shape:
        if type(size) is int and size < 0:
            raise RuntimeError(f"philox: a size is negative in the shape {tuple(shape)}")
    return TensorSpec(tuple(shape), uint32, None, state.device)


def _philox_reference(state: Any, shape: Shape) -> Any:
    xp = array_namespace(state)
    if (kernel := getattr(xp, "philox", None)) is not None:
        return kernel(state, tuple(map(int, shape)))
    seed, offset = state.astype(xp.uint64)  # the numbers are not looked at: a device need not be waited for
    count = math.prod(map(int, shape))
    blocks = (count + 3) // 4
    low, shift = xp.uint64(_LOW), xp.uint64(32)
    with np.errstate(over="ignore"):
        index = xp.arange(blocks, dtype=xp.uint64) + offset  # wraps; the carry goes to the third word
    carry = (index < offset).astype(xp.uint64)
    words = (index & low, index >> shift, carry, xp.zeros_like(index))
    out = xp.empty((blocks, 4), xp.uint32)
    for column, word in enumerate(philox_block(xp, words, (seed & low, seed >> shift))):
        out[:, column] = word
    return out.reshape(-1)[:count].reshape(tuple(shape))


_STATE = np.array([42, 7], np.int64)


@primitive(
    meta=_philox_meta,
    reference=_philox_reference,
    samples=calls(
        call(_STATE, (5,)),
        call(_STATE, (2, 3)),
        call(_STATE, ()),
        call(_STATE, (0, 4)),
        call(np.array([-1, -3], np.int64), (17,)),
    ),
    errors=[
        error(RuntimeError, "seed, offset", np.zeros(3, np.int64), (2,)),
        error(RuntimeError, "seed, offset", np.zeros(2, np.int32), (2,)),
    ],
)
def philox(state: Tensor, shape: Shape) -> Tensor:
    """Random 32-bit words: uint32 of ``shape`` from the int64 state ``[seed, offset]``. Uses ceil(n / 4) counters."""
    ...
