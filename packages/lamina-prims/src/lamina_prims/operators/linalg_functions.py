"""The front end's linear algebra on top of the factorisations: solvers, inverses, ranks, powers, products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import element_type
from ..dims import canonical_dim
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Scalar, Tensor
from .linalg import adjoint

__all__: list[str] = []

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
    return ops.cholesky_solve(_identity(L, L.shape[-1]), L, upper)


def _identity(like: Tensor, n: Any) -> Tensor:
    return ops.eye(n, dtype=element_type(like), device=like.device)


@composite(names=("linalg.cholesky_ex",), samples=calls(call(_SPD, symmetric=True)))
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """(Cholesky factor, int32 zeros): a matrix that is not positive definite raises."""
    return ops.cholesky(input, upper=upper), _no_error(input)


@composite(names=("linalg.inv_ex",), samples=calls(call(_SPD)))
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


@composite(names=("svd", "Tensor.svd"), id="svd.old", samples=calls(call(tensor(3, 4), gradient=False)))
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


@composite(
    names=("linalg.matrix_power", "matrix_power", "Tensor.matrix_power"),
    samples=calls(call(_SPD, 3), call(tensor(2, 2, 2), 0), call(_SPD, -2), call(tensor(3, 3), 5)),
)
def matrix_power(A: Tensor, n: int) -> Tensor:
    """A multiplied by itself, by squaring; negative powers of the inverse."""
    if n < 0:
        A, n = ops.inv(A), -n
    if n == 0:
        return ops.expand(_identity(A, A.shape[-1]), tuple(A.shape))
    result: Any = None
    square = A
    while True:
        if n & 1:
            result = square if result is None else ops.matmul(result, square)
        n >>= 1
        if not n:
            return result
        square = ops.matmul(square, square)


@composite(
    names=("linalg.multi_dot",),
    samples=calls(call([tensor(2, 3), tensor(3, 5), tensor(5, 2)]), call([tensor(3), tensor(3, 4), tensor(4)])),
)
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the cheapest order (dynamic programming over static sizes)."""
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    sizes = [t.shape[0] if len(t.shape) == 2 else 1 for t in tensors[:1]]
    sizes += [t.shape[0] for t in tensors[1:]]
    sizes.append(tensors[-1].shape[1] if len(tensors[-1].shape) == 2 else 1)
    best: dict[tuple[int, int], tuple[Any, int]] = {(i, i): (0, i) for i in range(count)}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return tensors[i]
        k = best[i, j][1]
        return ops.matmul(product(i, k), product(k + 1, j))

    return product(0, count - 1)


@composite(
    names=("linalg.cross", *both("cross")),
    samples=calls(call(tensor(2, 3), tensor(2, 3)), call(tensor(3, 4), tensor(3, 4), dim=0)),
    errors=[error(RuntimeError, "length 3", tensor(2, 4), tensor(2, 4))],
)
def cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The cross product of 3-vectors along ``dim``."""
    a, b = ops.broadcast_tensors([input, other])
    place = canonical_dim("linalg.cross", dim, len(a.shape))
    if a.shape[place] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[place]}")

    def part(value: Tensor, k: int) -> Tensor:
        return ops.slice(value, place, k, k + 1)

    pieces = [
        ops.sub(ops.mul(part(a, i), part(b, j)), ops.mul(part(a, j), part(b, i))) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return ops.cat(pieces, place)


@composite(
    names=("linalg.vecdot",), samples=calls(call(tensor(2, 3), tensor(2, 3)), call(tensor(3, 2), tensor(3, 1), dim=0))
)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """sum of conj(x) * y along ``dim``."""
    return ops.sum(ops.mul(ops.conj_physical(x), y), dim)


@composite(
    names=("linalg.matrix_exp", "matrix_exp", "Tensor.matrix_exp"),
    samples=calls(call(tensor(3, 3)), call(tensor(2, 2, 2, dtype="float64", low=-3, high=3))),
)
def matrix_exp(A: Tensor) -> Tensor:
    """exp of a matrix: Taylor's series to degree 18 of A / 2**8, squared 8 times (Bader, Blanes, Casas 2019)."""
    squarings, degree = 8, 18
    scaled = ops.mul(A, 2.0**-squarings)
    one = _identity(A, A.shape[-1])
    result = ops.expand(one, tuple(A.shape))
    for k in range(degree, 0, -1):
        result = ops.add(ops.mul(ops.matmul(scaled, result), 1.0 / k), one)
    for _ in range(squarings):
        result = ops.matmul(result, result)
    return result


@composite(names=("linalg.tensorinv",), samples=calls(call(tensor(4, 2, 2), 1)))
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A seen as a matrix of its first ``ind`` dimensions by the others."""
    rows = 1
    for size in A.shape[:ind]:
        rows = rows * size
    matrix = ops.reshape(A, (rows, -1))
    return ops.reshape(ops.inv(matrix), (*A.shape[ind:], *A.shape[:ind]))


@composite(names=("linalg.vander",), samples=calls(call(tensor(3)), call(tensor(2, 3), N=4)))
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 of each element in a new last dimension."""
    count = x.shape[-1] if N is None else N
    ones = ops.expand(ops.unsqueeze(ops.add(ops.mul(x, 0), 1), -1), (*x.shape, 1))
    if count == 1:
        return ones
    spread = ops.expand(ops.unsqueeze(x, -1), (*x.shape, count - 1))
    return ops.cat([ones, ops.cumprod(spread, -1)], -1)


@composite(names=("linalg.diagonal",), alias=True, samples=calls(call(tensor(3, 4)), call(tensor(2, 3, 4), offset=1)))
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Diagonals of matrices, as a view."""
    return ops.diagonal(A, offset, dim1, dim2)


@composite(names=("linalg.matmul",), samples=calls(call(tensor(2, 3), tensor(3, 4))))
def linalg_matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product."""
    return ops.matmul(input, other)


@composite(names=("linalg.solve_ex",), samples=calls(call(_SPD, tensor(3, 2))))
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
