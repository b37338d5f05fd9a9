"""Write the scalar statements of a group of values, straight down, without loops yet.

The result (``Flat``) is a list of statements in single assignment form over the group's axes; ``nests`` then cut it
into
loops. A value read twice at one index is computed once. Names are numbered in order of use, so equal groups give
equal text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamina_fx import DType, bool_, float32, int64
from lamina_fx.symbolic import BooleanConstant, Expr, Symbol

from ..ir.dtypes import compute_dtype
from ..ir.kernel import BindIndex, IndexValue, Let, Load, Operand, Sort, Store
from ..ir.loops import Index, Size, Value
from .index_bounds import is_index

__all__ = ["Emitter", "Reduce", "Scan", "Unfusable", "linear_index"]


class Unfusable(Exception):
    """A group needs a value at an index where its loops do not have it. The scheduler then cuts the group apart:
    ``members``, by their places in the program."""

    def __init__(self, text: str, members: frozenset[int] = frozenset()) -> None:
        super().__init__(text)
        self.members = members


def linear_index(index: Index, strides: tuple[Size, ...]) -> Size:
    """Offset of an element from the buffer's start."""
    total: Any = 0
    for i, stride in zip(index, strides, strict=True):
        if not (type(i) is int and i == 0):
            total = total + i * stride
    return total


@dataclass(frozen=True, slots=True)
class Reduce:
    """``name``: reduction of ``value`` over ``axes`` (symbols of the group)."""

    name: str
    dtype: DType
    kind: str
    value: Operand
    axes: frozenset[Symbol]
    index: Operand | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """``name``: what ``value`` and its predecessors along ``axis`` come to; ``kind`` as in ``lower.scans``."""

    name: str
    dtype: DType
    kind: str
    value: Operand
    axis: Symbol


