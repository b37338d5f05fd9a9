"""Solvers, inverses and determinants: primitives that backends run as external calls (LAPACK), with their gradients.

All take batches: the last two dimensions are the matrix. float32, float64, complex64 and complex128 only.
Gradients: Giles, "Collected matrix derivative results for forward and reverse mode AD", 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from lamina_fx import TensorSpec, complex64, complex128, float32, float64

from ..arrays import array_namespace
from ..dims import broadcast_shapes
from ..registry import ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .pointwise import conjugate

__all__ = [
    "LinAlgError", "NOT_SQUARE", "REAL", "adjoint", "cholesky", "det", "inv", "lapack", "matrix_spec", "slogdet",
    "solve", "triangular_solve",
]  # fmt: skip

_DTYPES = (float32, float64, complex64, complex128)
REAL = {float32: float32, float64: float64, complex64: float32, complex128: float64}


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite, or an iteration did not converge."""


def matrix_spec(name: str, spec: Tensor, square: bool = False) -> Any:
    """Check dtype and rank; returns the spec.

    Raises:
        RuntimeError: fewer than two dimensions, or not square where that is needed.
        NotImplementedError: another dtype.
    """
    if len(spec.shape) < 2:
        raise RuntimeError(f"{name}: the input must have at least 2 dimensions, got {spec}")
    if square and spec.shape[-1] != spec.shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices, got {spec}")
    if spec.dtype not in _DTYPES:
        raise NotImplementedError(f"{name} is not implemented for {spec.dtype}; convert to float32 or float64")
    return spec


