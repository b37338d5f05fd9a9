"""The front end's linear algebra on top of the factorisations: solvers, inverses, ranks, powers, products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import element_type
from ..dims import canonical_dim
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Scalar, Tensor
from .linalg import adjoint

__all__ = ["identity"]

_SPD = tensor(3, 3, kind="spd")


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Is ``B`` a (batch of) vectors, as torch.linalg.solve takes it."""
    return len(B.shape) == 1 or (len(A.shape) - 1 == len(B.shape) and tuple(B.shape) == tuple(A.shape[:-1]))


@composite(
    names=("linalg.solve",),
    samples=calls(
        call(_SPD, tensor(3, 2)),
        call(_SPD, tensor(3)),
        call(tensor(2, 3, 3, kind="spd"), tensor(2, 3)),
        call(_SPD, tensor(2, 3), left=False),
    ),
    errors=[error(RuntimeError, "incompatible", _SPD, tensor(2, 2))],
)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B, or X A = B with ``left=False``."""
    if _is_vector(A, B):
        return ops.squeeze(ops.solve(A, ops.unsqueeze(B, -1)), -1)
    if left:
        return ops.solve(A, B)
    return ops.mT(ops.solve(ops.mT(A), ops.mT(B)))


@composite(
    names=("linalg.solve_triangular",),
    samples=calls(
        call(_SPD, tensor(3, 2), upper=True),
        call(_SPD, tensor(2, 3), upper=False, left=False),
        call(tensor(3, 3, low=-0.5, high=0.5), tensor(3, 2), upper=True, unitriangular=True),
    ),
)
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A X = B (or X A = B) for a triangular A."""
    if left:
        return ops.triangular_solve(A, B, upper, unitriangular)
    return ops.mT(ops.triangular_solve(ops.mT(A), ops.mT(B), not upper, unitriangular))


@composite(
    names=("cholesky_solve", "Tensor.cholesky_solve"),
    samples=calls(call(tensor(3, 2), _SPD), call(tensor(3, 2), _SPD, True)),
)
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = B, given the Cholesky factor of A."""
    lower = adjoint(L) if upper else L
    half = ops.triangular_solve(lower, B, False, False)
    return ops.triangular_solve(adjoint(lower), half, True, False)


@composite(names=("cholesky_inverse", "Tensor.cholesky_inverse"), samples=calls(call(_SPD), call(_SPD, True)))
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, given its Cholesky factor."""
    return ops.cholesky_solve(identity(L, L.shape[-1]), L, upper)


def identity(like: Tensor, n: Any) -> Tensor:
    """The n x n identity matrix in the dtype and on the device of ``like``."""
    return ops.eye(n, dtype=element_type(like), device=like.device)


@composite(names=("linalg.cholesky_ex",), result_names=("L", "info"), samples=calls(call(_SPD, symmetric=True)))
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """(Cholesky factor, int32 zeros): a matrix that is not positive definite raises."""
    return ops.cholesky(input, upper=upper), _no_error(input)


@composite(names=("linalg.inv_ex",), result_names=("inverse", "info"), samples=calls(call(_SPD)))
def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """(inverse, int32 zeros): a singular matrix raises."""
    return ops.inv(A), _no_error(A)


def _no_error(input: Tensor) -> Tensor:
    from lamina_fx import int32

    return ops.zeros(tuple(input.shape[:-2]), dtype=int32, device=input.device)


@composite(names=("logdet", "Tensor.logdet"), samples=calls(call(_SPD)))
def logdet(input: Tensor) -> Tensor:
    """log of the determinant; NaN when it is negative."""
    sign, logarithm = ops.slogdet(input)
    return ops.where(ops.lt(sign, 0), float("nan"), logarithm)


@composite(names=("linalg.svdvals",), samples=calls(call(tensor(3, 4)), call(tensor(2, 4, 3))))
def svdvals(A: Tensor) -> Tensor:
    """Singular values, descending."""
    return ops.svd(A, False)[1]


