"""Matrix factorisations and solvers: primitives that backends run as external calls (LAPACK), with their gradients.

All take batches: the last two dimensions are the matrix. float32, float64, complex64 and complex128 only.
Gradients: Giles, "Collected matrix derivative results for forward and reverse mode AD", 2008; QR of Seeger et al.,
"Auto-differentiating linear algebra", 2017.
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
    "LinAlgError",
    "adjoint",
    "cholesky",
    "det",
    "eigh",
    "inv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "triangular_solve",
]

_DTYPES = (float32, float64, complex64, complex128)
_REAL = {float32: float32, float64: float64, complex64: float32, complex128: float64}


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


def _lapack(function: Callable[..., Any]) -> Callable[..., Any]:
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


def _scale_columns(matrix: Tensor, by: Tensor) -> Tensor:
    return ops.mul(matrix, ops.unsqueeze(by, -2))


_SQUARE = [
    error(RuntimeError, "square", tensor(2, 3)),
    error(RuntimeError, "2 dimensions", tensor(3)),
    error(NotImplementedError, "not implemented", tensor(2, 2, dtype="int64")),
]


# -- Cholesky ---------------------------------------------------------------------------------------


def _cholesky_meta(input: Tensor, *, upper: bool = False) -> TensorSpec:
    spec = matrix_spec("cholesky", input, square=True)
    return TensorSpec(spec.shape, spec.dtype, None, spec.device)


@_lapack
def _cholesky(xp: Any, input: Any, *, upper: bool = False) -> Any:
    lower = xp.linalg.cholesky(xp.swapaxes(input, -1, -2).conj() if upper else input)
    return xp.swapaxes(lower, -1, -2).conj() if upper else lower


@primitive(
    names=("linalg.cholesky", "cholesky", "Tensor.cholesky"),
    meta=_cholesky_meta,
    reference=_cholesky,
    samples=calls(
        call(tensor(3, 3, kind="spd"), symmetric=True),
        call(tensor(2, 3, 3, kind="spd", dtype="float64"), upper=True, symmetric=True),
    ),
    errors=_SQUARE,
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


@_lapack
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


@_lapack
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


@_lapack
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
    errors=_SQUARE,
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


@_lapack
def _det(xp: Any, input: Any) -> Any:
    return xp.asarray(xp.linalg.det(input))


@primitive(names=("linalg.det", "det", "Tensor.det"), meta=_det_meta, reference=_det, samples=_MATRICES, errors=_SQUARE)
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
    return TensorSpec(shape, spec.dtype, None, spec.device), TensorSpec(shape, _REAL[spec.dtype], None, spec.device)


@_lapack
def _slogdet(xp: Any, input: Any) -> Any:
    sign, logarithm = xp.linalg.slogdet(input)
    return xp.asarray(sign), xp.asarray(logarithm)


@primitive(
    names=("linalg.slogdet", "slogdet", "Tensor.slogdet"),
    meta=_slogdet_meta,
    reference=_slogdet,
    samples=_MATRICES,
    errors=_SQUARE,
)
def slogdet(input: Tensor) -> tuple[Tensor, Tensor]:
    """(sign, log |det|): (*, n, n) -> (*), (*). (0, -inf) when singular."""
    ...


@slogdet.vjp
def _(ct, input):
    if ct[1] is None:
        return (None,)
    return (ops.mul(ops.unsqueeze(ops.unsqueeze(ct[1], -1), -1), adjoint(inv(input))),)


# -- factorisations ---------------------------------------------------------------------------------


def _qr_meta(input: Tensor, mode: str = "reduced") -> tuple[TensorSpec, TensorSpec]:
    spec = matrix_spec("qr", input)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    *batch, m, n = spec.shape
    inner = m if mode == "complete" else min(m, n)
    first = (0,) if mode == "r" else (*batch, m, inner)
    return TensorSpec(first, spec.dtype, None, spec.device), TensorSpec(
        (*batch, inner, n), spec.dtype, None, spec.device
    )


@_lapack
def _qr(xp: Any, input: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return xp.zeros((0,), input.dtype), xp.linalg.qr(input, "r")
    q, r = xp.linalg.qr(input, mode)
    return q, r


@primitive(
    names=("linalg.qr", "qr", "Tensor.qr"),
    meta=_qr_meta,
    reference=_qr,
    samples=calls(
        call(tensor(4, 3)),
        call(tensor(2, 3, 3, dtype="float64")),
        call(tensor(2, 3), gradient=False),
        call(tensor(4, 3), mode="complete", gradient=False),
        call(tensor(4, 3), mode="r", gradient=False),
    ),
    errors=[error(RuntimeError, "mode", tensor(2, 2), "economic")],
)
def qr(input: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """(Q with orthonormal columns, R upper triangular), Q R = input. ``mode="r"``: Q is empty."""
    ...


@qr.vjp
def _(ct, out, input, mode):
    q, r = out
    if mode != "reduced" or (input.shape[-2] < input.shape[-1]):
        raise RuntimeError("qr: the gradient exists for mode='reduced' and at least as many rows as columns only")
    gq = ops.mul(q, 0) if ct[0] is None else ct[0]
    gr = ops.mul(r, 0) if ct[1] is None else ct[1]
    m = ops.sub(ops.matmul(r, adjoint(gr)), ops.matmul(adjoint(gq), q))
    below = ops.tril(m, -1)
    symmetric = ops.add(ops.add(below, adjoint(below)), ops.diag_embed(ops.diagonal(m, 0, -2, -1)))
    return (adjoint(triangular_solve(r, adjoint(ops.add(gq, ops.matmul(q, symmetric))), True, False)),)


def _eigh_meta(input: Tensor, UPLO: str = "L") -> tuple[TensorSpec, TensorSpec]:
    spec = matrix_spec("eigh", input, square=True)
    if UPLO not in ("L", "U"):
        raise RuntimeError(f"eigh: UPLO must be 'L' or 'U', got {UPLO!r}")
    return (
        TensorSpec(spec.shape[:-1], _REAL[spec.dtype], None, spec.device),
        TensorSpec(spec.shape, spec.dtype, None, spec.device),
    )


@_lapack
def _eigh(xp: Any, input: Any, UPLO: str = "L") -> Any:
    values, vectors = xp.linalg.eigh(input, UPLO)
    return values, vectors


@primitive(
    names=("linalg.eigh",),
    meta=_eigh_meta,
    reference=_eigh,
    samples=calls(
        call(tensor(3, 3, kind="spd"), symmetric=True),
        call(tensor(2, 3, 3, kind="spd", dtype="float64"), UPLO="U", symmetric=True),
    ),
    errors=[*_SQUARE, error(RuntimeError, "UPLO", tensor(2, 2), "X")],
)
def eigh(input: Tensor, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """(eigenvalues, ascending and real; eigenvectors as columns) of a Hermitian matrix. One triangle is read."""
    ...


def _gaps(values: Tensor) -> Tensor:
    """values_j - values_i at [i, j], with 1 on the diagonal."""
    gap = ops.sub(ops.unsqueeze(values, -2), ops.unsqueeze(values, -1))
    return ops.add(gap, ops.diag_embed(ops.add(ops.mul(values, 0), 1)))


def _off_diagonal(matrix: Tensor) -> Tensor:
    return ops.sub(matrix, ops.diag_embed(ops.diagonal(matrix, 0, -2, -1)))


@eigh.vjp
def _(ct, out):
    values, vectors = out
    inner = ops.diag_embed(ops.mul(values, 0) if ct[0] is None else ct[0])
    if ct[1] is not None:
        inner = ops.add(inner, _off_diagonal(ops.div(ops.matmul(adjoint(vectors), ct[1]), _gaps(values))))
    whole = ops.matmul(vectors, ops.matmul(inner, adjoint(vectors)))
    return (ops.mul(ops.add(whole, adjoint(whole)), 0.5),)


def _svd_meta(input: Tensor, full_matrices: bool = True) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    spec = matrix_spec("svd", input)
    *batch, m, n = spec.shape
    k = min(m, n)
    u, v = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
    dtype, device = spec.dtype, spec.device
    return (
        TensorSpec((*batch, *u), dtype, None, device),
        TensorSpec((*batch, k), _REAL[dtype], None, device),
        TensorSpec((*batch, *v), dtype, None, device),
    )


@_lapack
def _svd(xp: Any, input: Any, full_matrices: bool = True) -> Any:
    u, s, v = xp.linalg.svd(input, full_matrices)
    return u, s, v


@primitive(
    names=("linalg.svd",),
    meta=_svd_meta,
    reference=_svd,
    samples=calls(
        call(tensor(4, 3, dtype="float64"), False),
        call(tensor(2, 3, 4), False),
        call(tensor(3, 2), gradient=False),
    ),
    errors=_SQUARE[1:],
)
def svd(input: Tensor, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """(U, singular values descending, V^H): U diag(S) V^H = input."""
    ...


@svd.vjp
def _(ct, out, input, full_matrices):
    u, s, vh = out
    if full_matrices and input.shape[-1] != input.shape[-2] and (ct[0] is not None or ct[2] is not None):
        raise RuntimeError("svd: the gradient of U and V needs full_matrices=False")
    k = s.shape[-1]
    if full_matrices:
        u, vh = ops.slice(u, -1, 0, k), ops.slice(vh, -2, 0, k)
    v = adjoint(vh)
    middle = ops.diag_embed(ops.mul(s, 0) if ct[1] is None else ct[1])
    gaps = _gaps(ops.mul(s, s))
    safe = ops.where(ops.eq(s, 0), ops.add(ops.mul(s, 0), 1), s)
    outside = None
    if ct[0] is not None:
        inner = ops.matmul(adjoint(u), ct[0])
        turn = _off_diagonal(ops.div(ops.sub(inner, adjoint(inner)), gaps))
        middle = ops.add(middle, _scale_columns(turn, s))
        rest = ops.div(ops.sub(ct[0], ops.matmul(u, inner)), ops.unsqueeze(safe, -2))
        outside = ops.matmul(rest, vh)
    if ct[2] is not None:
        gv = adjoint(ct[2])
        inner = ops.matmul(vh, gv)
        turn = _off_diagonal(ops.div(ops.sub(inner, adjoint(inner)), gaps))
        middle = ops.add(middle, ops.mul(ops.unsqueeze(s, -1), turn))
        rest = ops.div(ops.sub(gv, ops.matmul(v, inner)), ops.unsqueeze(safe, -2))
        extra = ops.matmul(u, adjoint(rest))
        outside = extra if outside is None else ops.add(outside, extra)
    whole = ops.matmul(u, ops.matmul(middle, vh))
    return (whole if outside is None else ops.add(whole, outside),)
