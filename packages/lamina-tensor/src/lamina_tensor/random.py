"""Random numbers: generators, and the functions that draw from them.

A generator's state is a tensor ``[seed, offset]`` of int64. Drawing is an operator that reads the state; then the
offset is advanced in place by the counters used. Both are ordinary tensor operations, so a compiled program draws the
same numbers. Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), Philox 4x32-10.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from lamina_fx import DType, int64
from lamina_prims import operator
from lamina_prims.arrays import as_device
from lamina_prims.promotion import get_default_dtype

from . import creation
from .autograd.grad_mode import no_grad
from .namespace import root
from .tensor import Tensor

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "dropout",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]


class Generator:
    """A stream of random numbers. ``device`` is where its state lives."""

    def __init__(self, device: Any = "cpu") -> None:
        self._state = creation.tensor([0, 0], dtype=int64, device=device)
        self.device = self._state.device

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of this seed (any Python int; taken modulo 2^64)."""
        seed = int(seed) % (1 << 64)
        signed = seed - (1 << 64) if seed >= 1 << 63 else seed
        with no_grad():
            self._state.copy_(creation.tensor([signed, 0], dtype=int64))
        return self

    def seed(self) -> int:
        """Seed from the clock; returns the seed."""
        chosen = time.time_ns() % (1 << 63)
        self.manual_seed(chosen)
        return chosen

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return int(self._state[0]) % (1 << 64)

    def get_state(self) -> Tensor:
        """A copy of ``[seed, offset]``."""
        return self._state.clone()

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a copied state."""
        if tuple(new_state.shape) != (2,) or new_state.dtype is not int64:
            raise ValueError(
                f"a generator's state is an int64 tensor [seed, offset], got {new_state.dtype}{tuple(new_state.shape)}"
            )
        with no_grad():
            self._state.copy_(new_state)
        return self

    def advance(self, counters: Any) -> None:
        """Skip this many Philox counters (four 32-bit words each)."""
        self._state.select(0, 1).add_(counters)


default_generator = Generator()
"""What is drawn from when no generator is given."""


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, and those of all GPUs."""
    from .cuda.generators import manual_seed_all

    manual_seed_all(seed)
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the clock."""
    return default_generator.seed()


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator's state."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True) -> Iterator[None]:
    """Inside, random numbers are drawn as usual; afterwards the generators stand where they stood.

    devices: GPUs whose generators go back, too (None: all that were drawn from).
    """
    from .cuda import generators

    if not enabled:
        yield
        return
    chosen = generators.used() if devices is None else [generators.default_generator(d) for d in devices]
    states = [(generator, generator.get_state()) for generator in (default_generator, *chosen)]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)


_uniform = operator("random_uniform")
_normal = operator("random_normal")
_randint = operator("random_randint")
_permutation = operator("random_permutation")
_exponential = operator("random_exponential")
_bernoulli = operator("bernoulli_with_state")
_multinomial = operator("multinomial_with_state")
_dropout = operator("dropout_with_state")
_gumbel_softmax = operator("gumbel_softmax_with_state")
_rrelu = operator("rrelu_with_state")
_feature_dropout = operator("feature_dropout_with_state")
_alpha_dropout = operator("alpha_dropout_with_state")
_mask = operator("dropout_mask")
_attention = operator("scaled_dot_product_attention")


def generator_of(device: Any, generator: Generator | None = None) -> Generator:
    """What is drawn from for a result on ``device`` (None: the default device): ``generator``, or the device's own.

    Raises:
        RuntimeError: the generator is another device's.
    """
    where = creation.default_device() if device is None else as_device(device)
    if generator is not None:
        if where.type != generator.device.type and device is not None:
            raise RuntimeError(
                f"Expected a {where.type!r} device type for generator but found {generator.device.type!r}"
            )
        return generator
    if where.type != "cuda":
        return default_generator
    from .cuda.generators import default_generator as of_device

    return of_device(where)


def generators(values: Iterable[Any] = ()) -> list[Generator]:
    """The default generators of the CPU, of the devices of the tensors among ``values``, and of those drawn from."""
    from .cuda.generators import used

    for value in values:
        if isinstance(value, Tensor) and value.is_cuda:
            generator_of(value.device)
    return [default_generator, *used()]


def _advance(counters: Any, generator: Generator) -> None:
    with no_grad():
        generator.advance(counters)


def _sizes(size: tuple[Any, ...]) -> tuple[Any, ...]:
    """``rand(2, 3)`` and ``rand((2, 3))`` alike."""
    if len(size) == 1 and isinstance(size[0], tuple | list):
        return tuple(size[0])
    return size


def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform in [0, 1)."""
    shape, dtype = _sizes(size), dtype or get_default_dtype()
    generator = generator_of(device, generator)
    made = _uniform(generator._state, shape, dtype)
    _advance(_uniform.counters(shape, dtype), generator)
    return made.requires_grad_() if requires_grad else made


def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal with mean 0 and variance 1."""
    shape, dtype = _sizes(size), dtype or get_default_dtype()
    generator = generator_of(device, generator)
    made = _normal(generator._state, shape, dtype)
    _advance(_normal.counters(shape, dtype), generator)
    return made.requires_grad_() if requires_grad else made


def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType = int64,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers in [low, high). Also ``randint(high, size)``."""
    if size is None:
        low, high, size = 0, low, high
    shape = _sizes((size,))
    generator = generator_of(device, generator)
    made = _randint(generator._state, low, high, shape, dtype)
    _advance(_randint.counters(low, high, shape, dtype), generator)
    return made.requires_grad_() if requires_grad else made