@composite(
    names=("svd", "Tensor.svd"),
    result_names=("U", "S", "V"),
    id="svd.old",
    samples=calls(call(tensor(3, 4), gradient=False)),
)
def svd_old(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with input = U diag(S) V^H: torch.svd, which returns V where linalg.svd returns V^H."""
    u, s, vh = ops.svd(input, not some)
    if not compute_uv:
        return ops.mul(u, 0), s, ops.mul(adjoint(vh), 0)
    return u, s, adjoint(vh)


@composite(names=("linalg.eigvalsh",), samples=calls(call(_SPD, symmetric=True)))
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of a Hermitian matrix, ascending."""
    return ops.eigh(A, UPLO)[0]


def _small(value: Tensor, rows: Any, columns: Any) -> float:
    precision = 2.0**-23 if element_type(value).itemsize in (4,) else 2.0**-52
    return max(rows, columns) * precision


def _limit(values: Tensor, A: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Below it a singular value counts as 0."""
    rtol = (0.0 if atol is not None else _small(values, *A.shape[-2:])) if rtol is None else rtol
    return ops.maximum(ops.mul(ops.amax(values, -1, True), rtol), 0.0 if atol is None else atol)


@composite(
    names=("linalg.matrix_rank",),
    samples=calls(call(tensor(3, 4)), call(_SPD, hermitian=True), call(tensor(2, 3, 3), atol=0.1)),
)
def matrix_rank(
    A: Tensor, *, atol: Scalar | None = None, rtol: Scalar | None = None, hermitian: bool = False
) -> Tensor:
    """How many singular values (or eigenvalues in absolute value) are above the tolerance."""
    values = ops.abs(ops.eigvalsh(A)) if hermitian else ops.svdvals(A)
    return ops.sum(ops.gt(values, _limit(values, A, atol, rtol)), -1)


@composite(
    names=("linalg.pinv", "pinverse", "Tensor.pinverse"),
    samples=calls(call(tensor(4, 3)), call(tensor(2, 3, 4)), call(_SPD, hermitian=True, symmetric=True)),
)
def pinv(A: Tensor, *, atol: Scalar | None = None, rtol: Scalar | None = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of Moore and Penrose."""
    if hermitian:
        values, vectors = ops.eigh(A)
        size = ops.abs(values)
        keep = ops.gt(size, _limit(size, A, atol, rtol))
        inverse = ops.where(keep, ops.reciprocal(ops.where(keep, values, 1.0)), 0.0)
        return ops.matmul(ops.mul(vectors, ops.unsqueeze(inverse, -2)), adjoint(vectors))
    u, s, vh = ops.svd(A, False)
    keep = ops.gt(s, _limit(s, A, atol, rtol))
    inverse = ops.where(keep, ops.reciprocal(ops.where(keep, s, 1.0)), 0.0)
    return ops.matmul(ops.mul(adjoint(vh), ops.unsqueeze(inverse, -2)), adjoint(u))


@composite(
    names=("linalg.lstsq",),
    result_names=("solution", "residuals", "rank", "singular_values"),
    samples=calls(
        call(tensor(5, 3), tensor(5, 2)), call(tensor(5, 3), tensor(5)), call(tensor(2, 3, 4), tensor(2, 3, 1))
    ),
    errors=[error(RuntimeError, "rows", tensor(5, 3), tensor(4, 2))],
)
def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(solution of least squares and least norm, residuals, rank, singular values), by the pseudo-inverse."""
    vector = _is_rows(input, b)
    right = ops.unsqueeze(b, -1) if vector else b
    if right.shape[-2] != input.shape[-2]:
        raise RuntimeError(
            f"linalg.lstsq: input and b must have as many rows, got {list(input.shape)} and {list(b.shape)}"
        )
    solution = ops.matmul(ops.pinv(input, rtol=rcond), right)
    gap = ops.sub(ops.matmul(input, solution), right)
    residuals = ops.sum(ops.mul(gap, gap), -2)
    values = ops.svdvals(input)
    rank = ops.sum(ops.gt(values, _limit(values, input, None, rcond)), -1)
    if vector:
        solution, residuals = ops.squeeze(solution, -1), ops.squeeze(residuals, -1)
    return solution, residuals, rank, values


def _is_rows(A: Tensor, B: Tensor) -> bool:
    return len(B.shape) == 1 or (len(A.shape) - 1 == len(B.shape) and tuple(B.shape) == tuple(A.shape[:-1]))


@composite(names=("linalg.cond",), samples=calls(call(_SPD), call(_SPD, 1), call(_SPD, "fro")))
def cond(A: Tensor, p: Scalar | str | None = None) -> Tensor:
    """The condition number: norm(A) norm(A^-1); by singular values for p = None or +-2."""
    if p in (None, 2, -2):
        values = ops.svdvals(A)
        first, last = ops.select(values, -1, 0), ops.select(values, -1, -1)
        return ops.div(last, first) if p == -2 else ops.div(first, last)
    return ops.mul(ops.matrix_norm(A, p), ops.matrix_norm(ops.inv(A), p))


@composite(names=("linalg.tensorinv",), samples=calls(call(tensor(4, 2, 2), 1)))
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A seen as a matrix of its first ``ind`` dimensions by the others."""
    rows = 1
    for size in A.shape[:ind]:
        rows = rows * size
    matrix = ops.reshape(A, (rows, -1))
    return ops.reshape(ops.inv(matrix), (*A.shape[ind:], *A.shape[:ind]))


@composite(names=("linalg.solve_ex",), result_names=("result", "info"), samples=calls(call(_SPD, tensor(3, 2))))
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """(solution, int32 zeros): a singular matrix raises."""
    return ops.linalg_solve(A, B, left=left), _no_error(A)


@composite(names=("linalg.tensorsolve",), samples=calls(call(tensor(4, 2, 2), tensor(4))))
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        rank = len(A.shape)
        moved = [canonical_dim("linalg.tensorsolve", d, rank) for d in dims]
        A = ops.permute(A, tuple([d for d in range(rank) if d not in moved] + moved))
    shape = tuple(A.shape[len(B.shape) :])
    flat = ops.reshape(B, (-1,))
    return ops.reshape(ops.linalg_solve(ops.reshape(A, (flat.shape[0], -1)), flat), shape)
