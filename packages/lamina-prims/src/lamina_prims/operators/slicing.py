"""The view primitive slice."""

from __future__ import annotations

from typing import Any

from lamina_fx import TensorSpec

from ..dims import canonical_dim, surely_same
from ..registry import ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Size, Tensor

__all__: list[str] = ["slice_", "slice_bounds"]


# -- slice -----------------------------------------------------------------------------------------------


def _clamped(value: Any, default: Any, size: Any) -> Any:
    if value is None:
        return default
    if type(value) is int and value == 0:
        return 0
    if type(value) is int and type(size) is not int and value > 2**62:
        return size
    if value < 0:
        value = value + size
        return value if value >= 0 else 0
    return value if value is size or value <= size else size


def slice_bounds(input: Any, dim: int, start: Any, end: Any, step: Any) -> tuple[int, Any, Any]:
    """(dim, start, end) with 0 <= start <= end <= size."""
    if not input.shape:
        raise IndexError("slice: a tensor without dimensions cannot be sliced")
    if step <= 0:
        raise ValueError(f"slice: step must be greater than zero, not {step}")
    dim = canonical_dim("slice", dim, len(input.shape))
    size = input.shape[dim]
    start = _clamped(start, 0, size)
    end = _clamped(end, size, size)
    if not (type(start) is int and start == 0) and end is not start and end < start:
        end = start
    return dim, start, end


def _slice_meta(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> TensorSpec:
    dim, start, end = slice_bounds(input, dim, start, end, step)
    shape, strides = list(input.shape), list(input.strides)
    length = end - start
    shape[dim] = length if type(step) is int and step == 1 else (length + step - 1) // step
    strides[dim] = strides[dim] * step
    return TensorSpec(shape, input.dtype, strides, input.device)


def _slice(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    dim, start, end = slice_bounds(input, dim, start, end, step)
    return input[(slice(None),) * dim + (slice(int(start), int(end), int(step)),)]


@primitive(
    id="slice",
    meta=_slice_meta,
    reference=_slice,
    alias=True,
    samples=calls(
        call(tensor(5, 3), 0, 1, 4), call(tensor(5, 3), 1, -2), call(tensor(5, 3), 0, None, None, 2),
        call(tensor(7), 0, 1, 6, 3), call(tensor(5), 0, 4, 2), call(tensor(5, 3, kind="transposed"), -1, 1, 99),
    ),
    errors=[error(IndexError, "out of range", tensor(2, 3), 2), error(ValueError, "step", tensor(3), 0, 0, 2, 0)],
)  # fmt: skip
def slice_(input: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1) -> Tensor:
    """``input[start:end:step]`` along ``dim``; bounds are clamped as in Python, ``step`` is positive."""
    ...


@slice_.vjp
def _(ct, input_spec, dim, start, end, step):
    dim, start, _ = slice_bounds(input_spec, dim, start, end, step)
    ndim, length = len(input_spec.shape), ct.shape[dim]
    if type(length) is int and length == 0:
        return (ops.zeros(input_spec.shape, dtype=ct.dtype, device=ct.device),)
    after = input_spec.shape[dim] - start - ((length - 1) * step + 1)
    low, high, interior = [0] * ndim, [0] * ndim, [0] * ndim
    low[dim], high[dim], interior[dim] = start, after, step - 1
    return (ops.pad(ct, tuple(low), tuple(high), 0, tuple(interior)),)


@slice_.normalize
def _(input, dim=0, start=None, end=None, step=None):
    size, by = input.shape[dim], 1 if step is None else step
    new = slice_bounds(input, dim, start, end, by)
    whole = type(new[1]) is int and new[1] == 0 and type(by) is int and by == 1
    if whole and surely_same((new[2],), (size,)):
        return input
    given: list[Any] = [start, end]
    if step is not None and new[0] == dim and surely_same(new[1:], given):
        return NotImplemented
    return slice_(input, *new, by)


@slice_.scatter
def _(base, value, dim=0, start=None, end=None, step=1):
    return ops.slice_scatter(base, value, dim, start, end, step)
