"""Random numbers and what needs them: pure functions of a generator's state, all made of ``philox``.

Each operator has ``counters(...)``, called with its arguments without the state: how far a front end must advance the
offset after the call. Uniforms, integers and masks are exact in every backend; normals agree to a few ULP.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_fx import DType, TensorSpec, bfloat16, float16, float32, float64, int64

from ..along import positions
from ..arrays import element_type
from ..metas import like
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..strides import elementwise_strides
from ..types import Shape, Tensor
from .random_bits import counters

__all__: list[str] = []

_STATE = np.array([1234, 5], np.int64)
_WIDE = 4294967296.0


def _uses(rule: Callable[..., Any]) -> Callable[[Any], Any]:
    """Attach the rule for counters to an operator."""

    def attach(operator: Any) -> Any:
        operator.counters = rule
        return operator

    return attach


def _unit(bits: Tensor, dtype: DType) -> Tensor:
    """Uniform in [0, 1) from 32 bits each, so many of them as the dtype's significand has (no rounding up to 1)."""
    digits = {float32: 24, float16: 11, bfloat16: 8}[dtype]
    whole = ops.convert_element_type(ops.bitwise_right_shift(bits, 32 - digits), float32)
    return ops.convert_element_type(ops.mul(whole, 2.0**-digits), dtype)


def _double(bits: Tensor, rank: int) -> Tensor:
    """float64 uniform in [0, 1) from pairs of words in the last dimension: 27 and 26 bits."""
    high, low = _word(bits, rank, 0), _word(bits, rank, 1)
    high = ops.convert_element_type(ops.bitwise_right_shift(high, 5), float64)
    low = ops.convert_element_type(ops.bitwise_right_shift(low, 6), float64)
    return ops.mul(ops.add(ops.mul(high, 67108864.0), low), 2.0**-53)


def _word(bits: Tensor, dim: int, index: int) -> Tensor:
    return ops.squeeze(ops.slice(bits, dim, index, index + 1), dim)


def _floating(name: str, dtype: DType) -> None:
    if dtype not in (float32, float64, float16, bfloat16):
        raise RuntimeError(f"{name}: dtype must be a floating-point type of at least 16 bits, got {dtype}")


def _shape(shape: Any) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


_SHAPES = calls(
    *(call(_STATE, s, d) for s in ((2, 3), (), (0, 2)) for d in (float32, float64)),
    call(_STATE, (5,), bfloat16),
)


@_uses(lambda shape, dtype=float32: counters((*_shape(shape), 2) if dtype is float64 else _shape(shape)))
@composite(samples=_SHAPES, errors=[error(RuntimeError, "floating", _STATE, (2,), int64)])
def random_uniform(state: Tensor, shape: Shape, dtype: DType = float32) -> Tensor:
    """Uniform in [0, 1). One word an element (two for float64)."""
    _floating("random_uniform", dtype)
    size = _shape(shape)
    if dtype is float64:
        return _double(ops.philox(state, (*size, 2)), len(size))
    return _unit(ops.philox(state, size), dtype)


@_uses(lambda shape, dtype=float32: counters((*_shape(shape), 4 if dtype is float64 else 2)))
@composite(samples=_SHAPES)
def random_normal(state: Tensor, shape: Shape, dtype: DType = float32) -> Tensor:
    """Standard normal, by Box and Muller 1958: two words an element (four for float64)."""
    _floating("random_normal", dtype)
    size = _shape(shape)
    rank = len(size)
    if dtype is float64:
        bits = ops.philox(state, (*size, 4))
        first = _double(ops.slice(bits, rank, 0, 2), rank)
        second = _double(ops.slice(bits, rank, 2, 4), rank)
    else:
        bits = ops.philox(state, (*size, 2))
        first, second = _unit(_word(bits, rank, 0), float32), _unit(_word(bits, rank, 1), float32)
    # 1 - u lies in (0, 1]: the logarithm is finite
    radius = ops.sqrt(ops.mul(ops.log(ops.sub(1.0, first)), -2.0))
    value = ops.mul(radius, ops.cos(ops.mul(second, 2.0 * math.pi)))
    return value if element_type(value) is dtype else ops.convert_element_type(value, dtype)