def randperm(n: int, *, generator: Generator | None = None, dtype: DType = int64, device: Any = None) -> Tensor:
    """A random order of 0 .. n-1."""
    generator = generator_of(device, generator)
    made = _permutation(generator._state, n, dtype)
    _advance(_permutation.counters(n, dtype), generator)
    return made


def rand_like(
    input: Tensor, *, dtype: DType | None = None, device: Any = None, generator: Generator | None = None
) -> Tensor:
    """Uniform, in the shape of ``input``, on its device unless given."""
    return rand(tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device, generator=generator)


def randn_like(
    input: Tensor, *, dtype: DType | None = None, device: Any = None, generator: Generator | None = None
) -> Tensor:
    """Normal, in the shape of ``input``, on its device unless given."""
    return randn(tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device, generator=generator)


def randint_like(
    input: Tensor, low: int, high: int | None = None, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """Integers, in the shape of ``input``, on its device unless given."""
    if high is None:
        low, high = 0, low
    return randint(low, high, tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device)


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with probability ``input``, else 0, in the same dtype."""
    generator = generator_of(input.device, generator)
    made = _bernoulli(input, generator._state)
    _advance(_bernoulli.counters(input), generator)
    return made


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Any = None,
) -> Tensor:
    """Normal with these means and deviations (numbers with ``size``, or tensors)."""
    if size is None:
        like = mean if isinstance(mean, Tensor) else std
        size, dtype = like.shape, dtype or like.dtype
    where = mean.device if isinstance(mean, Tensor) else std.device if isinstance(std, Tensor) else device
    return randn(tuple(size), generator=generator, dtype=dtype, device=where) * std + mean


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with probabilities proportional to the rows of ``input``. (m,) or (n, m) -> (..., num_samples)."""
    generator = generator_of(input.device, generator)
    made = _multinomial(input, num_samples, replacement, generator._state)
    _advance(_multinomial.counters(input, num_samples, replacement), generator)
    return made


# -- what nn.functional needs --------------------------------------------------------------------------


def dropout(input: Tensor, p: float) -> Tensor:
    """Zero elements with probability ``p``, scale the others by 1 / (1 - p)."""
    generator = generator_of(input.device)
    made = _dropout(input, p, generator._state)
    _advance(_dropout.counters(input, p), generator)
    return made


def gumbel_softmax(logits: Tensor, tau: float, hard: bool, dim: int) -> Tensor:
    """softmax((logits + Gumbel noise) / tau), or the largest as one-hot."""
    generator = generator_of(logits.device)
    made = _gumbel_softmax(logits, tau, hard, dim, generator._state)
    _advance(_gumbel_softmax.counters(logits), generator)
    return made


def rrelu(input: Tensor, lower: float, upper: float) -> Tensor:
    """Leaky ReLU with a slope drawn for each element."""
    generator = generator_of(input.device)
    made = _rrelu(input, lower, upper, generator._state)
    _advance(_rrelu.counters(input), generator)
    return made


def pooling_samples(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Uniform numbers that say where windows of fractional pooling begin."""
    return rand(shape, device=input.device, dtype=input.dtype)


def feature_dropout(input: Tensor, p: float, unbatched: int) -> Tensor:
    """Zero whole channels (dimension 1, or 0 when the rank is ``unbatched``)."""
    generator = generator_of(input.device)
    made = _feature_dropout(input, p, generator._state, unbatched)
    _advance(_feature_dropout.counters(input, p, unbatched), generator)
    return made


def alpha_dropout(input: Tensor, p: float) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 after SELU."""
    generator = generator_of(input.device)
    made = _alpha_dropout(input, p, generator._state)
    _advance(_alpha_dropout.counters(input, p), generator)
    return made


def attention_dropout(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> Tensor:
    """Attention whose weights are dropped with probability ``p``."""
    generator = generator_of(query.device)
    state = generator._state.clone()  # the backward draws the same mask again, after the state has moved on
    made = _attention(query, key, value, mask, p, is_causal, scale=scale, enable_gqa=enable_gqa, state=state)
    _advance(_mask.counters((*query.shape[:-1], key.shape[-2]), p), generator)
    return made


# -- in place (methods of Tensor) -----------------------------------------------------------------------


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers in [a, b)."""
    made = rand(tuple(tensor.shape), generator=generator, dtype=tensor.dtype, device=tensor.device)
    return tensor.copy_(made.mul_(b - a).add_(a))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    made = randn(tuple(tensor.shape), generator=generator, dtype=tensor.dtype, device=tensor.device)
    return tensor.copy_(made.mul_(std).add_(mean))


def bernoulli_(tensor: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 (probability p) and 0."""
    chances = p if isinstance(p, Tensor) else root.full(tensor.shape, p, device=tensor.device)
    return tensor.copy_(bernoulli(chances.expand(tensor.shape), generator=generator))


def random_(tensor: Tensor, low: int = 0, high: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Fill with integers in [low, high)."""
    if high is None:
        high = low or (
            1 << 24 if tensor.dtype.is_floating_point else min(1 << (tensor.dtype.itemsize * 8 - 1), 1 << 62)
        )
        low = 0
    return tensor.copy_(randint(low, high, tuple(tensor.shape), generator=generator, device=tensor.device))


def exponential_(tensor: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers."""
    generator = generator_of(tensor.device, generator)
    made = _exponential(generator._state, tuple(tensor.shape), tensor.dtype)
    _advance(_exponential.counters(tuple(tensor.shape), tensor.dtype), generator)
    return tensor.copy_(made / lambd)


for _method in (uniform_, normal_, bernoulli_, random_, exponential_, multinomial, bernoulli):
    setattr(Tensor, _method.__name__, _method)
