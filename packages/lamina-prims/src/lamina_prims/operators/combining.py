"""Differences, integrals, contractions and other composites of several steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from lamina_fx import TensorSpec, bool_, complex64, complex128, float64, int64

from ..arrays import array_namespace, element_type, numpy_dtype, spec_of
from ..dims import canonical_dim, numel
from ..elementwise import Elementwise
from ..promotion import real_dtype
from ..registry import both, composite, ops, primitive
from ..samples import binary, call, calls, error, tensor
from ..types import Shape, Tensor
from .products import dot_general

__all__ = ["tensordot"]


@composite(names=both("diff"), samples=calls(call(tensor(2, 5)), call(tensor(5), 2), call(tensor(3, 2), dim=0)))
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours along ``dim``, ``n`` times."""
    place = canonical_dim("diff", dim, len(input.shape))
    parts = [t for t in (prepend, input, append) if t is not None]
    value = ops.cat(parts, place) if len(parts) > 1 else input
    for _ in range(n):
        size = value.shape[place]
        later, sooner = ops.slice(value, place, 1), ops.slice(value, place, 0, size - 1)
        value = ops.ne(later, sooner) if element_type(value) is bool_ else ops.sub(later, sooner)
    return value


def _areas(y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, int]:
    place = canonical_dim("trapezoid", dim, len(y.shape))
    pairs = ops.add(ops.slice(y, place, 1), ops.slice(y, place, 0, y.shape[place] - 1))
    if x is None:
        return ops.mul(pairs, dx / 2), place
    steps = diff(x, dim=dim if len(x.shape) > 1 else -1)
    if len(x.shape) == 1:
        steps = ops.reshape(steps, (steps.shape[0],) + (1,) * (len(y.shape) - place - 1))
    return ops.mul(ops.mul(pairs, steps), 0.5), place


@composite(
    names=("trapezoid", "trapz"),
    samples=calls(call(tensor(2, 5)), call(tensor(2, 5), tensor(5)), call(tensor(3, 2), dim=0, dx=0.5)),
)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral of ``y`` along ``dim`` by the trapezoidal rule, at points ``x`` or ``dx`` apart."""
    areas, place = _areas(y, x, dx, dim)
    return ops.sum(areas, place)


@composite(names=("cumulative_trapezoid",), samples=calls(call(tensor(2, 5)), call(tensor(2, 5), tensor(5))))
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integrals up to every point."""
    areas, place = _areas(y, x, dx, dim)
    return ops.cumsum(areas, place)


@composite(
    names=both("nan_to_num"),
    in_place=True,
    samples=calls(
        call(tensor(12, kind="special"), gradient=False),
        call(tensor(12, kind="special"), 1.0, 9.0, -9.0, gradient=False),
    ),
)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """nan replaced by ``nan`` (0), infinities by the largest and smallest numbers of the dtype unless given."""
    dtype = element_type(input)
    if dtype.kind != "float":
        return input
    largest = _LARGEST[dtype.name]
    value = ops.where(ops.isnan(input), 0.0 if nan is None else nan, input)
    value = ops.where(ops.eq(value, math.inf), largest if posinf is None else posinf, value)
    return ops.where(ops.eq(value, -math.inf), -largest if neginf is None else neginf, value)


_LARGEST = {
    "float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127, "float32": (2 - 2**-23) * 2.0**127,
    "float64": (2 - 2**-52) * 2.0**1023,
}  # fmt: skip


# -- numbers ---------------------------------------------------------------------------------------------


def _whole_numbers(name: str, words: str) -> Any:
    def combine(input: Tensor, other: Tensor) -> Tensor: ...

    combine.__name__ = name
    combine.__doc__ = f"The {words} of two integers, elementwise."
    declared = primitive(
        names=both(name),
        meta=Elementwise(name, allowed="int"),
        reference=name,
        samples=binary(-9, 9, dtypes=("int64", "int32"), mixed=(("int32", "int64"),), scalars=()),
        errors=[error(RuntimeError, "not defined for float32", tensor(2), tensor(2))],
    )(combine)
    declared.vjp(lambda: (None, None))
    return declared