@_uses(lambda low, high, shape, dtype=int64: counters((*_shape(shape), 1 if high - low <= 2**31 else 2)))
@composite(
    samples=calls(call(_STATE, 0, 10, (2, 3)), call(_STATE, -5, 2**40, (4,)), call(_STATE, 0, 2, (3,), float32)),
    errors=[error(RuntimeError, "random_ expects", _STATE, 3, 3, (2,))],
)
def random_randint(state: Tensor, low: int, high: int, shape: Shape, dtype: DType = int64) -> Tensor:
    """Integers in [low, high). One word an element (two when there are more than 2**31 of them)."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    size = _shape(shape)
    count = high - low
    if count <= 2**31:
        wide = ops.convert_element_type(ops.philox(state, size), int64)
        value = ops.bitwise_right_shift(ops.mul(wide, count), 32)
    else:
        bits = ops.philox(state, (*size, 2))
        high_word = ops.convert_element_type(_word(bits, len(size), 0), int64)
        low_word = ops.convert_element_type(_word(bits, len(size), 1), int64)
        # 63 bits, so that the remainder is that of a non-negative number
        high_word = ops.bitwise_right_shift(high_word, 1)
        value = ops.remainder(ops.bitwise_or(ops.bitwise_left_shift(high_word, 32), low_word), count)
    value = ops.add(value, low)
    return value if dtype is int64 else ops.convert_element_type(value, dtype)


@_uses(lambda shape, p: counters(_shape(shape)))
@composite(samples=calls(call(_STATE, (2, 3), 0.5), call(_STATE, (4,), 0.0), call(_STATE, (4,), 1.0)))
def dropout_mask(state: Tensor, shape: Shape, p: float) -> Tensor:
    """bool: True with probability 1 - p. One word an element."""
    bits = ops.philox(state, _shape(shape))
    limit = round(p * _WIDE)
    if limit >= 2**32:
        return ops.ne(bits, bits)
    return ops.ge(bits, limit)


def _check_probability(name: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name} probability has to be between 0 and 1, but got {p}")


def _dropout_meta(input: Any, p: float, state: Any, *rest: Any) -> TensorSpec:
    _check_probability("dropout", p)
    if p == 1.0:
        return like(input)
    mask = TensorSpec(input.shape, input.dtype, None, input.device)  # its order counts, too
    return TensorSpec(input.shape, input.dtype, elementwise_strides(input.shape, (mask, input)), input.device)


@_uses(lambda input, p=0.5: counters(input.shape))
@composite(
    meta=_dropout_meta,
    samples=calls(
        call(tensor(3, 4), 0.5, _STATE),
        call(tensor(3, 4), 0.0, _STATE),
        call(tensor(3, 4), 1.0, _STATE),
        call(tensor(5, dtype="bfloat16"), 0.3, _STATE),
    ),
    errors=[error(ValueError, "between 0 and 1", tensor(3), 1.5, _STATE)],
)
def dropout_with_state(input: Tensor, p: float, state: Tensor) -> Tensor:
    """input / (1 - p) with probability 1 - p, otherwise 0. Source: Srivastava et al. 2014."""
    _check_probability("dropout", p)
    if p == 1.0:
        return ops.mul(input, 0.0)
    keep = ops.dropout_mask(state, tuple(input.shape), p)
    return narrow(ops.where(keep, ops.mul(widen(input), 1.0 / (1.0 - p)), 0.0), input)


def _channels(input: Tensor, unbatched: int) -> tuple[Any, ...]:
    """The mask's shape for dropping whole channels."""
    rank = len(input.shape)
    lead = 1 if rank == unbatched else 2
    return (*input.shape[:lead], *(1,) * (rank - lead))


@_uses(lambda input, p=0.5, unbatched=-1: counters(_channels(input, unbatched)))
@composite(samples=calls(call(tensor(2, 3, 4), 0.5, _STATE), call(tensor(3, 4), 0.5, _STATE, 2)))
def feature_dropout_with_state(input: Tensor, p: float, state: Tensor, unbatched: int = -1) -> Tensor:
    """Dropout of whole channels (dimension 1, or 0 when the rank is ``unbatched``). Source: Tompson et al. 2015."""
    _check_probability("dropout", p)
    if p == 1.0:
        return ops.mul(input, 0.0)
    keep = ops.dropout_mask(state, _channels(input, unbatched), p)
    return narrow(ops.where(keep, ops.mul(widen(input), 1.0 / (1.0 - p)), 0.0), input)


_SATURATION = -1.7580993408473766


