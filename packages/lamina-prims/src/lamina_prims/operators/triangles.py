"""Triangles and diagonals of matrices."""

from __future__ import annotations

from typing import Any

from lamina_fx import DType, bool_, int64

from ..arrays import element_type
from ..dims import canonical_dim
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor

__all__: list[str] = []


# -- triangles and diagonals -----------------------------------------------------------------------------


def _offsets(input: Any) -> tuple[Any, Any]:
    """Row and column numbers of the last two dimensions, ready to broadcast."""
    if len(input.shape) < 2:
        raise RuntimeError(f"at least 2 dimensions are wanted, the shape is {list(input.shape)}")
    rows, columns = input.shape[-2:]
    return ops.reshape(ops.iota(rows, device=input.device), (rows, 1)), ops.iota(columns, device=input.device)


@composite(
    names=both("tril"),
    in_place=True,
    samples=calls(
        call(tensor(3, 4)), call(tensor(2, 3, 4), 1), call(tensor(3, 3), diagonal=-1), call(tensor(3, 3, dtype="bool"))
    ),
    errors=[error(RuntimeError, "2 dimensions", tensor(3))],
)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and below this diagonal of the last two dimensions, zeros above."""
    rows, columns = _offsets(input)
    return ops.where(ops.le(columns, ops.add(rows, diagonal)), input, _zero(input))


@composite(
    names=both("triu"),
    in_place=True,
    samples=calls(call(tensor(3, 4)), call(tensor(2, 3, 4), 1), call(tensor(3, 3), diagonal=-1)),
)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and above this diagonal of the last two dimensions, zeros below."""
    rows, columns = _offsets(input)
    return ops.where(ops.ge(columns, ops.add(rows, diagonal)), input, _zero(input))


def _zero(input: Any) -> Any:
    return False if element_type(input) is bool_ else 0


def _triangle(name: str, keep_low: bool) -> None:
    def indices(row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None) -> Tensor:
        pairs = [(i, j) for i in range(row) for j in range(col) if (j <= i + offset if keep_low else j >= i + offset)]
        return _listed(pairs, dtype or int64, device)

    indices.__name__ = name
    indices.__doc__ = f"Row and column numbers of the {'lower' if keep_low else 'upper'} triangle, as two rows."
    composite(names=(name,), samples=calls(call(3, 4), call(3, 3, 1)))(indices)


def _listed(pairs: list[tuple[int, int]], dtype: DType, device: Any) -> Any:
    """Pairs of numbers as a tensor of two rows, made of ramps: consecutive columns of one row are one ramp."""
    rows: list[Any] = []
    columns: list[Any] = []
    k = 0
    while k < len(pairs):
        end = k
        while end < len(pairs) and pairs[end][0] == pairs[k][0]:
            end += 1
        rows.append(ops.full((end - k,), pairs[k][0], dtype=dtype, device=device))
        columns.append(ops.iota(end - k, start=pairs[k][1], dtype=dtype, device=device))
        k = end
    if not rows:
        return ops.full((2, 0), 0, dtype=dtype, device=device)
    return ops.stack([ops.cat(rows), ops.cat(columns)])


_triangle("tril_indices", True)
_triangle("triu_indices", False)


@composite(
    names=both("diag"),
    samples=calls(call(tensor(3)), call(tensor(3), 1), call(tensor(3, 4)), call(tensor(3, 4), -1)),
    errors=[error(RuntimeError, "1D or 2D", tensor(2, 2, 2))],
)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as the diagonal of a matrix of zeros; of a matrix, a copy of its diagonal."""
    if len(input.shape) == 1:
        return diag_embed(input, diagonal)
    if len(input.shape) != 2:
        raise RuntimeError(f"diag: a 1D or 2D tensor is wanted, the shape is {list(input.shape)}")
    return ops.clone(ops.diagonal(input, diagonal), memory_format="contiguous_format")


@composite(names=both("diagflat"), samples=calls(call(tensor(2, 2))))
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The flat tensor as the diagonal of a matrix of zeros."""
    return diag_embed(ops.reshape(input, (-1,)), offset)


@composite(
    names=both("diag_embed"), samples=calls(call(tensor(2, 3)), call(tensor(3), 1), call(tensor(2, 3), -1, 0, 2))
)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension as the diagonal of two dimensions, zeros elsewhere."""
    ndim = len(input.shape) + 1
    a, b = canonical_dim("diag_embed", dim1, ndim), canonical_dim("diag_embed", dim2, ndim)
    size = input.shape[-1] + abs(offset)
    down, right = max(-offset, 0), max(offset, 0)
    rows, columns = ops.iota(size, device=input.device), ops.iota(size, device=input.device)
    on = ops.eq(ops.add(ops.reshape(rows, (size, 1)), offset), columns)
    lead = (0,) * (ndim - 2)
    column_values = ops.pad(input, (*lead, right), (*lead, down))  # one value a column
    value = ops.where(on, ops.unsqueeze(column_values, -2), _zero(input))
    order = [d for d in range(ndim) if d not in (a, b)]
    source = [*order, a, b]
    return ops.permute(value, tuple(source.index(d) for d in range(ndim)))


@composite(names=both("trace"), samples=calls(call(tensor(3, 4))), errors=[error(RuntimeError, "matrix", tensor(3))])
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if len(input.shape) != 2:
        raise RuntimeError(f"trace: a matrix is wanted, the shape is {list(input.shape)}")
    return ops.sum(ops.diagonal(input))