class Emitter:
    """Writes one group.

    ``place(value)`` gives ``(parameter, strides)`` where the value lies in memory before this kernel, else None.
    ``canonical(value)`` gives the index at which the group computes a reduction, else None.
    """

    def __init__(
        self,
        place: Callable[[Value], tuple[str, tuple[Size, ...]] | None],
        canonical: Callable[[Value], Index | None],
        first_check: int = 1,
    ) -> None:
        self.place = place
        self.canonical = canonical
        self.statements: list[Any] = []
        self.memo: dict[Any, Any] = {}
        self.mask: str | None = None
        self.checks: list[tuple[Value, int]] = []
        self.first_check = first_check
        self.known: dict[str, Let | IndexValue] = {}
        self._names = 0

    def name(self, prefix: str = "v") -> str:
        """A new name."""
        self._names += 1
        return f"{prefix}{self._names}"

    # -- statements ------------------------------------------------------------------------------------

    def let(self, dtype: DType, op: str, *args: Operand) -> str:
        """``op(*args)``, once."""
        key = (op, dtype, tuple([a if type(a) is str else (type(a), repr(a)) for a in args]))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self.name()
            self.known[found] = Let(found, dtype, op, args)
            self.statements.append(self.known[found])
        return found

    def compute_let(self, dtype: DType, op: str, operands: list[Operand]) -> Operand:
        """An elementwise operator in the compute dtype of its result."""
        return self.let(compute_dtype(dtype), op, *operands)

    def convert(self, operand: Operand, source: DType, target: DType) -> Operand:
        """``operand``, held for ``source``, as it is held for ``target``; a narrow float is rounded to its
        precision."""
        have, want = compute_dtype(source), compute_dtype(target)
        if source is target:
            return operand
        if want is target:
            return operand if have is target else self.let(target, "convert_element_type", self.named(operand, have))
        narrow = self.let(target, "convert_element_type", self.named(operand, have))
        return self.let(want, "convert_element_type", narrow)

    def named(self, value: Operand, dtype: DType) -> str:
        """A name for an operand that may be a constant."""
        return value if type(value) is str else self.let(dtype, "constant", value)

    def index_value(self, expr: Size | Expr, dtype: DType = int64) -> Operand:
        """An index expression as a value; a constant stays one."""
        if type(expr) is int:
            return expr
        if expr.is_constant:
            return expr.value  # type: ignore[union-attr]
        key = ("index", expr, dtype)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self.name()
            self.known[found] = IndexValue(found, dtype, expr)
            self.statements.append(self.known[found])
        return found

    def condition(self, expr: Any) -> Operand:
        """A comparison of indices as a bool value, or a bool when it is known."""
        if type(expr) is bool:
            return expr
        return bool(expr.value) if isinstance(expr, BooleanConstant) else self.index_value(expr, bool_)

    def bind(
        self, value: Operand, size: Size, source: Value, wrap: bool = False, dim: int = 0, check: bool = True
    ) -> Size:
        """Use an integer value as an index below ``size``, checked unless it is known to be right."""
        if type(value) is int and type(size) is int and 0 <= value < size:
            return value
        value = self.named(value, int64)
        key = ("bind", value, size, wrap, self.mask)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = Symbol(self.name("at"), 0, size - 1)  # sizes are called s0, s1, ...
            if check and not is_index(value, size, self.known):
                number = self.first_check + len(self.checks)
                self.checks.append((source, dim))
                self.statements.append(BindIndex(found, value, size, wrap, number, self.mask))
            else:
                self.statements.append(BindIndex(found, value, None, False, 0, self.mask))
        return found

    def load(self, buffer: str, dtype: DType, index: Size) -> str:
        """An element of a buffer, narrow floats widened to float32."""
        found = self.memo.get(("load", buffer, index, None)) or self.memo.get(("load", buffer, index, self.mask))
        if found is None:
            key = ("load", buffer, index, self.mask)
            found = self.name()
            self.statements.append(Load(found, dtype, buffer, index, self.mask))
            if compute_dtype(dtype) is not dtype:
                found = self.let(float32, "convert_element_type", found)
            self.memo[key] = found
        return found

    def store(self, buffer: str, dtype: DType, index: Size, value: Operand, held: DType, **how: Any) -> None:
        """Store a value that is held for dtype ``held``, narrowed where the buffer is narrow."""
        have = compute_dtype(held)
        value = self.named(value, have)
        if have is not dtype:
            value = self.let(dtype, "convert_element_type", value)
        self.statements.append(Store(buffer, index, value, **how))

    def masked(self, condition: Operand, read: Callable[[], Operand], other: Operand, dtype: DType) -> Operand:
        """``read()`` where the condition holds (memory is touched only there), else ``other``."""
        if type(condition) is not str:
            return read() if condition else other
        outer = self.mask
        self.mask = condition if outer is None else self.let(bool_, "bitwise_and", outer, condition)
        try:
            value = read()
        finally:
            self.mask = outer
        return self.let(compute_dtype(dtype), "where", condition, value, other)

    # -- values ----------------------------------------------------------------------------------------

    def read(self, value: Value, index: Index) -> Operand:
        """The element of ``value`` at ``index``, held in its compute dtype."""
        place = self.place(value)
        while place is None and value.kind == "map":
            index = value.forward(index)  # type: ignore[misc]
            value = value.inputs[0]
            place = self.place(value)
        if place is not None:
            buffer, strides = place
            return self.load(buffer, value.dtype, linear_index(index, strides))
        found = self.memo.get((value, index, None))
        if found is None and self.mask is not None:
            found = self.memo.get((value, index, self.mask))
        if found is None:
            compute = _RULES.get(value.kind, Emitter._compute)
            found = compute(self, value, index)
        return found

    def _compute(self, value: Value, index: Index) -> Operand:
        if value.rule is None:
            raise Unfusable(f"{value!r} is not in memory and has no rule")
        found = self.memo[value, index, self.mask] = value.rule(self, value, index)
        return found

    def _reduce(self, value: Value, index: Index) -> Operand:
        canonical = self.canonical(value)
        if canonical is None:
            raise Unfusable(f"{value!r} is reduced elsewhere")
        result, full, axes = canonical
        if result != index:
            raise Unfusable(f"{value!r} is wanted at {index}, the loops have it at {result}")
        outer, self.mask = self.mask, None
        operand = self.read(value.inputs[0], full)
        held = compute_dtype(value.inputs[0].dtype)
        position = None
        if value.attrs.startswith("arg"):
            position = self.index_value(full[value.axes[0]])
        name = self.name("r")
        self.statements.append(Reduce(name, held, value.attrs, self.named(operand, held), axes, position))
        self.mask = outer
        self.memo[value, index, None] = name
        return name

    def _scan(self, value: Value, index: Index) -> Operand:
        canonical = self.canonical(value)
        if canonical is None or canonical[0] != index:
            raise Unfusable(f"{value!r} is wanted at {index}, where no scan runs")
        outer, self.mask = self.mask, None
        held = compute_dtype(value.dtype)
        operand = self.named(self.read(value.inputs[0], index), held)
        name = self.name("r")
        self.statements.append(Scan(name, held, value.attrs, operand, index[value.axes[0]]))  # type: ignore[arg-type]
        self.mask = outer
        self.memo[value, index, None] = name
        return name

    def _sort(self, value: Value, index: Index) -> Operand:
        canonical = self.canonical(value)
        if canonical is None or canonical[0] != index:
            raise Unfusable(f"{value!r} is wanted at {index}, where no row is sorted")
        outer, self.mask = self.mask, None
        plan, dtype = value.attrs, value.inputs[0].dtype
        held = compute_dtype(dtype)
        operand = self.named(self.read(value.inputs[0], index), held)
        if held is not dtype:  # equal when rounded is equal
            operand = self.let(dtype, "convert_element_type", operand)
        name = self.name("r")
        count = plan.count if type(plan.count) is int else None
        self.statements.append(Sort(name, value.dtype, operand, plan.descending, plan.places, count))
        found = name if compute_dtype(value.dtype) is value.dtype else self.let(held, "convert_element_type", name)
        self.mask = outer
        self.memo[value, index, None] = found
        return found


_RULES = {"reduce": Emitter._reduce, "scan": Emitter._scan, "sort": Emitter._sort}
