"""Products of matrices: dot_general, the one primitive, and what front ends call on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec

from ..arrays import array_dtype, array_namespace, element_type, numpy_dtype, plain_float, spec_of
from ..dims import broadcast_shapes, common_device, surely_same
from ..registry import composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Shape, Tensor
from .pointwise import conjugate

__all__ = ["dot_general", "matmul"]


def _checked(lhs: Any, rhs: Any, contract: Any, batch: Any) -> tuple[list[int], list[int]]:
    """The free dimensions of both; raises when the numbering or the sizes do not fit."""
    (lc, rc), (lb, rb) = contract, batch
    if len(lc) != len(rc) or len(lb) != len(rb):
        raise RuntimeError(f"dot_general: contract {contract} and batch {batch} must pair dimensions of both operands")
    for a, b in zip((*lc, *lb), (*rc, *rb), strict=True):
        x, y = lhs.shape[a], rhs.shape[b]
        if x is not y and x != y:
            raise RuntimeError(
                f"dot_general: dimension {a} of {list(lhs.shape)} and dimension {b} of {list(rhs.shape)} must be equal"
            )
    if element_type(lhs) is not element_type(rhs):
        raise RuntimeError(
            f"dot_general: expected both to have the same dtype, got {element_type(lhs)} and {element_type(rhs)}"
        )
    left = [d for d in range(len(lhs.shape)) if d not in lc and d not in lb]
    return left, [d for d in range(len(rhs.shape)) if d not in rc and d not in rb]


NO_BATCH = ((), ())


def _dot_meta(lhs: Any, rhs: Any, contract: Any, batch: Any = NO_BATCH) -> TensorSpec:
    left, right = _checked(lhs, rhs, contract, batch)
    shape = [lhs.shape[d] for d in (*batch[0], *left)] + [rhs.shape[d] for d in right]
    return TensorSpec(shape, lhs.dtype, None, common_device("dot_general", (lhs, rhs)))


def _product(xp: Any, a: Any, b: Any) -> Any:
    """The product of stacks of matrices; half precision in float32, but where the library accumulates so by itself."""
    half = getattr(xp, "half_matmul", None)
    if half is not None and a.dtype.itemsize == 2 and array_dtype(a.dtype).kind == "float":
        return half(a, b)
    return xp.matmul(plain_float(a), plain_float(b))


def _dot(lhs: Any, rhs: Any, contract: Any, batch: Any = NO_BATCH) -> Any:
    left, right = _checked(lhs, rhs, contract, batch)
    xp = array_namespace(lhs, rhs)
    dtype = lhs.dtype
    a, b = lhs, rhs
    (lc, rc), (lb, rb) = contract, batch
    outer = tuple(lhs.shape[d] for d in lb)
    inner = int(np.prod([lhs.shape[d] for d in lc], dtype=np.int64))
    rows = tuple(lhs.shape[d] for d in left)
    columns = tuple(rhs.shape[d] for d in right)
    a = a.transpose(*lb, *left, *lc).reshape((*outer, int(np.prod(rows, dtype=np.int64)), inner))
    b = b.transpose(*rb, *rc, *right).reshape((*outer, inner, int(np.prod(columns, dtype=np.int64))))
    with np.errstate(all="ignore"):
        product = _product(xp, a, b) if dtype.kind != "b" else xp.matmul(a.astype(np.int64), b.astype(np.int64)) > 0
    return xp.asarray(product, dtype=numpy_dtype(element_type(lhs)), order="C").reshape(outer + rows + columns)


@primitive(
    meta=_dot_meta,
    reference=_dot,
    samples=calls(
        call(tensor(2, 3), tensor(3, 4), ((1,), (0,))),
        call(tensor(5, 2, 3), tensor(5, 4, 3), ((2,), (2,)), ((0,), (0,))),
        call(tensor(2, 3, 4), tensor(4, 3, 2), ((1, 2), (1, 0))), call(tensor(3), tensor(3), ((0,), (0,))),
        call(tensor(2, 3, dtype="int64", low=-3, high=3), tensor(3, 2, dtype="int64", low=-3, high=3), ((1,), (0,))),
        call(tensor(2, 3, dtype="bfloat16"), tensor(3, 4, dtype="bfloat16"), ((1,), (0,)), gradient=False),
    ),
    errors=[
        error(RuntimeError, "must be equal", tensor(2, 3), tensor(4, 5), ((1,), (0,))),
        error(RuntimeError, "same dtype", tensor(2, 3), tensor(3, dtype="float64"), ((1,), (0,))),
    ],
    cost=100,
)  # fmt: skip
def dot_general(lhs: Tensor, rhs: Tensor, contract: Shape, batch: Shape = NO_BATCH) -> Tensor:
    """Multiply and sum over paired dimensions.

    ``contract`` and ``batch`` are pairs (dims of lhs, dims of rhs). The result's dimensions are the batch
    dimensions, the free ones of lhs, the free ones of rhs. float16 and bfloat16 are accumulated in float32.
    """
    ...


@dot_general.vjp
def _(ct, lhs, rhs, contract, batch, needs):
    (lc, rc), (lb, rb) = contract, batch
    left, right = _checked(lhs, rhs, contract, batch)
    nb, nl, nr = len(lb), len(left), len(right)
    bct = tuple(range(nb))
    grads: list[Any] = [None, None]
    if needs[0]:  # batch, left, contracted in the order of rhs
        over = tuple(range(nb + nl, nb + nl + nr))
        value = dot_general(ct, conjugate(rhs), (over, tuple(right)), (bct, tuple(rb)))
        order = sorted(range(len(rc)), key=lambda k: rc[k])
        grads[0] = ops.permute(value, _back((*lb, *left, *(lc[k] for k in order))))
    if needs[1]:  # batch, right, contracted in the order of lhs
        over = tuple(range(nb, nb + nl))
        value = dot_general(ct, conjugate(lhs), (over, tuple(left)), (bct, tuple(lb)))
        order = sorted(range(len(lc)), key=lambda k: lc[k])
        grads[1] = ops.permute(value, _back((*rb, *right, *(rc[k] for k in order))))
    return tuple(grads)


def _back(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that puts dimension ``dims[i]``, now at i, back to its place."""
    return tuple(dims.index(d) for d in range(len(dims)))