gcd = _whole_numbers("gcd", "greatest common divisor")
lcm = _whole_numbers("lcm", "least common multiple")


def _as_real_meta(input: Any) -> TensorSpec:
    if input.dtype.kind != "complex":
        raise RuntimeError(f"view_as_real is only supported for complex tensors, not {input.dtype}")
    strides = (*(s * 2 for s in input.strides), 1)
    return TensorSpec((*input.shape, 2), real_dtype(input.dtype), strides, input.device)


def _as_real(input: Any) -> Any:
    spec = _as_real_meta(spec_of(input))
    xp, to = array_namespace(input), numpy_dtype(spec.dtype)
    flat = (
        input.reshape(1).view(to)
        if not input.ndim
        else xp.lib.stride_tricks.as_strided(input.real, (*input.shape, 2), (*input.strides, to.itemsize))
    )
    return flat.reshape(2) if not input.ndim else flat


@primitive(
    names=("view_as_real",),
    meta=_as_real_meta,
    reference=_as_real,
    alias=True,
    samples=calls(call(tensor(2, 3, dtype="complex64"), gradient=False)),
    errors=[error(RuntimeError, "only supported for complex", tensor(2))],
)
def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor's memory as real numbers: a new last dimension holds real and imaginary part."""
    ...


@view_as_real.vjp
def _(ct):
    return (ops.view_as_complex(ops.clone(ct, memory_format="contiguous_format")),)


@view_as_real.normalize
def _(input):
    return ops.cat([ops.unsqueeze(ops.real(input), -1), ops.unsqueeze(ops.imag(input), -1)], len(input.shape))


@view_as_real.scatter
def _(base, value):
    return ops.view_as_complex(value)


