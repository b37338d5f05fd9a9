"""Operands of matrix products for a library that takes matrices whose rows or columns lie side by side.

Others (a broadcast row, a slice with gaps both ways) are copied to memory of their own behind the workspace, and a
result with such strides is copied from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx import TensorSpec
from lamina_fx.symbolic import as_expr

from ...ir.program import Buffer, CopyBuffer, Gemm, Operand, Program, Step
from ...lower.table import sizes_of

__all__ = ["with_dense_products"]


def with_dense_products(program: Program) -> Program:
    """``program`` with the copies that its products need."""
    if not any(type(s) is Gemm and _copied(s) for s in program.steps):
        return program
    buffers, workspace = dict(program.buffers), program.workspace
    steps: list[Step] = []
    for step in program.steps:
        if type(step) is not Gemm:
            steps.append(step)
            continue
        before: list[Step] = []
        after: list[Step] = []
        for field in _copied(step):
            operand: Operand = getattr(step, field)
            dense, workspace = _dense(operand, f"dense{len(buffers)}", buffers, workspace)
            if field != "out" or step.accumulate:
                before.append(CopyBuffer(operand, dense))
            if field == "out":
                after.append(CopyBuffer(dense, operand))
            step = replace(step, **{field: dense})
        steps += [*before, step, *after]
    return replace(program, buffers=buffers, workspace=workspace, steps=tuple(steps))


def _copied(step: Gemm) -> list[str]:
    return [field for field in ("left", "right", "out") if not _is_matrix(getattr(step, field))]


def _is_matrix(operand: Operand) -> bool:
    (rows, columns), (row, column) = operand.shape[-2:], operand.strides[-2:]
    return _lies(columns, column, rows, row) or _lies(rows, row, columns, column)


def _lies(inner: Any, step: Any, outer: Any, jump: Any) -> bool:
    """Do ``inner`` elements lie side by side, each ``outer`` row behind the one before?"""
    if not (_is(inner, 1) or _is(step, 1)):
        return False
    if _is(outer, 1):
        return True
    if type(jump) is int and type(inner) is int:
        return jump >= inner
    if _goes_back(jump):
        return False
    return not _is(jump, 0) and not (_is(jump, 1) and not _is(inner, 1))


def _goes_back(step: Any) -> bool:
    """May the rows lie in the other order (a flip)?"""
    lower = as_expr(step).range()[0]
    return lower is None or lower < 0


def _is(size: Any, value: int) -> bool:
    return type(size) is int and size == value


def _dense(operand: Operand, name: str, buffers: dict[str, Buffer], workspace: Any) -> tuple[Operand, Any]:
    strides = sizes_of(TensorSpec(operand.shape, operand.dtype).strides)
    offset = (workspace + 255) // 256 * 256
    buffers[name] = Buffer(name, operand.dtype, operand.shape, strides, "workspace", 0, offset)
    elements: Any = 1
    for size in operand.shape:
        elements = elements * size
    return Operand(name, operand.dtype, 0, operand.shape, strides), offset + elements * operand.dtype.itemsize