@dot_general.normalize
def _(lhs, rhs, contract, batch=None):
    if type(contract) is tuple and type(batch) is tuple and all(type(side) is tuple for side in (*contract, *batch)):
        return NotImplemented
    pairs = [tuple(tuple(side) for side in pair) for pair in (contract, batch or NO_BATCH)]
    return dot_general(lhs, rhs, *pairs)


# -- matmul ----------------------------------------------------------------------------------------------


def _check_matmul(name: str, input: Any, other: Any) -> None:
    for which, x in (("input", input), ("other", other)):
        if not hasattr(x, "dtype"):
            raise TypeError(f"{name}: argument '{which}' must be a tensor, not {type(x).__name__}")
        if not len(x.shape):
            raise RuntimeError(f"{name}: both arguments need to be at least 1D, but '{which}' has no dimensions")
    a, b = input.shape, other.shape
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] is not inner and a[-1] != inner:
        raise RuntimeError(
            f"{name}: shapes {list(a)} and {list(b)} cannot be multiplied: the inner sizes {a[-1]} and {inner} differ"
        )
    if element_type(input) is not element_type(other):
        raise RuntimeError(
            f"{name}: expected both to have the same dtype, but got {element_type(input)} and {element_type(other)}"
        )


def _matmul(input: Any, other: Any) -> Any:
    a, b = spec_of(input), spec_of(other)
    _check_matmul("matmul", a, b)
    dtype = input.dtype
    if dtype.kind == "b":
        return (input.astype(np.int64) @ other.astype(np.int64)) > 0
    xp = array_namespace(input, other)
    with np.errstate(all="ignore"):
        try:
            product = _product(xp, input, other)
        except ValueError:
            broadcast_shapes("matmul", [a.shape[:-2], b.shape[:-2]])
            raise
    return (
        xp.asarray(product, dtype=dtype, order="C")
        if product.dtype != dtype or not product.flags.c_contiguous
        else product
    )