def _as_complex_meta(input: Any) -> TensorSpec:
    if not input.shape or input.shape[-1] != 2 or input.dtype.kind != "float":
        raise RuntimeError(f"view_as_complex wants real numbers and a last dimension of size 2, got {input}")
    known = [s for n, s in zip(input.shape, input.strides, strict=True) if type(s) is int and n != 1]
    if 0 not in input.shape and (known[-1:] != [1] or any(s % 2 for s in known[:-1])):
        raise RuntimeError("view_as_complex: the last dimension must have stride 1 and the others even strides")
    wide = complex128 if input.dtype is float64 else complex64
    return TensorSpec(input.shape[:-1], wide, [s // 2 for s in input.strides[:-1]], input.device)


def _as_complex(input: Any) -> Any:
    spec = _as_complex_meta(spec_of(input))
    return input.view(numpy_dtype(spec.dtype))[..., 0]


@primitive(
    names=("view_as_complex",),
    meta=_as_complex_meta,
    reference=_as_complex,
    alias=True,
    samples=calls(call(tensor(3, 2), gradient=False)),
    errors=[error(RuntimeError, "size 2", tensor(3))],
)
def view_as_complex(input: Tensor) -> Tensor:
    """Real numbers whose last dimension holds real and imaginary parts, as complex numbers in the same memory."""
    ...


@view_as_complex.vjp
def _(ct):
    return (ops.view_as_real(ct),)


@view_as_complex.normalize
def _(input):
    last = len(input.shape) - 1
    return ops.complex(ops.select(input, last, 0), ops.select(input, last, 1))


@view_as_complex.scatter
def _(base, value):
    return ops.view_as_real(value)


# -- contractions ----------------------------------------------------------------------------------------


@composite(
    names=("tensordot",),
    samples=calls(
        call(tensor(2, 3, 4), tensor(3, 4, 5)),
        call(tensor(2, 3), tensor(3, 2), ([1], [0])),
        call(tensor(2, 3), tensor(3, 2), 1),
    ),
)
def tensordot(a: Tensor, b: Tensor, dims: int | Shape = 2) -> Tensor:
    """Products summed over the last ``dims`` dimensions of a and the first of b, or over a pair of lists of them."""
    if isinstance(dims, int):
        left, right = range(len(a.shape) - dims, len(a.shape)), range(dims)
    else:
        left, right = (d if isinstance(d, (tuple, list)) else (d,) for d in dims)
    contract = (
        tuple(canonical_dim("tensordot", d, len(a.shape)) for d in left),
        tuple(canonical_dim("tensordot", d, len(b.shape)) for d in right),
    )
    return dot_general(a, b, contract, ((), ()))


@composite(names=("vdot", "Tensor.vdot"), samples=calls(call(tensor(3), tensor(3))))
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors, the first conjugated."""
    return ops.dot(ops.conj_physical(input) if element_type(input).kind == "complex" else input, other)


@composite(
    names=("chain_matmul",), variadic="matrices", samples=calls(call([tensor(2, 3), tensor(3, 4), tensor(4, 2)]))
)
def chain_matmul(matrices: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, from the left."""
    value = matrices[0]
    for matrix in matrices[1:]:
        value = ops.mm(value, matrix)
    return value


@composite(
    names=("isin",),
    samples=calls(call(tensor(2, 3, dtype="int64", low=0, high=5), tensor(3, dtype="int64", low=0, high=5))),
)
def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Is each element among ``test_elements``."""
    found = ops.any(ops.eq(ops.unsqueeze(elements, -1), ops.reshape(test_elements, (-1,))), -1)
    return ops.logical_not(found) if invert else found


@composite(names=("vander",), samples=calls(call(tensor(3)), call(tensor(3), 2, True)))
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of the elements as rows, falling unless ``increasing``."""
    count = x.shape[0] if N is None else N
    powers = (
        ops.iota(count, device=x.device) if increasing else ops.iota(count, start=count - 1, step=-1, device=x.device)
    )
    return ops.pow(ops.unsqueeze(x, -1), powers)


@composite(names=both("cov"), samples=calls(call(tensor(2, 5)), call(tensor(5)), call(tensor(2, 5), correction=0)))
def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """The covariance matrix: rows are variables, columns observations."""
    rows = ops.reshape(input, (1, -1)) if len(input.shape) < 2 else input
    centred = ops.sub(rows, ops.mean(rows, 1, True))
    value = ops.div(ops.matmul(centred, ops.adjoint(centred)), max(rows.shape[1] - correction, 0))
    return ops.reshape(value, ()) if len(input.shape) < 2 else value


@composite(names=both("corrcoef"), samples=calls(call(tensor(2, 5))))
def corrcoef(input: Tensor) -> Tensor:
    """The correlation matrix: covariances divided by both standard deviations."""
    value = cov(input)
    if not len(value.shape):
        return ops.div(value, value)
    deviation = ops.sqrt(ops.diagonal(value))
    return ops.clamp(ops.div(ops.div(value, ops.unsqueeze(deviation, 1)), deviation), -1, 1)


@composite(names=("unravel_index",), samples=calls(call(tensor(3, dtype="int64", low=0, high=6), (2, 3))))
def unravel_index(indices: Tensor, shape: Shape) -> tuple[Tensor, ...]:
    """Positions in the flat tensor as one index for each dimension of ``shape``."""
    places = []
    for size in reversed(tuple(shape)):
        places.append(ops.remainder(indices, size))
        indices = ops.floor_divide(indices, size)
    return tuple(reversed(places))


@composite(names=both("bincount"), tags=frozenset({"dynamic"}))
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each value occurs (or the sum of its ``weights``); as long as the largest value demands."""
    if len(input.shape) != 1 or element_type(input).kind != "int":
        raise RuntimeError(f"bincount: a vector of integers is wanted, got {element_type(input)}{list(input.shape)}")
    length = max(int(ops.amax(input)) + 1, minlength) if numel(input.shape) else minlength
    index = ops.convert_element_type(input, int64)
    if weights is None:
        weights = ops.ones((input.shape[0],), dtype=int64, device=input.device)
    start = ops.zeros((length,), dtype=element_type(weights), device=input.device)
    return ops.scatter_add(start, 0, index, weights)


@composite(names=("combinations",), samples=calls(call(tensor(4)), call(tensor(3), 2, True)))
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ``r``-element subsets of a vector, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(int(input.shape[0])), r))
    if not rows:
        return ops.full((0, r), 0, dtype=element_type(input), device=input.device)
    columns = [ops.cat([ops.slice(input, 0, row[k], row[k] + 1) for row in rows]) for k in range(r)]
    return ops.stack(columns, 1)
