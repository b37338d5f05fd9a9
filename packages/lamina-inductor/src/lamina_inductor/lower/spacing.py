"""``nextafter`` of half types, whose numbers kernels hold as float32: a step is one of the half type.

Beyond the smallest normal numbers a step is one in the bits that both types have; below, numbers of float16 lie at
equal distances, which are numbers of float32, and those of bfloat16 are subnormal in float32, too. float32 is done so
as well, because the device library's function takes subnormal numbers for 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lamina_fx import DType, bfloat16, bool_, float16, float32, int32

from ..ir.loops import Index, Value
from .pointwise import cast_constant
from .table import Call, lowers

__all__: list[str] = []


@dataclass(frozen=True, slots=True)
class _Grid:
    """Numbers of a type among those of float32.

    Attributes:
        step: between neighbours, in bits of float32.
        tiny: the smallest one above 0.
        normal: the smallest above which ``step`` counts; 0 where it always does.
        largest: the largest finite one; None where a step of ``step`` leads from an infinity to it.
    """

    step: int
    tiny: float
    normal: float = 0.0
    largest: float | None = None


_GRIDS = {
    float16: _Grid(1 << 13, 2.0**-24, 2.0**-14, 65504.0), bfloat16: _Grid(1 << 16, 2.0**-133),
    float32: _Grid(1, 2.0**-149),
}  # fmt: skip


@lowers("nextafter")
def _nextafter(call: Call) -> Value | None:
    operands = (call["input"], call["other"])
    tensors = tuple([o for o in operands if type(o) is Value])
    if call.spec.dtype not in _GRIDS or any(t.shape != call.value_shape() for t in tensors):
        return None
    if any(type(o) not in (Value, float) for o in operands) or not call.supports("bitcast", float32):
        return None
    value = call.value("point", tensors)
    value.attrs = tuple([None if type(o) is Value else o for o in operands])
    value.rule, value.cost = _write_nextafter, 16
    return value


def _write_nextafter(emitter: Any, value: Value, index: Index) -> Any:
    dtype, inputs = value.dtype, iter(value.inputs)
    given = [emitter.read(next(inputs), index) if c is None else cast_constant(c, dtype) for c in value.attrs]
    x, y = (emitter.convert(emitter.named(g, float32), float32, dtype) for g in given)
    size = emitter.let(float32, "abs", x)
    away = emitter.let(bool_, "eq", emitter.let(bool_, "lt", x, y), emitter.let(bool_, "gt", x, 0.0))
    moved = emitter.let(float32, "copysign", _beside(emitter, dtype, size, away), x)
    first = emitter.let(float32, "copysign", emitter.named(_GRIDS[dtype].tiny, float32), y)
    moved = _where(emitter, emitter.let(bool_, "eq", x, 0.0), first, moved)
    moved = _where(emitter, emitter.let(bool_, "eq", x, y), y, moved)
    ordered = emitter.let(bool_, "logical_and", emitter.let(bool_, "eq", x, x), emitter.let(bool_, "eq", y, y))
    return _where(emitter, ordered, moved, math.nan)


def _beside(emitter: Any, dtype: DType, size: str, away: str) -> str:
    """The neighbour of a number that is not negative: the larger one where ``away``."""
    grid = _GRIDS[dtype]
    by = emitter.let(int32, "where", away, grid.step, -grid.step)
    bits = emitter.let(int32, "add", emitter.let(int32, "bitcast", size), by)
    moved = emitter.let(float32, "bitcast", bits)
    if grid.normal:
        by = emitter.let(float32, "where", away, grid.tiny, -grid.tiny)
        edge = emitter.let(float32, "where", away, grid.normal - grid.tiny, grid.normal)
        low = emitter.let(bool_, "le", size, edge)
        moved = _where(emitter, low, emitter.let(float32, "add", size, by), moved)
    if grid.largest is not None:
        moved = _where(emitter, emitter.let(bool_, "eq", size, math.inf), grid.largest, moved)
        moved = _where(emitter, emitter.let(bool_, "gt", moved, grid.largest), math.inf, moved)
    return moved


def _where(emitter: Any, condition: str, value: Any, other: Any) -> str:
    return emitter.let(float32, "where", condition, value, other)
