"""Samples: example calls of operators, made from a seed, for the generic tests of every layer.

A *sampler* is a function ``rng -> iterator of Sample``. Declarations take samplers from here:

>>> import numpy as np
>>> sampler = unary(low=-9, high=9)
>>> first = next(iter(sampler(np.random.default_rng(0))))
>>> first.args[0].shape, first.args[0].dtype.name
((2, 3), 'float32')

Calls that are not of a regular kind are listed; ``tensor(...)`` stands for an array that the seed fills:

>>> sampler = calls(call(tensor(2, 3), dim=1), call(tensor(4, dtype="int64", low=0, high=9), dim=-1))
>>> [s.args[0].shape for s in sampler(np.random.default_rng(0))]
[(2, 3), (4,)]

Error samples name the error and a part of its message: ``error(IndexError, "dim", tensor(2, 3), dim=5)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import numpy as np

from lamina_fx import dtype_of

from .arrays import numpy_dtype

__all__ = [
    "Call",
    "ErrorSample",
    "Sample",
    "Sampler",
    "TensorArgument",
    "binary",
    "call",
    "calls",
    "chain",
    "error",
    "fill",
    "nary",
    "reduction",
    "tensor",
    "unary",
    "without_gradient",
]


@dataclass(frozen=True)
class Sample:
    """One call.

    Attributes:
        args, kwargs: the arguments; tensors are NumPy arrays.
        gradient: False where finite differences mean nothing (a kink, a value that is not unique).
        symmetric: gradients are checked along symmetric directions only (the operator reads one triangle).
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    gradient: bool = True
    symmetric: bool = False


@dataclass(frozen=True)
class ErrorSample:
    """A call that must raise ``error`` with a message in which the pattern ``match`` is found.

    ``described`` are the arguments before their ``tensor(...)`` descriptions are filled.
    """

    error: type[BaseException]
    match: str
    described: tuple[tuple[Any, ...], dict[str, Any]]

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments by position, filled from a fixed seed."""
        return fill(self.described[0], np.random.default_rng(0))

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name, filled from a fixed seed."""
        return fill(self.described[1], np.random.default_rng(1))


Sampler = Callable[["np.random.Generator"], Iterator[Sample]]  # a string: numpy.random takes 9 ms to import


@dataclass(slots=True)
class TensorArgument:
    """An array to be made: uniform in [low, high); see ``tensor``."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    kind: str


@dataclass(slots=True)
class Call:
    """A call to be made; see ``call``."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    gradient: bool = True
    symmetric: bool = False


def tensor(
    *shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0, kind: str = "uniform"
) -> TensorArgument:
    """An array that the seed fills.

    ``kind``: ``"uniform"`` (integers for integer dtypes), ``"distinct"`` (a permutation spread over the range:
    no ties), ``"spd"`` (symmetric positive definite in the last two dimensions), ``"probability"`` (positive,
    the last dimension sums to 1), ``"sorted"`` (along the last dimension), ``"transposed"``
    and ``"strided"`` (uniform, not contiguous), ``"channels_last"`` (uniform, the second dimension innermost),
    ``"special"`` (uniform with NaN, infinities and signed zeros among the elements).
    """
    return TensorArgument(shape, dtype, low, high, kind)


def call(*args: Any, gradient: bool = True, symmetric: bool = False, **kwargs: Any) -> Call:
    """A call with ``tensor(...)`` descriptions (also inside lists and tuples) among its arguments."""
    return Call(args, kwargs, gradient, symmetric)


def calls(*listed: Call) -> Sampler:
    """A sampler of these calls."""

    def make(rng: np.random.Generator) -> Iterator[Sample]:
        for item in listed:
            kwargs = {key: fill(value, rng) for key, value in item.kwargs.items()}
            yield Sample(fill(item.args, rng), kwargs, item.gradient, item.symmetric)

    return make


def error(kind: type[BaseException], match: str, *args: Any, **kwargs: Any) -> ErrorSample:
    """An error sample; its ``tensor(...)`` arguments are filled when it is used."""
    return ErrorSample(kind, match, (args, kwargs))


