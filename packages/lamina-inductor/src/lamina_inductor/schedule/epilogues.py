"""Kernels that run on the rows of a matrix product while they are in cache.

A kernel of one phase over the product's rows, which reads of the product only its own row, becomes the product's
epilogue: bias and gelu, a
residual, softmax of attention scores. What else it reads must be there before the product.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Expr

from ..ir.kernel import Load, Store, walk
from ..ir.loops import Size
from ..lower.externs import GemmPlan
from .groups import Group
from .kernels import BuiltKernel
from .trace import numel, same_size

__all__ = ["attach_epilogues", "fits_rows"]


def attach_epilogues(order: list[Any]) -> tuple[list[Any], dict[int, Any]]:
    """Move one consumer of each product right behind it where that is possible.

    Returns the order and, per moved group's number, its product's step.
    """
    position = {item.number: k for k, item in enumerate(order)}
    chosen: dict[int, Any] = {}
    behind: dict[int, Group] = {}
    for step in order:
        if type(step) is Group or type(step.value.attrs) is not GemmPlan:
            continue
        found = [g for g in step.consumers.values() if _may_follow(g, step, position, chosen)]
        if found:
            first = min(found, key=lambda g: position[g.number])
            chosen[first.number] = step
            behind[step.number] = first
            position[first.number] = position[step.number]
    if not chosen:
        return order, chosen
    result = []
    for item in order:
        if item.number not in chosen:
            result.append(item)
            if item.number in behind:
                result.append(behind[item.number])
    return result, chosen


def _may_follow(group: Any, step: Any, position: dict[int, int], chosen: dict[int, Any]) -> bool:
    if type(group) is not Group or group.late or group.number in chosen:
        return False
    if not same_size(numel(group.sizes), numel(step.value.shape)):
        return False
    here = position[step.number]
    return all(p is step or position[p.number] < here for p in group.producers.values())


def fits_rows(built: BuiltKernel, buffer: str, rows: Size, columns: Size) -> bool:
    """Does the kernel's one phase run over ``rows`` and read of ``buffer`` only the row of its iteration?"""
    kernel = built.kernel
    if len(kernel.body) != 1 or not _equal(kernel.body[0].extent, rows):
        return False
    (phase,) = kernel.body
    if phase.kind != "parallel":
        return False
    names = {p.name for p, b in zip(kernel.params, built.buffers, strict=True) if b == buffer}
    limit = columns - 1
    for stmt in walk(kernel.body):
        if type(stmt) is Store and stmt.buffer in names:
            return False
        if type(stmt) is Load and stmt.buffer in names:
            rest = stmt.index - phase.axis * columns
            low, high = rest.range() if isinstance(rest, Expr) else (rest, rest)
            if phase.axis in _symbols(rest) or low != 0 or high is None or type(limit) is not int or high > limit:
                return False
    return bool(names)


def _symbols(expr: Any) -> frozenset[Any]:
    return expr.free_symbols if isinstance(expr, Expr) else frozenset()


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) if a.is_constant else a is b
