"""Positions of extrema in vectorised loops: a pass over kernel IR.

A comparison that carries a position along is not vectorised by compilers. Two loops are: the extremum, and the least
position that has it (or is the first NaN, which wins). The second reads what the first left in the cache.

    Loop i in N: simd, m = argmax                  Loop i in N: simd, m_best = max
      x = load ...;  at = index i            ->      x = load ...;  accumulate m_best, x
      accumulate m, x at at                        Loop i in N: simd, m_first = min
                                                     x = load ...;  hit = eq(x, m_best);  p = where(hit, i, last)
                                                     accumulate m_first, p
                                                   m = convert m_first
"""

from __future__ import annotations

from dataclasses import replace

from lamina_fx import DType
from lamina_fx.dtype import bool_, int32, int64
from lamina_fx.symbolic import Expr, Integer, as_expr

from ...ir.kernel import Accumulate, Accumulator, IndexValue, Kernel, Let, Load, Loop, Stmt, walk
from ...lower.pointwise import COSTS

__all__ = ["split_arg_searches"]

_CHEAP = 6
"""Work that is done twice rather than one element at a time."""


def split_arg_searches(kernel: Kernel) -> Kernel:
    """The kernel with its searches in two loops each; the same object when it has none."""
    if not any(type(s) is Loop and _positions(s) for s in walk(kernel.body)):
        return kernel
    return replace(kernel, body=tuple([replace(p, body=_block(p.body)) for p in kernel.body]))


def _positions(loop: Loop) -> list[Accumulator]:
    return [a for a in loop.accumulators if a.kind in ("argmax", "argmin")]


def _block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if type(stmt) is Loop and stmt.kind == "simd" and _positions(stmt):
            result += _searched(stmt) if _fits(stmt) else [stmt]
        elif hasattr(stmt, "body"):
            result.append(replace(stmt, body=_block(stmt.body)))  # type: ignore[type-var, union-attr, attr-defined]
        else:
            result.append(stmt)
    return tuple(result)


def _fits(loop: Loop) -> bool:
    """Pure, cheap, over positions that are the loop's own, from some place on, and elements side by side."""
    if loop.step != 1:
        return False
    own = {s.name for s in loop.body if type(s) is IndexValue and _begin(s, loop) is not None}
    lets = sum(COSTS.get(s.op, 1) for s in loop.body if type(s) is Let)
    arg = {a.name for a in _positions(loop)}
    plain = all(a.dtype is not bool_ and a.init is None for a in _positions(loop))
    known = all(type(s) in (Let, Load, IndexValue, Accumulate) for s in loop.body)
    feeds = [s for s in loop.body if type(s) is Accumulate and s.accumulator in arg]
    near = all(_step(s, loop) in (0, 1) for s in loop.body if type(s) is Load)
    return plain and known and near and lets <= _CHEAP and all(s.index in own and type(s.value) is str for s in feeds)


def _begin(position: IndexValue, loop: Loop) -> Expr | None:
    """The first position of a loop over neighbours; None: these are others."""
    begin = as_expr(position.expr) - loop.axis
    return None if loop.axis in begin.free_symbols else begin


def _step(load: Load, loop: Loop) -> int | None:
    """How far apart the elements lie that neighbouring iterations read, where that is a number."""
    index = as_expr(load.index)
    apart = index.substitute({loop.axis: loop.axis + 1}) - index
    return apart.value if type(apart) is Integer else None


def _place_dtype(loop: Loop) -> DType:
    """Positions of 32 bits are as many in a vector as floats."""
    most = as_expr(loop.extent).range()[1]
    known = most.value if type(most) is Integer else most
    return int32 if type(known) is int and known < 1 << 31 else int64


def _searched(loop: Loop) -> list[Stmt]:
    place = _place_dtype(loop)
    arg = {a.name: a for a in _positions(loop)}
    best = {name: f"{name}_best" for name in arg}
    first = [
        replace(s, accumulator=best[s.accumulator], index=None) if type(s) is Accumulate and s.accumulator in arg else s
        for s in loop.body
    ]
    accumulators = tuple([
        Accumulator(best[a.name], a.dtype, a.kind[3:]) if a.name in arg else a for a in loop.accumulators
    ])  # fmt: skip
    again: list[Stmt] = [s for s in loop.body if type(s) is not Accumulate]
    again.append(IndexValue("position", place, loop.axis))
    for s in loop.body:
        if type(s) is Accumulate and s.accumulator in arg:
            again += _hit(s, arg[s.accumulator], best[s.accumulator], place)
    found = tuple([Accumulator(f"{name}_first", place, "min") for name in arg])
    results = [stmt for s in loop.body if type(s) is Accumulate and s.accumulator in arg for stmt in _result(s, loop)]
    return [
        replace(loop, body=tuple(first), accumulators=accumulators),
        replace(loop, body=tuple(again), accumulators=found),
        *results,
    ]


def _result(feed: Accumulate, loop: Loop) -> list[Stmt]:
    """The position, where those of the loop begin somewhere else than at 0."""
    name = feed.accumulator
    begin = next(_begin(s, loop) for s in loop.body if type(s) is IndexValue and s.name == feed.index)
    if begin is None or (type(begin) is Integer and begin.value == 0):
        return [Let(name, int64, "convert_element_type", (f"{name}_first",))]
    place = Let(f"{name}_place", int64, "convert_element_type", (f"{name}_first",))
    return [place, IndexValue(f"{name}_begin", int64, begin), Let(name, int64, "add", (place.name, f"{name}_begin"))]


def _hit(feed: Accumulate, accumulator: Accumulator, best: str, place: DType) -> list[Stmt]:
    """The position where the value is the extremum, elsewhere one behind all."""
    name, value = accumulator.name, feed.value
    hit, stmts = f"{name}_hit", [Let(f"{name}_hit", bool_, "eq", (value, best))]
    if accumulator.dtype.is_floating_point:
        stmts += [
            Let(f"{name}_nan", bool_, "ne", (value, value)),
            Let(f"{name}_either", bool_, "logical_or", (hit, f"{name}_nan")),
        ]
        hit = f"{name}_either"
    behind = (1 << (8 * place.itemsize - 1)) - 1
    at = Let(f"{name}_at", place, "where", (hit, "position", behind))
    return [*stmts, at, Accumulate(f"{name}_first", at.name)]
