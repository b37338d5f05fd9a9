"""Matrix factorisations: QR, eigenvalues of Hermitian matrices, singular values; external calls in backends.

Gradients: Seeger et al., "Auto-differentiating linear algebra", 2017.
"""

from __future__ import annotations

from typing import Any

from lamina_fx import TensorSpec

from ..registry import ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .linalg import NOT_SQUARE, REAL, adjoint, lapack, matrix_spec, triangular_solve

__all__ = ["eigh", "qr", "svd"]


def _scale_columns(matrix: Tensor, by: Tensor) -> Tensor:
    return ops.mul(matrix, ops.unsqueeze(by, -2))


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


@lapack
def _qr(xp: Any, input: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return xp.zeros((0,), input.dtype), xp.linalg.qr(input, "r")
    q, r = xp.linalg.qr(input, mode)
    return q, r


@primitive(
    result_names=("Q", "R"),
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
        TensorSpec(spec.shape[:-1], REAL[spec.dtype], None, spec.device),
        TensorSpec(spec.shape, spec.dtype, None, spec.device),
    )


@lapack
def _eigh(xp: Any, input: Any, UPLO: str = "L") -> Any:
    values, vectors = xp.linalg.eigh(input, UPLO)
    return values, vectors


@primitive(
    result_names=("eigenvalues", "eigenvectors"),
    names=("linalg.eigh",),
    meta=_eigh_meta,
    reference=_eigh,
    samples=calls(
        call(tensor(3, 3, kind="spd"), symmetric=True),
        call(tensor(2, 3, 3, kind="spd", dtype="float64"), UPLO="U", symmetric=True),
    ),
    errors=[*NOT_SQUARE, error(RuntimeError, "UPLO", tensor(2, 2), "X")],
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
        TensorSpec((*batch, k), REAL[dtype], None, device),
        TensorSpec((*batch, *v), dtype, None, device),
    )


@lapack
def _svd(xp: Any, input: Any, full_matrices: bool = True) -> Any:
    u, s, v = xp.linalg.svd(input, full_matrices)
    return u, s, v


@primitive(
    result_names=("U", "S", "Vh"),
    names=("linalg.svd",),
    meta=_svd_meta,
    reference=_svd,
    samples=calls(
        call(tensor(4, 3, dtype="float64"), False),
        call(tensor(2, 3, 4), False),
        call(tensor(3, 2), gradient=False),
    ),
    errors=NOT_SQUARE[1:],
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
