"""A group's statements with what each depends on: the material that the nests cut into loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from lamina_fx import DType, int64
from lamina_fx.symbolic import Expr, Product, Symbol
from lamina_fx.symbolic.simplify import linear

from ..ir.kernel import BindIndex, IndexValue, Let, Load, Sort, Store
from ..ir.loops import Size
from ..lower.pointwise import COSTS
from .emitter import Reduce, Scan

__all__ = ["Flat", "Info", "affine", "analyse", "indices_of", "substitute"]


@dataclass(slots=True)
class Info:
    """What is known of a statement.

    axes: those it varies over. level: number of row reductions (or scans) that must be finished before it. late: it
    needs a reduction over the rows. needs: the statements (by key) that it reads. cost: work of one execution.
    """

    stmt: Any
    key: Any
    axes: frozenset[Symbol]
    level: int
    late: bool
    needs: tuple[Any, ...]
    cost: int


@dataclass
class Flat:
    """The statements of a group in order, and by key: the name (or bound symbol) they define; stores have numbers."""

    statements: list[Any]
    axes: list[Symbol]
    sizes: dict[Symbol, Size]
    inner: frozenset[Symbol]
    info: dict[Any, Info]

    @property
    def rows(self) -> list[Symbol]:
        """Axes outside the row reductions."""
        return [a for a in self.axes if a not in self.inner]

    def extent(self, axes: Iterable[Symbol]) -> Size:
        """Product of sizes."""
        total: Size = 1
        for axis in axes:
            total = total * self.sizes[axis]
        return total


def indices_of(stmt: Any) -> tuple[Any, ...]:
    """The index expressions in a statement."""
    kind = type(stmt)
    if kind is Load or kind is Store:
        return (stmt.index,)
    if kind is IndexValue:
        return (stmt.expr,)
    return ()


def analyse(statements: list[Any], axes: list[Symbol], sizes: dict[Symbol, Size], inner: frozenset[Symbol]) -> Flat:
    """Work out what each statement depends on. ``inner``: the axes of row reductions; others are late.

    A scan over the inner axis is made by the pass that makes its operand; over another one it waits as a reduction."""
    info: dict[Any, Info] = {}
    known = frozenset(axes)
    for number, stmt in enumerate(statements):
        needs, own = _reads(stmt, known, info)
        varies, level, late = own, 0, False
        for need in needs:
            found = info[need]
            varies = varies if found.axes <= varies else varies | found.axes
            level = max(level, found.level)
            late = late or found.late
        kind = type(stmt)
        if kind is Reduce:
            varies -= stmt.axes
            if stmt.axes == inner:
                level += 1
            else:
                late = True
            key: Any = stmt.name
        elif kind is Scan:
            varies, level = (varies | {stmt.axis}, level) if stmt.axis in inner else (known, level + 1)
            key = stmt.name
        elif kind is Sort:
            varies, key = varies | inner, stmt.name
        elif kind is BindIndex:
            key = stmt.symbol
        else:
            key = number if kind is Store else stmt.name
        cost = COSTS.get(stmt.op, 1) if kind is Let else 1
        info[key] = Info(stmt, key, varies, level, late, needs, cost)
    return Flat(statements, axes, sizes, inner, info)


def _reads(stmt: Any, axes: frozenset[Symbol], info: dict[Any, Info]) -> tuple[tuple[Any, ...], frozenset[Symbol]]:
    kind = type(stmt)
    if kind is Let:
        return tuple([a for a in stmt.args if type(a) is str]), frozenset()
    if kind is Scan or kind is Sort:
        return (stmt.value,) if type(stmt.value) is str else (), frozenset()
    if kind is Reduce:
        return tuple([a for a in (stmt.value, stmt.index) if type(a) is str]), stmt.axes
    needs: list[Any] = []
    symbols: frozenset[Symbol] = frozenset()
    for index in indices_of(stmt):
        if isinstance(index, Expr):
            symbols |= index.free_symbols
    needs.extend(sorted((s for s in symbols if s in info), key=str))  # bound symbols
    if kind is BindIndex or kind is Store:
        needs.append(stmt.value)
    mask = getattr(stmt, "mask", None)
    if mask is not None:
        needs.append(mask)
    return tuple([n for n in needs if isinstance(n, (str, Symbol))]), symbols & axes


def affine(index: Any, axes: frozenset[Symbol]) -> dict[Symbol, Any] | None:
    """Coefficient of each axis in an index, or None when an axis stands inside a division or product with another."""
    if not isinstance(index, Expr):
        return {}
    result: dict[Symbol, Any] = {}
    for term, coefficient in linear(index)[1]:
        if not (term.free_symbols & axes):
            continue
        if isinstance(term, Symbol):
            result[term] = result.get(term, 0) + coefficient
            continue
        if not isinstance(term, Product):
            return None
        inside = [f for f in term.args if f.free_symbols & axes]
        if len(inside) != 1 or not isinstance(inside[0], Symbol):
            return None
        rest = [f for f in term.args if f is not inside[0]]
        result[inside[0]] = result.get(inside[0], 0) + Product(coefficient, *rest)
    return result


def substitute(stmt: Any, mapping: dict[Expr, Any]) -> Any:
    """The statement with axes replaced in its indices."""
    kind = type(stmt)
    if kind is Load or kind is Store:
        index = stmt.index
        if isinstance(index, Expr) and not index.free_symbols.isdisjoint(mapping):
            return replace(stmt, index=index.substitute(mapping))
    elif kind is IndexValue:
        if isinstance(stmt.expr, Expr) and not stmt.expr.free_symbols.isdisjoint(mapping):
            return replace(stmt, expr=stmt.expr.substitute(mapping))
    elif kind is Reduce and not stmt.axes.isdisjoint(mapping):
        axes = frozenset().union(*[_free(mapping.get(a, a)) for a in stmt.axes])
        return replace(stmt, axes=axes)
    elif kind is Scan and isinstance(axis := mapping.get(stmt.axis), Symbol):
        return replace(stmt, axis=axis)
    return stmt


def _free(expr: Any) -> frozenset[Symbol]:
    return expr.free_symbols if isinstance(expr, Expr) else frozenset()


def dtype_of_value(stmt: Any) -> DType:
    """Dtype of the value a statement defines."""
    return int64 if type(stmt) is BindIndex else stmt.dtype