def _late(build: Callable[..., Sampler]) -> Callable[..., Sampler]:
    """Build the list of calls when the sampler is used: declarations are imported often, samples used in tests only."""

    @wraps(build)
    def declare(*args: Any, **kwargs: Any) -> Sampler:
        def make(rng: np.random.Generator) -> Iterator[Sample]:
            return build(*args, **kwargs)(rng)

        return make

    return declare


def chain(*samplers: Sampler) -> Sampler:
    """The samples of several samplers, one after the other."""

    def make(rng: np.random.Generator) -> Iterator[Sample]:
        for sampler in samplers:
            yield from sampler(rng)

    return make


def fill(value: Any, rng: np.random.Generator) -> Any:
    """Replace the tensor descriptions in nested lists, tuples and dicts by arrays."""
    if isinstance(value, TensorArgument):
        return _array(value, rng)
    if type(value) in (list, tuple):
        return type(value)(fill(v, rng) for v in value)
    if type(value) is dict:
        return {k: fill(v, rng) for k, v in value.items()}
    return value


_SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (), (0,), (2, 0, 3), (1,), (2, 1, 3))
_FLOATS = ("float32", "float64", "float16", "bfloat16")


@_late
def unary(
    low: float = -3.0,
    high: float = 3.0,
    *,
    dtypes: Iterable[str] = ("float32", "float64", "bfloat16", "int64"),
    special: bool = True,
    **kwargs: Any,
) -> Sampler:
    """Calls of one tensor: all shapes in the first dtype, one in the others; not contiguous; NaN and infinities."""
    first, *others = dtypes
    listed = [call(tensor(*shape, dtype=first, low=low, high=high), **kwargs) for shape in _SHAPES]
    listed += [call(tensor(2, 3, dtype=dtype, low=low, high=high), **kwargs) for dtype in others]
    listed += [call(tensor(3, 2, dtype=first, low=low, high=high, kind=k), **kwargs) for k in ("transposed", "strided")]
    if special and first in _FLOATS:
        listed.append(call(tensor(12, dtype=first, low=low, high=high, kind="special"), **kwargs))
    return calls(*listed)


_PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((), ()), ((0, 3), (1, 3)), ((4, 1, 2), (3, 1)),
)  # fmt: skip
_MIXED = (("float32", "float64"), ("int64", "float32"), ("int32", "int64"), ("bfloat16", "float16"), ("uint8", "int8"))


@_late
def binary(
    low: float = -3.0,
    high: float = 3.0,
    *,
    dtypes: Iterable[str] = ("float32", "float64", "int64"),
    mixed: Iterable[tuple[str, str]] = _MIXED,
    scalars: Iterable[Any] = (2, 0.5),
    **kwargs: Any,
) -> Sampler:
    """Calls of two tensors: broadcasts in the first dtype, equal shapes in the others, mixed dtypes, Python scalars."""
    first, *others = dtypes

    def pair(a: tuple[int, ...], b: tuple[int, ...], da: str, db: str) -> Call:
        return call(
            tensor(*a, dtype=da, low=_floor(da, low), high=high),
            tensor(*b, dtype=db, low=_floor(db, low), high=high),
            **kwargs,
        )

    listed = [pair(a, b, first, first) for a, b in _PAIRS]
    listed += [pair((2, 3), (2, 3), d, d) for d in others]
    listed += [pair((2, 3), (2, 3), a, b) for a, b in mixed]
    listed += [pair((2, 3), (), b, a) for a, b in tuple(mixed)[:2]]
    listed += [call(tensor(2, 3, dtype=first, low=low, high=high), s, **kwargs) for s in scalars]
    if first in _FLOATS:
        special = tensor(12, dtype=first, low=low, high=high, kind="special")
        listed.append(call(special, tensor(12, dtype=first, low=low, high=high), **kwargs))
    return calls(*listed)