@_uses(lambda input, p=0.5, whole_channels=False: counters(_channels(input, -1) if whole_channels else input.shape))
@composite(samples=calls(call(tensor(3, 4), 0.5, _STATE), call(tensor(2, 3, 4), 0.2, _STATE, True)))
def alpha_dropout_with_state(input: Tensor, p: float, state: Tensor, whole_channels: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 after SELU. Source: Klambauer et al. 2017."""
    _check_probability("dropout", p)
    if p == 1.0:
        return ops.mul(input, 0.0)
    shape = _channels(input, -1) if whole_channels else tuple(input.shape)
    scale = 1.0 / math.sqrt((1.0 - p) * (1.0 + p * _SATURATION * _SATURATION))
    keep = ops.dropout_mask(state, shape, p)
    mixed = ops.where(keep, widen(input), _SATURATION)
    return narrow(ops.add(ops.mul(mixed, scale), -scale * p * _SATURATION), input)


@_uses(lambda input: counters(input.shape))
@composite(
    samples=calls(call(tensor(3, 4, low=0, high=1), _STATE), call(tensor(3, dtype="float64", low=0, high=1), _STATE))
)
def bernoulli_with_state(input: Tensor, state: Tensor) -> Tensor:
    """1 with the probability that the element says, otherwise 0, in the input's dtype."""
    drawn = ops.lt(random_uniform(state, tuple(input.shape), float32), widen(input))
    return ops.convert_element_type(drawn, element_type(input))


@_uses(lambda shape, dtype=float32: random_uniform.counters(shape, dtype))
@composite(samples=calls(call(_STATE, (2, 3)), call(_STATE, (3,), float64)))
def random_exponential(state: Tensor, shape: Shape, dtype: DType = float32) -> Tensor:
    """Exponentially distributed with rate 1."""
    return ops.neg(ops.log1p(ops.neg(random_uniform(state, shape, dtype))))


@_uses(lambda n, dtype=int64: counters((n, 2)))
@composite(samples=calls(call(_STATE, 7), call(_STATE, 0), call(_STATE, 1)))
def random_permutation(state: Tensor, n: int, dtype: DType = int64) -> Tensor:
    """The numbers 0 to n - 1 in random order: the order that sorts 63 random bits each."""
    bits = ops.philox(state, (n, 2))
    high = ops.bitwise_right_shift(ops.convert_element_type(_word(bits, 1, 0), int64), 1)
    keys = ops.bitwise_or(ops.bitwise_left_shift(high, 32), ops.convert_element_type(_word(bits, 1, 1), int64))
    order = ops.argsort(keys, 0)
    return order if dtype is int64 else ops.convert_element_type(order, dtype)


def _multinomial_shape(input: Any, num_samples: int, replacement: bool) -> tuple[Any, ...]:
    return (*input.shape[:-1], num_samples) if replacement else tuple(input.shape)


@_uses(lambda input, num_samples, replacement=False: counters(_multinomial_shape(input, num_samples, replacement)))
@composite(
    samples=calls(
        call(tensor(3, 4, kind="probability"), 2, False, _STATE),
        call(tensor(4, low=0.1, high=1), 6, True, _STATE),
    ),
    errors=[error(RuntimeError, "cannot sample", tensor(4, low=0.1), 5, False, _STATE)],
)
def multinomial_with_state(input: Tensor, num_samples: int, replacement: bool, state: Tensor) -> Tensor:
    """Class numbers drawn with probabilities proportional to the last dimension, with or without replacement."""
    weights = widen(input)
    size = _multinomial_shape(input, num_samples, replacement)
    if replacement:
        total = ops.cumsum(weights, -1)
        point = ops.mul(random_uniform(state, size), ops.slice(total, -1, input.shape[-1] - 1, input.shape[-1]))
        found = ops.searchsorted(total, point, right=True)
        return ops.clamp(found, 0, input.shape[-1] - 1)
    if num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    # the largest weight / exponential: exponential races, Efraimidis and Spirakis 2006
    return ops.topk(ops.div(weights, ops.add(random_exponential(state, size), 1e-30)), num_samples, -1)[1]


@_uses(lambda input, lower=0.125, upper=1 / 3: counters(input.shape))
@composite(samples=calls(call(tensor(3, 4), 0.125, 0.5, _STATE)))
def rrelu_with_state(input: Tensor, lower: float, upper: float, state: Tensor) -> Tensor:
    """Leaky ReLU with a random slope for each element. Source: Xu et al. 2015."""
    slope = ops.add(ops.mul(random_uniform(state, tuple(input.shape)), upper - lower), lower)
    return narrow(ops.where(ops.ge(input, 0), widen(input), ops.mul(widen(input), slope)), input)


@_uses(lambda input, *rest: counters(input.shape))
@composite(
    samples=calls(call(tensor(3, 4), 1.0, False, -1, _STATE), call(tensor(3, 4), 0.5, True, -1, _STATE, gradient=False))
)
def gumbel_softmax_with_state(logits: Tensor, tau: float, hard: bool, dim: int, state: Tensor) -> Tensor:
    """softmax((logits + Gumbel noise) / tau); ``hard``: one-hot forward, soft gradient. Source: Jang et al. 2016."""
    x = widen(logits)
    noise = ops.neg(ops.log(ops.add(random_exponential(state, tuple(logits.shape)), 1e-30)))
    soft = ops.softmax(ops.div(ops.add(x, noise), tau), dim)
    if not hard:
        return narrow(soft, logits)
    return narrow(one_hot_of_largest(soft, dim), logits)


@composite(samples=calls(call(tensor(3, 4, kind="distinct"), -1, gradient=False)))
def one_hot_of_largest(input: Tensor, dim: int) -> Tensor:
    """1 at the largest element along ``dim`` and 0 elsewhere; its gradient passes straight through."""
    best = ops.argmax(input, dim, True)
    return ops.convert_element_type(ops.eq(positions(input, dim), best), element_type(input))


@one_hot_of_largest.vjp
def _(ct):
    return (ct,)
