"""Products, powers and exponentials of matrices, and products of vectors, in the ``linalg`` namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import canonical_dim
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .linalg_functions import identity

__all__: list[str] = []

_SPD = tensor(3, 3, kind="spd")


@composite(
    names=("linalg.matrix_power", "matrix_power", "Tensor.matrix_power"),
    samples=calls(call(_SPD, 3), call(tensor(2, 2, 2), 0), call(_SPD, -2), call(tensor(3, 3), 5)),
)
def matrix_power(A: Tensor, n: int) -> Tensor:
    """A multiplied by itself, by squaring; negative powers of the inverse."""
    if n < 0:
        A, n = ops.inv(A), -n
    if n == 0:
        return ops.expand(identity(A, A.shape[-1]), tuple(A.shape))
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


@composite(names=("linalg.vander",), samples=calls(call(tensor(3)), call(tensor(2, 3), N=4)))
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 of each element in a new last dimension."""
    count = x.shape[-1] if N is None else N
    ones = ops.expand(ops.unsqueeze(ops.add(ops.mul(x, 0), 1), -1), (*x.shape, 1))
    if count == 1:
        return ones
    spread = ops.expand(ops.unsqueeze(x, -1), (*x.shape, count - 1))
    return ops.cat([ones, ops.cumprod(spread, -1)], -1)


@composite(
    names=("linalg.matrix_exp", "matrix_exp", "Tensor.matrix_exp"),
    samples=calls(call(tensor(3, 3)), call(tensor(2, 2, 2, dtype="float64", low=-3, high=3))),
)
def matrix_exp(A: Tensor) -> Tensor:
    """exp of a matrix: Taylor's series to degree 18 of A / 2**8, squared 8 times (Bader, Blanes, Casas 2019)."""
    squarings, degree = 8, 18
    scaled = ops.mul(A, 2.0**-squarings)
    one = identity(A, A.shape[-1])
    result = ops.expand(one, tuple(A.shape))
    for k in range(degree, 0, -1):
        result = ops.add(ops.mul(ops.matmul(scaled, result), 1.0 / k), one)
    for _ in range(squarings):
        result = ops.matmul(result, result)
    return result


@composite(names=("linalg.diagonal",), alias=True, samples=calls(call(tensor(3, 4)), call(tensor(2, 3, 4), offset=1)))
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Diagonals of matrices, as a view."""
    return ops.diagonal(A, offset, dim1, dim2)


@composite(names=("linalg.matmul",), samples=calls(call(tensor(2, 3), tensor(3, 4))))
def linalg_matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product."""
    return ops.matmul(input, other)
