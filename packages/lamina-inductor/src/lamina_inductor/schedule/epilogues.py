"""Kernels that run on the rows of a matrix product while they are in cache.

A kernel of one phase over the product's rows, which reads of the product only its own row, becomes the product's
epilogue: bias and gelu, a
residual, softmax of attention scores. What else it reads must be there before the product.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Expr, Symbol, as_expr

from ..ir.kernel import Load, Store, walk
from ..ir.loops import Size
from ..lower.externs import ConvolutionPlan, GemmPlan
from .groups import Group
from .kernels import BuiltKernel
from .trace import numel, same_size

__all__ = ["attach_epilogues", "fits_rows", "row_shape"]


def attach_epilogues(order: list[Any], overwriters: dict[int, list[Group]]) -> tuple[list[Any], dict[int, Any]]:
    """Move each product right before the first kernel that reads it, where that kernel may be its epilogue.

    ``overwriters``: per step's number, kernels that overwrite an input it reads; it does not move behind them.
    Returns the order and, per such kernel's number, its product's step. (Nothing between the two reads the product.)
    """
    position = {item.number: k for k, item in enumerate(order)}
    chosen: dict[int, Any] = {}
    moved: set[int] = set()
    for step in reversed(order):
        if type(step) is Group or row_shape(step.value) is None or not step.consumers:
            continue
        first = min(step.consumers.values(), key=lambda c: position[c.number])
        place = position[first.number]
        stays = any(position[g.number] < place for g in overwriters.get(step.number, ()))
        if not stays and type(first) is Group and first.number not in chosen and _may_follow(first, step):
            chosen[first.number] = step
            moved.add(step.number)
    result = []
    for item in order:
        if item.number in chosen:
            result.append(chosen[item.number])
        if item.number not in moved:
            result.append(item)
    return result, chosen


def row_shape(value: Any) -> tuple[Size, Size] | None:
    """(rows, columns) of what a step computes, for steps that run an epilogue on finished rows: the rows of a
    product, the channels
    of the images of a convolution."""
    if type(value.attrs) is GemmPlan:
        left, right = value.inputs
        return numel(left.shape[:-1]), right.shape[-1]
    if type(value.attrs) is ConvolutionPlan:
        return value.shape[0] * value.shape[1], numel(value.shape[2:])
    return None


def _may_follow(group: Group, step: Any) -> bool:
    if group.late or group.scan is not None or (group.inner and group.axes[-1] not in group.inner):
        return False
    return same_size(numel(group.sizes), numel(step.value.shape))


def fits_rows(built: BuiltKernel, buffer: str, rows: Size, columns: Size) -> bool:
    """Does the kernel's one phase run over ``rows`` and read of ``buffer`` only the row of its iteration?"""
    kernel = built.kernel
    if len(kernel.body) != 1 or not _equal(kernel.body[0].extent, rows):
        return False
    (phase,) = kernel.body
    if phase.kind != "parallel":
        return False
    names = {p.name for p, b in zip(kernel.params, built.buffers, strict=True) if b == buffer}
    for stmt in walk(kernel.body):
        if (type(stmt) is Load or type(stmt) is Store) and stmt.buffer in names:
            rest = stmt.index - phase.axis * columns
            if phase.axis in _symbols(rest) or not _is_column(rest, columns):
                return False
    return bool(names)


def _is_column(index: Any, columns: Size) -> bool:
    """Does the index run from 0 to below ``columns``?"""
    if type(columns) is int:
        low, high = index.range() if isinstance(index, Expr) else (index, index)
        return low == 0 and high is not None and high < columns
    return isinstance(index, Symbol) and index.lower == 0 and index.upper is as_expr(columns - 1)


def _symbols(expr: Any) -> frozenset[Any]:
    return expr.free_symbols if isinstance(expr, Expr) else frozenset()


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) if a.is_constant else a is b