def _matmul_meta(input: Any, other: Any) -> TensorSpec:
    _check_matmul("matmul", input, other)
    a, b = input.shape, other.shape
    if len(b) == 1:
        shape = a[:-1]
    elif len(a) == 1:
        shape = (*b[:-2], b[-1])
    elif len(a) == 2 and len(b) == 2:
        shape = (a[0], b[1])
    else:
        shape = (*broadcast_shapes("matmul", [a[:-2] or (1,), b[:-2] or (1,)]), a[-2], b[-1])
    return TensorSpec(shape, input.dtype, None, common_device("matmul", (input, other)))


@composite(
    names=("matmul", "Tensor.matmul", "Tensor.__matmul__"),
    meta=_matmul_meta,
    reference=_matmul,
    samples=calls(
        call(tensor(2, 3), tensor(3, 4)), call(tensor(3), tensor(3)), call(tensor(2, 3), tensor(3)),
        call(tensor(3), tensor(3, 2)),
        call(tensor(5, 2, 3), tensor(3, 4)), call(tensor(5, 2, 3), tensor(5, 3, 4)),
        call(tensor(5, 1, 2, 3), tensor(4, 3, 2)),
        call(tensor(3), tensor(5, 3, 4)), call(tensor(5, 2, 3), tensor(3)), call(tensor(0, 3), tensor(3, 4)),
        call(tensor(2, 3), tensor(5, 3, 4)), call(tensor(2, 3, kind="transposed"), tensor(3, 2)),
    ),
    errors=[
        error(RuntimeError, "cannot be multiplied", tensor(2, 3), tensor(2, 3)),
        error(RuntimeError, "do not broadcast", tensor(2, 2, 3), tensor(4, 3, 3)),
        error(RuntimeError, "at least 1D", tensor(), tensor(3)),
        error(RuntimeError, "same dtype", tensor(2, 3), tensor(3, dtype="float64")),
    ],
    cost=100,
)  # fmt: skip
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product over the last two dimensions; the others broadcast; 1-d operands are vectors."""
    _check_matmul("matmul", input, other)
    na, nb = len(input.shape), len(other.shape)
    inner = 0 if nb == 1 else nb - 2
    if nb <= 2:
        return dot_general(input, other, ((na - 1,), (inner,)), NO_BATCH)
    if na == 1:
        value = dot_general(other, input, ((inner,), (0,)), NO_BATCH)
        return value
    shape = broadcast_shapes("matmul", [input.shape[:-2], other.shape[:-2]])
    input, other = _wide(input, shape), _wide(other, shape)
    outer = tuple(range(len(shape)))
    return dot_general(input, other, ((len(shape) + 1,), (len(shape),)), (outer, outer))


def _wide(x: Any, outer: Any) -> Any:
    shape = (*outer, *x.shape[-2:])
    return (
        x
        if surely_same(shape, x.shape)
        else ops.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(x.shape), len(shape))))
    )


@matmul.vjp
def _(ct, input, other, needs):
    na, nb = len(input.shape), len(other.shape)
    left, right = conjugate(input), conjugate(other)
    a = b = None
    if na == 1 and nb == 1:
        return ops.mul(ct, right) if needs[0] else None, ops.mul(ct, left) if needs[1] else None
    if nb == 1:  # (..., n, k) @ (k): ct is (..., n)
        a = ops.mul(ops.unsqueeze(ct, -1), right) if needs[0] else None
        free = tuple(range(na - 1))
        b = dot_general(left, ct, (free, free), NO_BATCH) if needs[1] else None
        return a, b
    if na == 1:  # (k) @ (..., k, m): ct is (..., m)
        if needs[0]:
            free = (*range(nb - 2), nb - 1)
            a = dot_general(right, ct, (free, tuple(range(nb - 1))), NO_BATCH)
        b = ops.mul(ops.unsqueeze(ct, -2), ops.unsqueeze(left, -1)) if needs[1] else None
        return a, b
    if needs[0]:
        a = matmul(ct, ops.mT(right))
    if needs[1]:
        if nb == 2:  # sum over the batch inside the product
            free = tuple(range(na - 1))
            b = dot_general(left, ct, (free, free), NO_BATCH)
        else:
            b = matmul(ops.mT(left), ct)
    return a, b


@composite(names=("Tensor.__rmatmul__",), samples=calls(call(tensor(3, 4), tensor(2, 3))))
def rmatmul(input: Tensor, other: Tensor) -> Tensor:
    """other @ input."""
    return matmul(other, input)
