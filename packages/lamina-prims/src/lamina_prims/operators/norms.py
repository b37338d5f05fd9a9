"""Norms of vectors and matrices. Half precision is computed in float32."""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import DType

from ..arrays import element_type
from ..dims import canonical_dim, canonical_dims
from ..precision import narrow, widen
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Scalar, Shape, Tensor

__all__: list[str] = []


def _prepared(name: str, input: Tensor, dtype: DType | None) -> Tensor:
    kind = element_type(input).kind
    if kind not in ("float", "complex"):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {element_type(input)}")
    value = widen(input if dtype is None else ops.convert_element_type(input, dtype))
    return value


@composite(
    names=("linalg.vector_norm",),
    samples=calls(
        *(call(tensor(3, 4), p, 1) for p in (2, 1, 0.5, 3, math.inf, -math.inf)),
        call(tensor(3, 4)),
        call(tensor(3, 4), 0, (0, 1), gradient=False),
        call(tensor(3, 4), 2, -1, True),
        call(tensor(3, 4, dtype="bfloat16")),
        call(tensor(2, 3, dtype="complex64")),
        call(tensor()),
    ),
    errors=[error(RuntimeError, "floating", tensor(3, dtype="int64"))],
)
def vector_norm(
    x: Tensor, ord: float = 2, dim: int | Shape | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """(sum of |x| ** ord) ** (1 / ord) over ``dim``; for +-inf the largest or smallest |x|, for 0 how many."""
    value = _prepared("linalg.vector_norm", x, dtype)
    like = x if dtype is None else value
    return narrow(_power_norm(value, float(ord), dim, keepdim), like)


def _power_norm(value: Tensor, p: float, dim: Any, keepdim: bool) -> Tensor:
    size = ops.abs(value)
    if p == math.inf:
        return ops.amax(size, dim, keepdim)
    if p == -math.inf:
        return ops.amin(size, dim, keepdim)
    if p == 0:
        return ops.sum(ops.convert_element_type(ops.ne(size, 0), element_type(size)), dim, keepdim)
    if p == 1:
        return ops.sum(size, dim, keepdim)
    if p == 2:
        return ops.sqrt(ops.sum(ops.mul(size, size), dim, keepdim))
    return ops.pow(ops.sum(ops.pow(size, p), dim, keepdim), 1.0 / p)


@vector_norm.vjp
def _(ct, out, x, ord, dim, keepdim):
    # the derivative at 0 is taken as 0: x = 0 has norm 0, and 0 / 0 would be NaN
    p = float(ord)
    x, out, ct = widen(x), widen(out), widen(ct)
    if not keepdim and len(x.shape):
        dims = canonical_dims("vector_norm", dim, len(x.shape))
        shape = tuple(1 if d in dims else s for d, s in enumerate(x.shape))
        out, ct = ops.reshape(out, shape), ops.reshape(ct, shape)
    if p == 0:
        return (ops.mul(x, 0.0),)
    if p in (math.inf, -math.inf):
        hit = ops.eq(ops.abs(x), out)
        share = ops.convert_element_type(hit, element_type(out))
        return (ops.mul(ops.div(ops.mul(ct, share), ops.sum(share, dim, True)), ops.sgn(x)),)
    if p == 1:
        return (ops.mul(ct, ops.sgn(x)),)
    safe = ops.where(ops.eq(out, 0), 1.0, out)
    if p == 2:
        return (ops.where(ops.eq(out, 0), 0.0, ops.mul(x, ops.div(ct, safe))),)
    size = ops.abs(x)
    ratio = ops.pow(ops.div(ops.where(ops.eq(size, 0), 1.0, size), safe), p - 1.0)
    return (ops.where(ops.eq(size, 0), 0.0, ops.mul(ct, ops.mul(ratio, ops.sgn(x)))),)


_MATRIX = calls(
    *(call(tensor(3, 4), p) for p in ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)),
    call(tensor(2, 3, 4), "fro", (0, 2), True),
    call(tensor(2, 3, 4), 1, (-1, 0)),
    call(tensor(2, 3, 4), 2, (-1, 0), True),
)


