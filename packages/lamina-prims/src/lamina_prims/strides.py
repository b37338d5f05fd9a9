"""Strides of results: what a view's strides are, which layout an elementwise result gets.

All of it is integer arithmetic on sizes and strides, which may be symbolic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import Size, TensorSpec, contiguous_strides
from lamina_fx.symbolic import divides, exact_quotient

from .dims import surely_same

__all__ = ["dense_order", "dense_strides", "elementwise_strides", "same_layout", "view_strides"]


def _is(size: Size, value: int) -> bool:
    """Equal without asking a symbolic size (which would guard)."""
    return type(size) is int and size == value


def view_strides(shape: Sequence[Size], strides: Sequence[Size], new_shape: Sequence[Size]) -> tuple[Size, ...] | None:
    """Strides with which the same memory shows ``new_shape``; None when that needs a copy.

    >>> view_strides((2, 3, 4), (12, 4, 1), (6, 4))
    (4, 1)
    >>> view_strides((3, 2), (1, 3), (6,)) is None
    True
    """
    if any(_is(s, 0) for s in shape):
        return contiguous_strides(new_shape)
    head, tail = _shared_ends(shape, new_shape)
    stop, new_stop = len(shape) - tail, len(new_shape) - tail
    outer = strides[stop] * shape[stop] if tail else 1
    middle = _split_middle(shape[head:stop], strides[head:stop], new_shape[head:new_stop], outer)
    return None if middle is None else (*strides[:head], *middle, *strides[stop:])


def _shared_ends(shape: Sequence[Size], new_shape: Sequence[Size]) -> tuple[int, int]:
    """How many dimensions at the front, and at the back, stay as they are: symbolic sizes there need no arithmetic."""
    most = min(len(shape), len(new_shape))
    head = 0
    while head < most and surely_same((shape[head],), (new_shape[head],)):
        head += 1
    tail = 0
    while tail < most - head and surely_same((shape[-1 - tail],), (new_shape[-1 - tail],)):
        tail += 1
    return head, tail


def _split_middle(
    shape: Sequence[Size], strides: Sequence[Size], new_shape: Sequence[Size], step: Size
) -> list[Size] | None:
    """Strides of the dimensions that change; ``step`` is the stride for dimensions of size 1 at the end."""
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if not _is(size, 1)]
    result: list[Size] = [1] * len(new_shape)
    j = len(new_shape) - 1
    for size, stride in _chunks(old):
        left: Size = size
        step = stride
        while j >= 0 and not _is(left, 1):
            want = new_shape[j]
            result[j] = step
            if surely_same((want,), (left,)):
                left = 1
                step = step * want
            elif _is(want, 1):
                pass
            elif left % want == 0:
                left = left // want
                step = step * want
            else:
                return None
            j -= 1
        if not _is(left, 1) and left != 1:
            return None
    while j >= 0:
        result[j] = step
        j -= 1
    return result


def _chunks(dims: list[tuple[Size, Size]]) -> list[tuple[Size, Size]]:
    """Merge dimensions that lie densely in one another; innermost first."""
    merged: list[tuple[Size, Size]] = []
    for size, stride in reversed(dims):
        if merged:
            inner_size, inner_stride = merged[-1]
            dense = inner_size * inner_stride
            if surely_same((stride,), (dense,)) or stride == dense:
                merged[-1] = (inner_size * size, inner_stride)
                continue
        merged.append((size, stride))
    return merged


def dense_strides(spec: TensorSpec) -> tuple[Size, ...] | None:
    """Strides that keep ``spec``'s order of dimensions and are dense; None when that is row-major."""
    if surely_same(spec.strides, contiguous_strides(spec.shape)):
        return None
    return elementwise_strides(spec.shape, (spec,))


def elementwise_strides(shape: tuple[Size, ...], tensors: Sequence[TensorSpec]) -> tuple[Size, ...] | None:
    """Layout of an elementwise result; None when it is row-major.

    Dimensions are ordered by the operands' strides; where operands disagree the row-major order wins. This is
    the order in which NumPy allocates, so that the reference and the rule give the same strides.
    """
    ndim = len(shape)
    if ndim < 2 or all(surely_same(t.strides, contiguous_strides(t.shape)) for t in tensors):
        return None
    table = [(0,) * (ndim - t.ndim) + _effective(t) for t in tensors if t.ndim]
    order = [ndim - 1]
    for axis in range(ndim - 2, -1, -1):
        place = len(order)
        for k in range(len(order) - 1, -1, -1):
            verdict = _swap(table, axis, order[k])
            if verdict is None:
                continue
            if not verdict:
                break
            place = k
        order.insert(place, axis)
    if all(order[k] == ndim - 1 - k for k in range(ndim)):
        return None
    strides: list[Size] = [0] * ndim
    step: Size = 1
    for axis in order:
        strides[axis] = step
        step = step * (1 if _is(shape[axis], 0) else shape[axis])
    return tuple(strides)


def _effective(spec: TensorSpec) -> tuple[Size, ...]:
    return tuple(0 if _is(size, 1) else stride for size, stride in zip(spec.shape, spec.strides, strict=True))


def _swap(table: Sequence[tuple[Size, ...]], outer: int, inner: int) -> bool | None:
    """Should ``outer`` go inside ``inner``; None when no operand says."""
    verdict: bool | None = None
    for strides in table:
        a, b = strides[outer], strides[inner]
        if _is(a, 0) or _is(b, 0):
            continue
        if b is a or _at_most(b, a):
            verdict = False
        elif verdict is None:
            verdict = True
    return verdict


def _at_most(inner: Size, outer: Size) -> bool:
    """Is the stride ``inner`` at most ``outer``. A multiple is larger: where the factor is 0 or 1, no matter."""
    if type(inner) is int and type(outer) is int:
        return inner <= outer
    if _is_multiple(outer, inner):
        return True
    return not _is_multiple(inner, outer) and inner <= outer


def _is_multiple(a: Any, b: Any) -> bool:
    if type(a) is int:
        return False
    if type(b) is int:
        return divides(a.expr, b)
    return exact_quotient(a.expr, b.expr) is not None


def same_layout(first: TensorSpec, second: TensorSpec) -> bool:
    """Have two specs of one shape the same strides where they matter, as far as is known without asking."""
    if any(_is(n, 0) for n in first.shape):
        return True
    pairs = zip(first.shape, first.strides, second.strides, strict=True)
    return all(_is(n, 1) or surely_same((a,), (b,)) for n, a, b in pairs)


def dense_order(spec: TensorSpec) -> tuple[int, ...] | None:
    """Dimensions from the outermost to the innermost in memory; None when there are gaps or overlaps, or it is unclear.

    >>> from lamina_fx import float32
    >>> dense_order(TensorSpec((2, 3, 4), float32, (1, 8, 2)))
    (1, 2, 0)
    """
    if all(type(s) is int for s in (*spec.shape, *spec.strides)):
        order = tuple(sorted(range(spec.ndim), key=lambda d: (-spec.strides[d], -spec.shape[d])))
        left = [d for d in order if spec.shape[d] != 1]
    else:
        order, left = None, [d for d, size in enumerate(spec.shape) if not _is(size, 1)]
    found: list[int] = []
    expected: Size = 1
    while left:
        inner = next((d for d in reversed(left) if surely_same((spec.strides[d],), (expected,))), None)
        if inner is None:
            return None
        left.remove(inner)
        found.insert(0, inner)
        expected = expected * spec.shape[inner]
    return order if order is not None else (*(d for d in range(spec.ndim) if d not in found), *found)
