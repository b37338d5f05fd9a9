"""Calls of pointwise kernels over rows and columns as calls over all elements.

An epilogue that no product takes is a kernel over the product's rows. Where each access walks memory as one axis would
(an optimizer's update of a weight), the columns tell it nothing: its loop is over all elements. Where some walk the
columns alone (a bias), it is so if tiles of rows would not be full.

    parallel i < n:  simd j < 768:  v = b[768*i + j]; ...     parallel simd k < n:  v = b[k]; ...        (n is 768 n)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Expr, as_expr

from ..ir.kernel import BindIndex, Kernel, Loop, Sort, Stmt, walk
from ..ir.program import KernelCall
from ..lower.table import size_of
from .flat import affine, indices_of, substitute
from .groups import axis_symbol
from .share import over_parameter

__all__ = ["flat_call"]

WIDE = 2048
"""Longer rows are walked in steps of so many elements."""


def flat_call(call: KernelCall) -> KernelCall:
    """The call over one axis; the same object where that is not possible."""
    body = _over_one_axis(call.kernel)
    if body is None:
        return call
    kernel, values = over_parameter(replace(call.kernel, body=(body,)))
    given: dict[Expr, Expr] = dict(zip(call.kernel.sizes, map(as_expr, call.sizes), strict=True))
    sizes = [size_of(as_expr(v).substitute(given)) for v in values]
    return KernelCall(replace(kernel, note="pointwise"), call.buffers, tuple(sizes))


def _over_one_axis(kernel: Kernel) -> Loop | None:
    phase = kernel.body[0]
    if len(kernel.body) != 1 or phase.kind != "parallel" or not phase.body:
        return None
    *before, loop = phase.body
    if type(loop) is not Loop or loop.kind != "simd" or loop.accumulators or loop.step != 1:
        return None
    statements = [*before, *loop.body]
    if any(type(s) in (Loop, BindIndex, Sort) for s in walk(tuple(statements))):
        return None
    columns, extent = size_of(loop.extent), phase.extent * loop.extent
    axis = axis_symbol(0, extent)
    together: dict[Expr, Any] = {phase.axis: 0, loop.axis: axis}
    apart: dict[Expr, Any] = {}
    if type(columns) is int and not _fill_tiles(columns):
        apart = {phase.axis: axis // columns, loop.axis: axis % columns}
    found: list[Stmt] = []
    for stmt in statements:
        ways = {_way(index, phase, loop) for index in indices_of(stmt)}
        if not ways <= ({"one", "apart"} if apart else {"one"}):
            return None
        found.append(substitute(stmt, apart if "apart" in ways else together))
    return Loop(axis, extent, "parallel simd", tuple(found))


def _fill_tiles(columns: int) -> bool:
    """Are rows of so many elements whole tiles, whose sides are powers of two?"""
    return columns & (columns - 1) == 0 or columns % WIDE == 0


def _way(index: Any, phase: Loop, loop: Loop) -> str:
    """How an index walks: over rows and columns as over ``one`` axis, over one of them (``apart``), or otherwise."""
    steps = affine(index, frozenset((phase.axis, loop.axis)))
    if steps is None:
        return "otherwise"
    down, along = as_expr(steps.get(phase.axis, 0)), as_expr(steps.get(loop.axis, 0))
    if down is as_expr(along * loop.extent):
        return "one"
    return "apart" if 0 in (size_of(down), size_of(along)) else "otherwise"