@composite(names=("linalg.matrix_norm",), samples=_MATRIX, errors=[error(RuntimeError, "Order", tensor(3, 3), 3)])
def matrix_norm(
    A: Tensor, ord: float | str = "fro", dim: Shape = (-2, -1), keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Frobenius, nuclear, spectral (+-2), row (+-inf) or column (+-1) norm of matrices in two dimensions."""
    value = _prepared("linalg.matrix_norm", A, dtype)
    like = A if dtype is None else value
    rank = len(A.shape)
    if rank < 2 or len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: needs a matrix and two dimensions, got {list(A.shape)} and {dim}")
    row, column = (canonical_dim("linalg.matrix_norm", d, rank) for d in dim)
    if ord == "fro":
        return narrow(ops.vector_norm(value, 2, (row, column), keepdim), like)
    if ord in ("nuc", 2, -2):
        values = ops.svdvals(ops.movedim(value, (row, column), (-2, -1)))
        result = ops.sum(values, -1) if ord == "nuc" else ops.amax(values, -1) if ord == 2 else ops.amin(values, -1)
        if keepdim:
            for d in sorted((row, column)):
                result = ops.unsqueeze(result, d)
        return narrow(result, like)
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    inner, outer = (row, column) if abs(float(ord)) == 1 else (column, row)
    sums = ops.sum(ops.abs(value), inner, True)
    result = (ops.amax if float(ord) > 0 else ops.amin)(sums, outer, True)
    return narrow(result if keepdim else ops.squeeze(result, (row, column)), like)


@composite(
    names=("linalg.norm",),
    samples=calls(
        call(tensor(3, 4)),
        call(tensor(3, 4), 1),
        call(tensor(3, 4), 1, 0),
        call(tensor(3), math.inf),
        call(tensor(2, 3, 4)),
    ),
)
def linalg_norm(
    A: Tensor, ord: Scalar | str | None = None, dim: int | Shape | None = None, keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Tensor:  # fmt: skip
    """A vector norm, or a matrix norm when two dimensions are meant and an order is given."""
    if ord is None:
        return ops.vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if len(A.shape) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {list(A.shape)}"
            )
        dim = (0, 1) if len(A.shape) == 2 else (0,)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) == 2:
        return ops.matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    return ops.vector_norm(A, ord, dims, keepdim, dtype=dtype)


@composite(
    names=both("norm"),
    samples=calls(
        call(tensor(3, 4)), call(tensor(3, 4), 1, 0), call(tensor(3, 4), "nuc"), call(tensor(3, 4), math.inf, 1, True)
    ),
)
def norm(
    input: Tensor, p: Scalar | str | None = "fro", dim: int | Shape | None = None, keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:  # fmt: skip
    """The p-norm of all elements or over ``dim``; ``"fro"`` is 2, ``"nuc"`` the nuclear norm of matrices."""
    if p == "nuc":
        dims = (-2, -1) if dim is None else tuple(dim)  # type: ignore[arg-type]
        return ops.matrix_norm(input, "nuc", dims, keepdim, dtype=dtype)
    return ops.vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


@composite(
    names=both("dist"),
    samples=calls(call(tensor(3, 4), tensor(4)), call(tensor(3), tensor(3), 1)),
)
def dist(input: Tensor, other: Tensor, p: Scalar = 2) -> Tensor:
    """The p-norm of input - other."""
    return ops.vector_norm(ops.sub(input, other), p)


@composite(names=both("renorm"), samples=calls(call(tensor(3, 4), 2, 0, 1.0)))
def renorm(input: Tensor, p: Scalar, dim: int, maxnorm: float) -> Tensor:
    """Slices along ``dim`` scaled so that none has a p-norm above ``maxnorm``."""
    place = canonical_dim("renorm", dim, len(input.shape))
    others = tuple(d for d in range(len(input.shape)) if d != place)
    size = ops.vector_norm(input, p, others, True)
    return ops.mul(input, ops.where(ops.gt(size, maxnorm), ops.div(maxnorm, ops.add(size, 1e-7)), 1.0))