def lapack(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``function(xp, *arrays)`` the namespace of its arrays, and turn NumPy's LinAlgError into ours."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(array_namespace(*args), *args, **kwargs)
        except np.linalg.LinAlgError as error_:
            raise LinAlgError(f"{function.__name__.strip('_')}: {error_}") from None

    return run


def adjoint(matrix: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""

    return conjugate(ops.mT(matrix))


NOT_SQUARE = [
    error(RuntimeError, "square", tensor(2, 3)),
    error(RuntimeError, "2 dimensions", tensor(3)),
    error(NotImplementedError, "not implemented", tensor(2, 2, dtype="int64")),
]


# -- Cholesky ---------------------------------------------------------------------------------------


def _cholesky_meta(input: Tensor, *, upper: bool = False) -> TensorSpec:
    spec = matrix_spec("cholesky", input, square=True)
    return TensorSpec(spec.shape, spec.dtype, None, spec.device)


@lapack
def _cholesky(xp: Any, input: Any, *, upper: bool = False) -> Any:
    lower = xp.linalg.cholesky(xp.swapaxes(input, -1, -2).conj() if upper else input)
    return xp.ascontiguousarray(xp.swapaxes(lower, -1, -2).conj()) if upper else lower


@primitive(
    names=("linalg.cholesky", "cholesky", "Tensor.cholesky"),
    meta=_cholesky_meta,
    reference=_cholesky,
    samples=calls(
        call(tensor(3, 3, kind="spd"), symmetric=True),
        call(tensor(2, 3, 3, kind="spd", dtype="float64"), upper=True, symmetric=True),
    ),
    errors=NOT_SQUARE,
)
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """L with L L^H = input, lower triangular (``upper``: its adjoint). Raises LinAlgError unless positive definite."""
    ...


@cholesky.vjp
def _(ct, out, upper):
    lower, ct = (adjoint(out), adjoint(ct)) if upper else (out, ct)
    inner = ops.tril(ops.matmul(adjoint(lower), ct))
    inner = ops.sub(inner, ops.mul(ops.diag_embed(ops.diagonal(inner, 0, -2, -1)), 0.5))
    left = triangular_solve(adjoint(lower), inner, True, False)
    half = adjoint(triangular_solve(adjoint(lower), adjoint(left), True, False))
    return (ops.mul(ops.add(half, adjoint(half)), 0.5),)


# -- solving ----------------------------------------------------------------------------------------


def _solve_shapes(name: str, A: Tensor, B: Tensor) -> TensorSpec:
    matrix_spec(name, A, square=True)
    if A.dtype is not B.dtype:
        raise RuntimeError(f"{name}: A and B must have one dtype, got {A.dtype} and {B.dtype}")
    if len(B.shape) < 2 or B.shape[-2] != A.shape[-1]:
        raise RuntimeError(f"{name}: incompatible shapes of A {tuple(A.shape)} and B {tuple(B.shape)}")
    batch = broadcast_shapes(name, [A.shape[:-2], B.shape[:-2]])
    return TensorSpec((*batch, *B.shape[-2:]), A.dtype, None, A.device)


@lapack
def _solve(xp: Any, A: Any, B: Any) -> Any:
    return xp.linalg.solve(A, B)


_SHAPES = error(RuntimeError, "incompatible", tensor(3, 3), tensor(2, 3))


@primitive(
    meta=lambda A, B: _solve_shapes("solve", A, B),
    reference=_solve,
    samples=calls(
        call(tensor(3, 3, kind="spd"), tensor(3, 2)),
        call(tensor(2, 3, 3, kind="spd"), tensor(3, 2)),
        call(tensor(2, 2, kind="spd", dtype="float64"), tensor(2, 1, dtype="float64")),
    ),
    errors=[_SHAPES, error(RuntimeError, "one dtype", tensor(2, 2), tensor(2, 2, dtype="float64"))],
)
def solve(A: Tensor, B: Tensor) -> Tensor:
    """X with A X = B for square ``A`` (*, n, n) and ``B`` (*, n, k); batches broadcast."""
    ...


@solve.vjp
def _(ct, out, A):
    gradient = solve(adjoint(A), ct)
    return ops.neg(ops.matmul(gradient, adjoint(out))), gradient


def _triangular_meta(A: Tensor, B: Tensor, upper: bool, unitriangular: bool) -> TensorSpec:
    return _solve_shapes("solve_triangular", A, B)


@lapack
def _triangular(xp: Any, A: Any, B: Any, upper: bool, unitriangular: bool) -> Any:
    A = xp.triu(A) if upper else xp.tril(A)
    if unitriangular:
        unit = xp.eye(A.shape[-1], dtype=A.dtype)
        A = A * (1 - unit) + unit
    return xp.linalg.solve(A, B)


@primitive(
    meta=_triangular_meta,
    reference=_triangular,
    samples=calls(
        call(tensor(3, 3, kind="spd"), tensor(3, 2), True, False),
        call(tensor(2, 3, 3, kind="spd"), tensor(2, 3, 2), False, False),
        call(tensor(3, 3, low=-0.5, high=0.5), tensor(3, 2), False, True),
    ),
    errors=[error(RuntimeError, "incompatible", tensor(3, 3), tensor(2, 3), True, False)],
)
def triangular_solve(A: Tensor, B: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """X with tri(A) X = B; only the named triangle of ``A`` is read (``unitriangular``: its diagonal counts as 1)."""
    ...


@triangular_solve.vjp
def _(ct, out, A, upper, unitriangular):
    gradient = triangular_solve(adjoint(A), ct, not upper, unitriangular)
    whole = ops.neg(ops.matmul(gradient, adjoint(out)))
    skip = 1 if unitriangular else 0
    return (ops.triu(whole, skip) if upper else ops.tril(whole, -skip)), gradient


def _inv_meta(input: Tensor) -> TensorSpec:
    spec = matrix_spec("inv", input, square=True)
    return TensorSpec(spec.shape, spec.dtype, None, spec.device)


@lapack
def _inv(xp: Any, input: Any) -> Any:
    return xp.linalg.inv(input)


_MATRICES = calls(
    call(tensor(3, 3, kind="spd")), call(tensor(2, 3, 3, kind="spd", dtype="float64")), call(tensor(0, 2, 2))
)


@primitive(
    names=("linalg.inv", "inverse", "Tensor.inverse"),
    meta=_inv_meta,
    reference=_inv,
    samples=_MATRICES,
    errors=NOT_SQUARE,
)
def inv(input: Tensor) -> Tensor:
    """The inverse. Raises LinAlgError when singular."""
    ...


@inv.vjp
def _(ct, out):
    turned = adjoint(out)
    return (ops.neg(ops.matmul(turned, ops.matmul(ct, turned))),)


# -- determinants -----------------------------------------------------------------------------------


def _det_meta(input: Tensor) -> TensorSpec:
    spec = matrix_spec("det", input, square=True)
    return TensorSpec(spec.shape[:-2], spec.dtype, None, spec.device)


@lapack
def _det(xp: Any, input: Any) -> Any:
    return xp.asarray(xp.linalg.det(input))


@primitive(
    names=("linalg.det", "det", "Tensor.det"), meta=_det_meta, reference=_det, samples=_MATRICES, errors=NOT_SQUARE
)
def det(input: Tensor) -> Tensor:
    """The determinant: (*, n, n) -> (*). Its gradient needs an invertible matrix."""
    ...


@det.vjp
def _(ct, out, input):
    factor = ops.unsqueeze(ops.unsqueeze(ops.mul(ct, conjugate(out)), -1), -1)
    return (ops.mul(factor, adjoint(inv(input))),)


def _slogdet_meta(input: Tensor) -> tuple[TensorSpec, TensorSpec]:
    spec = matrix_spec("slogdet", input, square=True)
    shape = spec.shape[:-2]
    return TensorSpec(shape, spec.dtype, None, spec.device), TensorSpec(shape, REAL[spec.dtype], None, spec.device)


@lapack
def _slogdet(xp: Any, input: Any) -> Any:
    sign, logarithm = xp.linalg.slogdet(input)
    return xp.asarray(sign), xp.asarray(logarithm)


@primitive(
    result_names=("sign", "logabsdet"),
    names=("linalg.slogdet", "slogdet", "Tensor.slogdet"),
    meta=_slogdet_meta,
    reference=_slogdet,
    samples=_MATRICES,
    errors=NOT_SQUARE,
)
def slogdet(input: Tensor) -> tuple[Tensor, Tensor]:
    """(sign, log |det|): (*, n, n) -> (*), (*). (0, -inf) when singular."""
    ...


@slogdet.vjp
def _(ct, input):
    if ct[1] is None:
        return (None,)
    return (ops.mul(ops.unsqueeze(ops.unsqueeze(ct[1], -1), -1), adjoint(inv(input))),)
