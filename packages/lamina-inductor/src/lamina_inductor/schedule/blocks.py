"""Small pieces that all nests use: ordered closures of statements, loops around them, values carried in local
arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lamina_fx import DType, int64
from lamina_fx.symbolic import Expr, Integer, Symbol

from ..ir.kernel import Accumulate, Accumulator, BindIndex, Let, Loop, Stmt, Store
from ..ir.loops import Size
from .emitter import Reduce
from .flat import Flat, Info

__all__ = [
    "COMBINE",
    "identity_of",
    "as_index",
    "before_all",
    "closure",
    "dtype_of",
    "flatten_axes",
    "grain",
    "in_order",
    "nest",
    "wants_rows",
]

COMBINE = {
    "sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and",
    "xor": "bitwise_xor", "logaddexp": "logaddexp",
}  # fmt: skip
"""Kind of accumulator -> elementwise operator that combines two partial results."""

GRAIN = 1 << 15
"""Work, in additions, that is worth a thread of its own."""


def as_index(size: Size) -> Expr:
    """An index as an expression."""
    return Integer(size) if type(size) is int else size  # type: ignore[return-value]


def identity_of(kind: str, dtype: DType) -> Any:
    """The start value of an accumulator."""
    if kind in ("sum", "any", "xor"):
        return False if dtype.kind == "bool" else 0 if dtype.kind == "int" else 0.0
    if kind in ("prod", "all"):
        return True if dtype.kind == "bool" else 1 if dtype.kind == "int" else 1.0
    if dtype.kind == "float":
        return float("inf") if kind == "min" else float("-inf")
    if dtype.kind == "bool":
        return kind == "min"
    bits = dtype.itemsize * 8
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.is_signed else (0, (1 << bits) - 1)
    return low if kind == "max" else high


def before_all(kind: str, dtype: DType) -> Any:
    """What a scan has before its first element: what changes no bit, so of float sums the negative zero."""
    return -0.0 if kind == "sum" and dtype.kind == "float" else identity_of(kind, dtype)


def dtype_of(stmt: Any) -> DType:
    """Dtype of the value that a statement defines."""
    return int64 if type(stmt) is BindIndex else stmt.dtype


def closure(flat: Flat, roots: Iterable[Any], stop: Any) -> set[Any]:
    """Keys of the statements that the roots need, not going below those for which ``stop(info)`` is true."""
    found: set[Any] = set()
    work = list(roots)
    while work:
        key = work.pop()
        if key in found or stop(flat.info[key]):
            continue
        found.add(key)
        work.extend(flat.info[key].needs)
    return found


def in_order(flat: Flat, keys: set[Any]) -> list[Info]:
    """The statements of these keys, in program order."""
    return [info for key, info in flat.info.items() if key in keys]


def nest(axes: list[Symbol], flat: Flat, infos: list[Info], inner_kind: str = "simd") -> tuple[Stmt, ...]:
    """Loops over ``axes`` (the last one ``inner_kind``) around pure statements and stores, each as far out as it can
    be."""
    if not axes:
        return tuple([i.stmt for i in infos])
    axis, rest = axes[0], axes[1:]
    deep = frozenset(axes)
    outside = [i.stmt for i in infos if not (i.axes & deep) and type(i.stmt) is not Store]
    inside = [i for i in infos if (i.axes & deep) or type(i.stmt) is Store]
    kind = "serial" if rest else inner_kind
    return (*outside, Loop(axis, as_index(flat.sizes[axis]), kind, nest(rest, flat, inside, inner_kind)))


def flatten_axes(axes: list[Symbol], flat: Flat) -> Any:
    """Row-major number of the position over ``axes``."""
    total: Any = Integer(0)
    for axis in axes:
        total = total * flat.sizes[axis] + axis
    return total


def grain(work: Any) -> Expr:
    """Iterations that are worth a thread, when one costs ``work``."""
    if isinstance(work, int):
        return Integer(max(1, GRAIN // max(1, work)))
    return Integer(1)


def wants_rows(reduces: list[Info]) -> tuple[Accumulator, ...]:
    """Accumulators for row reductions."""
    return tuple([Accumulator(i.stmt.name, i.stmt.dtype, i.stmt.kind) for i in reduces])


def feed(reduce: Reduce, name: str | None = None) -> Accumulate:
    """The statement that feeds a reduction's accumulator."""
    return Accumulate(name or reduce.name, reduce.value, reduce.index)


def combine(kind: str, dtype: DType, name: str, a: str, b: str) -> Let:
    """``name`` = a and b combined as the accumulator of this kind does."""
    return Let(name, dtype, COMBINE[kind], (a, b))
