"""Order a group's axes by memory, and merge neighbours that every access walks as one.

For ``x[32*i + j]`` over ``i < 8, j < 32`` both axes become ``k < 256`` with ``x[k]``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from lamina_fx.symbolic import Expr, Symbol

from ..ir.kernel import Load, Store
from ..ir.loops import Size
from .emitter import Reduce
from .flat import affine, indices_of, substitute
from .groups import axis_symbol

__all__ = ["coalesce", "fast_axis", "order_axes", "walked_axis", "walked_last"]

NEAR = 4
"""Elements that an access steps over at most, along the axis that it walks memory by."""


def order_axes(statements: list[Any], axes: list[Symbol]) -> list[Symbol]:
    """Axes from the largest step in memory to the smallest, going by the stores, then the loads; unclear ones keep
    their place."""
    if len(axes) < 2:
        return axes
    known = frozenset(axes)
    for kind in (Store, Load):
        for stmt in statements:
            if type(stmt) is kind:
                steps = affine(stmt.index, known)
                if steps is not None and len(steps) == len(axes) and all(type(s) is int for s in steps.values()):
                    return sorted(axes, key=lambda a: -abs(steps[a]))
    return axes


def fast_axis(statements: list[Any], axes: list[Symbol]) -> Symbol | None:
    """The axis along which most accesses walk memory element by element."""
    known = frozenset(axes)
    votes = dict.fromkeys(axes, 0)
    accesses = [(s, affine(s.index, known) or {}) for s in statements if type(s) is Load or type(s) is Store]
    most = max([len(steps) for _, steps in accesses], default=0)
    for stmt, steps in accesses:
        for axis, step in steps.items():
            if step == 1 and len(steps) == most:
                votes[axis] += 2 if type(stmt) is Store else 1
    if not axes or not any(votes.values()):
        return axes[-1] if axes else None
    return max(reversed(axes), key=votes.__getitem__)


def walked_axis(steps: dict[Symbol, Any] | None, first: Symbol | None = None) -> Symbol | None:
    """The axis with the shortest step in memory, forth or back, for the steps of an index (``flat.affine``); None when
    that is far. Of equals it is ``first``, or the last one."""
    best, found = NEAR + 1, None
    for axis, step in (steps or {}).items():
        if type(step) is int and 0 < abs(step) <= best and (abs(step) < best or found is not first):
            best, found = abs(step), axis
    return found


def walked_last(statements: list[Any], axes: list[Symbol]) -> list[Symbol]:
    """The axes with one that accesses walk memory by at the end: the one that most do, where none does by the last."""
    known, votes = frozenset(axes), dict.fromkeys(axes, 0)
    for stmt in statements:
        if type(stmt) is Load or type(stmt) is Store:
            steps = affine(stmt.index, known)
            walked = walked_axis(steps, axes[-1] if axes else None)
            if walked is not None:
                votes[walked] += len(steps)  # type: ignore[arg-type]
    if not axes or votes[axes[-1]] or not any(votes.values()):
        return axes
    most = max(axes, key=votes.__getitem__)
    return [*[a for a in axes if a is not most], most]


def coalesce(
    statements: list[Any], axes: list[Symbol], sizes: dict[Symbol, Size], inner: frozenset[Symbol]
) -> tuple[list[Any], list[Symbol], dict[Symbol, Size], frozenset[Symbol]]:
    """Merge axes; returns statements, axes, sizes and inner axes in terms of new symbols numbered from 0."""
    runs: list[list[Symbol]] = [[a] for a in axes]
    if len(axes) > 1:
        runs = _runs(statements, axes, sizes, inner)
    new_axes: list[Symbol] = []
    new_sizes: dict[Symbol, Size] = {}
    mapping: dict[Expr, Any] = {}
    new_inner: set[Symbol] = set()
    for run in runs:
        extent: Size = 1
        for axis in run:
            extent = extent * sizes[axis]
        merged = axis_symbol(len(new_axes), extent)
        new_axes.append(merged)
        new_sizes[merged] = extent
        if run[0] in inner:
            new_inner.add(merged)
        mapping[run[-1]] = merged  # exact for affine indices: the other axes' terms vanish with it
        for axis in run[:-1]:
            mapping[axis] = 0
    changed = {k: v for k, v in mapping.items() if k is not v}
    if changed:
        statements = [_substitute_run(s, mapping, changed) for s in statements]
    return statements, new_axes, new_sizes, frozenset(new_inner)


def _substitute_run(stmt: Any, mapping: dict[Expr, Any], changed: dict[Expr, Any]) -> Any:
    if type(stmt) is Reduce:
        return replace(stmt, axes=frozenset([m for a in stmt.axes if isinstance(m := mapping[a], Symbol)]))
    return substitute(stmt, changed)


def _runs(
    statements: list[Any], axes: list[Symbol], sizes: dict[Symbol, Size], inner: frozenset[Symbol]
) -> list[list[Symbol]]:
    known = frozenset(axes)
    joined = {(a, b): (a in inner) == (b in inner) for a, b in pairwise(axes)}
    for index in dict.fromkeys(i for s in statements for i in indices_of(s) if isinstance(i, Expr)):
        steps = affine(index, known)
        for pair, good in joined.items():
            if good:
                a, b = pair
                joined[pair] = _walks_as_one(index, steps, a, b, sizes[b])
    for stmt in statements:
        if type(stmt) is Reduce:
            for pair, good in joined.items():
                joined[pair] = good and (pair[0] in stmt.axes) == (pair[1] in stmt.axes)
    runs = [[axes[0]]]
    for a, b in pairwise(axes):
        if joined[a, b]:
            runs[-1].append(b)
        else:
            runs.append([b])
    return runs


def _walks_as_one(index: Expr, steps: dict[Symbol, Any] | None, a: Symbol, b: Symbol, size: Size) -> bool:
    if steps is None:
        return a not in index.free_symbols and b not in index.free_symbols
    step_a, step_b = steps.get(a, 0), steps.get(b, 0)
    return bool(step_a == step_b * size)
