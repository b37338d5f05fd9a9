"""Two passes over a row in one: the sum of exp(x - max) beside the maximum, the sum of squared distances from the mean
beside the sum. For rows that are walked in blocks, where every pass reads the row again.

``merge_passes(body)`` finds a loop whose reductions need the one before it in one of these ways only (or not at all)
and joins the two. Both are computed by lane, with what the lane has seen so far, and corrected when lanes are combined:
running maximum and rescaled sum (Milakov, Gimelshein 2018), running mean and sum of squares (Welford 1962; Chan, Golub,
LeVeque 1979).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from lamina_fx.symbolic import Expr

from ...ir.kernel import Accumulate, Accumulator, BindIndex, IndexValue, Let, Load, Loop, Stmt, Store
from ...schedule.beside import Fed, find_beside
from .tiles import constant

__all__ = ["Beside", "OnlineLoop", "merge_passes"]


@dataclass(frozen=True, slots=True)
class Beside:
    """A reduction that is computed beside another: ``kind`` is ``"exp"`` or ``"square"``, ``of`` the maximum or sum
    that it needs, ``value`` what both are made from."""

    kind: str
    accumulator: Accumulator
    of: str
    value: str


@dataclass(frozen=True, slots=True)
class OnlineLoop:
    """A loop, and the reductions beside its own."""

    loop: Loop
    beside: tuple[Beside, ...]


def merge_passes(body: tuple[Stmt, ...]) -> list[Any]:
    """``body`` with joined loops where that is possible."""
    result: list[Any] = []
    rest = list(body)
    while rest:
        first = rest.pop(0)
        if type(first) is Loop:
            at = next((k for k, s in enumerate(rest) if type(s) is Loop), None)
            merged = None if at is None else _merge(first, rest[:at], rest[at])  # type: ignore[arg-type]
            if merged is not None:
                result.append(merged)
                del rest[at]  # type: ignore[arg-type]
                continue
        result.append(first)
    return result


def _merge(a: Loop, between: list[Stmt], b: Loop) -> OnlineLoop | None:
    if a.axis is not b.axis or a.extent != b.extent or any(type(s) is Store for s in b.body):
        return None
    row = {s.name: s for s in between if type(s) is Let}
    late = {acc.name for acc in a.accumulators} | {n for s in between for n in _defines(s)}
    values = {n: s for s in b.body for n in _defines(s)}
    count = constant(a.extent)
    known: dict[str, Fed] = {}
    for acc in [acc for acc in a.accumulators if acc.init is None]:
        (value, *others) = [s.value for s in a.body if type(s) is Accumulate and s.accumulator == acc.name]
        if not others:
            known[acc.name] = Fed(acc.kind, acc.dtype, value)
    beside: list[Beside] = []
    kept: list[Accumulate] = []
    scanned = [s for s in a.body if type(s) is Accumulate and s.running is not None]
    if any(type(s) is Accumulate and s.running is not None and s not in scanned for s in b.body):
        return None
    for feed in [s for s in b.body if type(s) is Accumulate and s.running is None]:
        accumulator = next(acc for acc in b.accumulators if acc.name == feed.accumulator)
        if not _needs(feed, values, late):
            kept.append(feed)
            continue
        fed = Fed(accumulator.kind, accumulator.dtype, feed.value)
        found = find_beside(row | values, known, fed, count) if accumulator.init is None else None
        if found is None:
            return None
        kind, of = found
        beside.append(Beside(kind, accumulator, of, known[of].value))
    if not beside:
        return None
    have = {n for s in a.body for n in _defines(s)}
    inside = [s for s in b.body if s in kept or (type(s) is not Accumulate and not _needs(s, values, late))]
    body = (*a.body, *[s for s in inside if not have.intersection(_defines(s))])
    names = {feed.accumulator for feed in kept}
    accumulators = (*a.accumulators, *[acc for acc in b.accumulators if acc.name in names])
    return OnlineLoop(replace(a, body=body, accumulators=accumulators), tuple(beside))


def _defines(stmt: Any) -> list[str]:
    if type(stmt) is BindIndex:
        return [stmt.symbol.name]
    if type(stmt) is Accumulate:
        return [] if stmt.running is None else [stmt.running]
    return [stmt.name] if type(stmt) in (Let, Load, IndexValue) else []


def _reads(stmt: Any) -> Iterator[str]:
    """Names of the values that a statement needs."""
    if type(stmt) is Let:
        yield from [a for a in stmt.args if type(a) is str]
    for field in ("value", "mask", "index", "expr", "size", "other"):
        item = getattr(stmt, field, None)
        if type(item) is str:
            yield item
        elif isinstance(item, Expr):
            yield from [s.name for s in item.free_symbols]


def _needs(stmt: Any, values: dict[str, Any], late: set[str]) -> bool:
    """Does a statement of a loop depend on one of these names, through others of the loop?"""
    seen: set[str] = set()
    waiting = list(_reads(stmt))
    while waiting:
        name = waiting.pop()
        if name in late:
            return True
        if name not in seen and name in values:
            seen.add(name)
            waiting.extend(_reads(values[name]))
    return False
