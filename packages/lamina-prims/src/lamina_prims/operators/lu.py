"""LU factorisation and eigenvalues of general matrices: external calls in backends.

The gradient of the eigenvalues is Boeddeker et al., "On the computation of complex-valued gradients", 2017, eq. 4.77.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec, complex64, complex128, float32, int32

from ..arrays import element_type
from ..registry import composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .linalg import NOT_SQUARE, adjoint, lapack, matrix_spec

__all__: list[str] = []


def _lu_meta(input: Any) -> tuple[TensorSpec, TensorSpec]:
    spec = matrix_spec("lu_factor", input)
    m, n = spec.shape[-2:]
    pivots = (*spec.shape[:-2], min(m, n))
    return TensorSpec(spec.shape, spec.dtype, None, spec.device), TensorSpec(pivots, int32, None, spec.device)


@lapack
def _lu(xp: Any, input: Any) -> tuple[Any, Any]:
    """Gaussian elimination with row exchanges, all matrices of the batch at once."""
    packed = xp.array(input)
    flat = packed.reshape(-1, *packed.shape[-2:])
    count, m, n = flat.shape
    batch = xp.arange(count)
    pivots = xp.zeros((count, min(m, n)), xp.int32)
    for k in range(min(m, n)):
        row = k + xp.argmax(xp.abs(flat[:, k:, k]), 1) if count else xp.zeros(0, int)
        pivots[:, k] = row + 1
        flat[batch, k], flat[batch, row] = flat[batch, row].copy(), flat[batch, k].copy()
        pivot = flat[:, k, k][:, None]
        flat[:, k + 1 :, k] /= xp.where(pivot == 0, 1, pivot)
        flat[:, k + 1 :, k + 1 :] -= flat[:, k + 1 :, k, None] * flat[:, None, k, k + 1 :]
    return flat.reshape(input.shape), pivots.reshape(*input.shape[:-2], min(m, n))


_SAMPLES = calls(
    call(tensor(3, 3, dtype="float64")),
    call(tensor(2, 4, 3), gradient=False),
    call(tensor(3, 4), gradient=False),
)


@primitive(names=(), meta=_lu_meta, reference=_lu, samples=_SAMPLES, errors=NOT_SQUARE[1:])
def lu_packed(input: Tensor) -> tuple[Tensor, Tensor]:
    """(L without its diagonal of ones and U in one matrix, int32 pivots counted from 1), with partial pivoting."""
    ...


@lu_packed.vjp
def _(ct, out):
    packed, pivots = out
    if packed.shape[-1] != packed.shape[-2]:
        raise RuntimeError(f"lu: the gradient exists for square matrices only, not for {list(packed.shape)}")
    if ct[0] is None:
        return (None,)
    one = ops.eye(packed.shape[-1], dtype=element_type(packed), device=packed.device)
    lower, upper = ops.add(ops.tril(packed, -1), one), ops.triu(packed)
    left = ops.tril(ops.matmul(adjoint(lower), ops.tril(ct[0], -1)), -1)
    inner = ops.add(left, ops.triu(ops.matmul(ops.triu(ct[0]), adjoint(upper))))
    inner = ops.triangular_solve(adjoint(lower), inner, True, True)
    rows = adjoint(ops.triangular_solve(upper, adjoint(inner), True, False))
    back = ops.argsort(_permutation(pivots, packed.shape[-1]), -1)
    return (ops.gather(rows, -2, ops.expand(ops.unsqueeze(back, -1), tuple(rows.shape))),)


@composite(names=("linalg.lu_factor",), result_names=("LU", "pivots"), samples=_SAMPLES)
def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """(packed LU, pivots): what ``lu_solve`` takes."""
    if not pivot:
        raise NotImplementedError("linalg.lu_factor: pivot=False is not implemented; factorise with pivoting")
    return ops.lu_packed(A)


def _permutation(pivots: Tensor, m: Any) -> Tensor:
    """Row numbers after the exchanges, int64 (*, m)."""
    lead = tuple(pivots.shape[:-1])
    order = ops.expand(ops.arange(m, device=pivots.device), (*lead, m))
    for k in range(pivots.shape[-1]):
        row = ops.sub(ops.convert_element_type(ops.slice(pivots, -1, k, k + 1), element_type(order)), 1)
        here, there = ops.slice(order, -1, k, k + 1), ops.gather(order, -1, row)
        place = ops.arange(m, device=pivots.device)
        swapped = ops.where(ops.eq(place, row), here, order)
        order = ops.where(ops.eq(place, k), there, swapped)
    return order


@composite(
    names=("linalg.lu_solve",),
    samples=calls(call(tensor(3, 3, kind="spd"), np.array([2, 3, 3], np.int32), tensor(3, 2))),
)
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor) -> Tensor:
    """X with A X = B, given what ``lu_factor`` made of A."""
    order = _permutation(pivots, LU.shape[-1])
    rows = ops.gather(B, -2, ops.expand(ops.unsqueeze(order, -1), tuple(B.shape)))
    return ops.triangular_solve(LU, ops.triangular_solve(LU, rows, False, True), True, False)


@composite(names=("linalg.lu",), result_names=("P", "L", "U"), samples=_SAMPLES)
def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """(P, L, U) with A = P L U."""
    packed, pivots = ops.lu_factor(A, pivot=pivot)
    m, n = A.shape[-2:]
    k = min(m, n)
    order = _permutation(pivots, m)
    place = ops.unsqueeze(ops.arange(m, device=A.device), -1)
    exchange = ops.convert_element_type(ops.eq(place, ops.unsqueeze(order, -2)), element_type(A))
    one = ops.eye(m, k, dtype=element_type(A), device=A.device)
    lower = ops.add(ops.tril(ops.slice(packed, -1, 0, k), -1), one)
    return exchange, lower, ops.triu(ops.slice(packed, -2, 0, k))


_COMPLEX = {float32: complex64, complex64: complex64}


def _complex(dtype: Any) -> Any:
    return _COMPLEX.get(dtype, complex128)


def _eig_meta(input: Any) -> tuple[TensorSpec, TensorSpec]:
    spec = matrix_spec("eig", input, square=True)
    dtype = _complex(spec.dtype)
    return TensorSpec(spec.shape[:-1], dtype, None, spec.device), TensorSpec(spec.shape, dtype, None, spec.device)


@lapack
def _eig(xp: Any, input: Any) -> tuple[Any, Any]:
    values, vectors = xp.linalg.eig(input)
    dtype = xp.complex64 if input.dtype in (xp.float32, xp.complex64) else xp.complex128
    return values.astype(dtype), vectors.astype(dtype)


_GENERAL = calls(call(tensor(3, 3, dtype="float64"), gradient=False), call(tensor(2, 2, 2), gradient=False))


@primitive(
    result_names=("eigenvalues", "eigenvectors"),
    names=("linalg.eig", "Tensor.eig"),
    meta=_eig_meta,
    reference=_eig,
    samples=_GENERAL,
    errors=NOT_SQUARE,
)
def eig(input: Tensor) -> tuple[Tensor, Tensor]:
    """(complex eigenvalues in no particular order, eigenvectors of norm 1 as columns) of a square matrix."""
    ...


@eig.vjp
def _(ct, out, input_spec):
    values, vectors = out
    inner = None
    if ct[1] is not None:
        gram = ops.matmul(adjoint(vectors), ct[1])
        norm = ops.matmul(adjoint(vectors), vectors)
        along = ops.mul(norm, ops.unsqueeze(ops.real(ops.diagonal(gram, 0, -2, -1)), -2))
        gap = ops.sub(ops.unsqueeze(values, -2), ops.unsqueeze(values, -1))
        one = ops.eye(values.shape[-1], dtype=element_type(values), device=values.device)
        inner = ops.div(ops.sub(gram, along), ops.conj_physical(ops.add(gap, one)))
        inner = ops.mul(inner, ops.sub(1.0, one))
    if ct[0] is not None:
        diagonal = ops.diag_embed(ct[0])
        inner = diagonal if inner is None else ops.add(inner, diagonal)
    whole = ops.solve(adjoint(vectors), ops.matmul(inner, adjoint(vectors)))
    return (ops.real(whole) if input_spec.dtype.kind != "complex" else whole,)


@composite(
    names=("linalg.eigvals",),
    samples=calls(call(tensor(3, 3, dtype="float64")), call(tensor(2, 2, 2))),
    errors=[error(RuntimeError, "square", tensor(2, 3))],
)
def eigvals(A: Tensor) -> Tensor:
    """Complex eigenvalues of a square matrix, in no particular order."""
    return ops.eig(A)[0]
