"""Products of matrices and vectors of fixed rank, and the fused forms ``addmm`` and its kin."""

from __future__ import annotations

from typing import Any

from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Scalar, Tensor
from .products import NO_BATCH, dot_general, matmul

__all__: list[str] = []


def _dimensions(name: str, *pairs: tuple[Any, int]) -> None:
    for x, ndim in pairs:
        if len(x.shape) != ndim:
            raise RuntimeError(f"{name}: expected a tensor of {ndim} dimensions, got the shape {list(x.shape)}")


@composite(
    names=both("mm"),
    samples=calls(call(tensor(2, 3), tensor(3, 4))),
    errors=[error(RuntimeError, "2 dimensions", tensor(3), tensor(3, 2))],
)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    _dimensions("mm", (input, 2), (mat2, 2))
    return matmul(input, mat2)


@composite(
    names=both("bmm"),
    samples=calls(call(tensor(5, 2, 3), tensor(5, 3, 4))),
    errors=[error(RuntimeError, "3 dimensions", tensor(2, 3), tensor(3, 2))],
)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices."""
    _dimensions("bmm", (input, 3), (mat2, 3))
    if input.shape[0] is not mat2.shape[0] and input.shape[0] != mat2.shape[0]:
        raise RuntimeError(f"bmm: the batch sizes of {list(input.shape)} and {list(mat2.shape)} must be equal")
    return matmul(input, mat2)


@composite(names=both("mv"), samples=calls(call(tensor(2, 3), tensor(3))))
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    _dimensions("mv", (input, 2), (vec, 1))
    return matmul(input, vec)


@composite(
    names=both("dot"),
    samples=calls(call(tensor(3), tensor(3))),
    errors=[error(RuntimeError, "1 dimensions", tensor(2, 3), tensor(3))],
)
def dot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
    _dimensions("dot", (input, 1), (other, 1))
    return matmul(input, other)


@composite(
    names=both("inner"),
    samples=calls(call(tensor(2, 3), tensor(4, 3)), call(tensor(3), tensor(3)), call(tensor(2, 3), tensor())),
)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products of the last dimensions of both, summed."""
    if not len(input.shape) or not len(other.shape):
        return ops.mul(input, other)
    return dot_general(input, other, ((len(input.shape) - 1,), (len(other.shape) - 1,)), NO_BATCH)


@composite(names=both("outer", "ger"), samples=calls(call(tensor(2), tensor(3))))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of the elements of two vectors."""
    _dimensions("outer", (input, 1), (vec2, 1))
    return ops.mul(ops.unsqueeze(input, 1), vec2)


def _scaled(x: Any, factor: Any) -> Any:
    return x if type(factor) in (int, float) and factor == 1 else ops.mul(x, factor)


def _fused(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    product = _scaled(product, alpha)
    return product if type(beta) in (int, float) and beta == 0 else ops.add(_scaled(input, beta), product)


@composite(
    names=both("addmm"),
    in_place=True,
    samples=calls(
        call(tensor(4), tensor(2, 3), tensor(3, 4)), call(tensor(2, 4), tensor(2, 3), tensor(3, 4), beta=0.5, alpha=2)
    ),
)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2)."""
    return _fused(input, mm(mat1, mat2), beta, alpha)


@composite(names=both("addmv"), in_place=True, samples=calls(call(tensor(2), tensor(2, 3), tensor(3))))
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    return _fused(input, mv(mat, vec), beta, alpha)


@composite(names=both("addr"), in_place=True, samples=calls(call(tensor(2, 3), tensor(2), tensor(3))))
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""
    return _fused(input, outer(vec1, vec2), beta, alpha)


@composite(names=both("baddbmm"), in_place=True, samples=calls(call(tensor(5, 2, 4), tensor(5, 2, 3), tensor(5, 3, 4))))
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2)."""
    return _fused(input, bmm(batch1, batch2), beta, alpha)


@composite(names=both("addbmm"), in_place=True, samples=calls(call(tensor(2, 4), tensor(5, 2, 3), tensor(5, 3, 4))))
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """beta * input + alpha * the sum of bmm(batch1, batch2) over the batch."""
    return _fused(input, dot_general(batch1, batch2, ((0, 2), (0, 1)), NO_BATCH), beta, alpha)