@_late
def nary(
    count: int,
    low: float = -3.0,
    high: float = 3.0,
    *,
    dtypes: Iterable[str] = ("float32", "float64"),
    **kwargs: Any,
) -> Sampler:
    """Calls of ``count`` tensors, of equal and of broadcasting shapes."""
    first, *others = dtypes
    shapes = ((2, 3), (3,), (2, 1))
    listed = [
        call(*(tensor(2, 3, dtype=d, low=low, high=high) for _ in range(count)), **kwargs) for d in (first, *others)
    ]
    listed.append(call(*(tensor(*shapes[i % 3], dtype=first, low=low, high=high) for i in range(count)), **kwargs))
    return calls(*listed)


@_late
def reduction(
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtypes: Iterable[str] = ("float32", "float64", "bfloat16"),
    dims: Iterable[Any] = (None, 0, -1, (0, 2)),
    empty: bool = True,
    kind: str = "uniform",
    keepdim: bool = True,
    **kwargs: Any,
) -> Sampler:
    """Calls of one tensor with ``dim`` and ``keepdim``; an empty tensor, a 0-d one, one that is not contiguous."""
    first, *others = dtypes
    dims = tuple(dims)

    def arg(*shape: int, dtype: str = first, kind: str = kind) -> TensorArgument:
        return tensor(*shape, dtype=dtype, low=low, high=high, kind=kind)

    given = [{} if dim is None else {"dim": dim} for dim in dims]
    listed = [call(arg(2, 3, 4), **g, **kwargs) for g in given]
    if keepdim:
        listed += [call(arg(2, 3, 4), **g, keepdim=True, **kwargs) for g in given if g]
    listed += [call(arg(2, 3, 4, dtype=dtype), **given[-1], **kwargs) for dtype in others]
    listed.append(call(arg(3, 4, 2, kind="transposed"), **given[-1], **kwargs))
    if None in dims:
        listed.append(call(arg(), **kwargs))
    if empty:
        listed.append(call(arg(0, 3, 2), **given[-1], **kwargs))
    return calls(*listed)


def without_gradient(sampler: Sampler) -> Sampler:
    """The same samples, not used for gradient checks."""

    def make(rng: np.random.Generator) -> Iterator[Sample]:
        for sample in sampler(rng):
            yield replace(sample, gradient=False)

    return make


def _floor(dtype: str, low: float) -> float:
    return max(low, 0.0) if dtype.startswith("uint") else low


def _array(argument: TensorArgument, rng: np.random.Generator) -> Any:
    shape, low, high = argument.shape, argument.low, argument.high
    dtype = dtype_of("bool" if argument.dtype == "bool_" else argument.dtype)
    to = numpy_dtype(dtype)
    if argument.kind == "transposed":
        return np.swapaxes(_array(replace(argument, shape=shape[:-2] + shape[:-3:-1], kind="uniform"), rng), -1, -2)
    if argument.kind == "channels_last":
        turned = (shape[0], *shape[2:], shape[1])
        return np.moveaxis(_array(replace(argument, shape=turned, kind="uniform"), rng), -1, 1)
    if argument.kind == "strided":
        return _array(replace(argument, shape=(*shape[:-1], 2 * shape[-1]), kind="uniform"), rng)[..., ::2]
    if dtype.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if argument.kind == "distinct":
        count = int(np.prod(shape))
        spread = (
            rng.permutation(count)
            if dtype.kind == "int"
            else low + (high - low) * rng.permutation(count) / max(count, 1)
        )
        return np.asarray(spread).reshape(shape).astype(to)
    if argument.kind == "sorted":
        return np.sort(_array(replace(argument, kind="uniform"), rng), axis=-1)
    if dtype.kind == "int":
        return rng.integers(int(_floor(argument.dtype, low)), max(int(high), int(low) + 1), shape).astype(to)
    value = rng.uniform(low, high, shape)
    if argument.kind == "spd":
        value = value @ np.swapaxes(value, -1, -2) + shape[-1] * np.eye(shape[-1])
    elif argument.kind == "probability":
        value = np.abs(value) + 0.1
        value = value / value.sum(-1, keepdims=True)
    elif argument.kind == "special":
        flat = value.reshape(-1)
        flat[:5] = (np.nan, np.inf, -np.inf, 0.0, -0.0)[: flat.size]
    if dtype.kind == "complex":
        value = value + 1j * rng.uniform(low, high, shape)
    return np.asarray(value).astype(to)
