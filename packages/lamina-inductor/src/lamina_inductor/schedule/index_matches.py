"""One-hot comparisons in vectorised loops: a pass over kernel IR.

The gradient of a cross entropy compares a row's target (an int64) with the position in the row. Such comparisons are
done with 32 bits, and the sum over the row of what they select is that one element:

    Loop i in N: simd, s = sum                            in = 0 <= t < N
      j = index i;  h = eq(t, j)                    ->    q = where(in and m, v, 0);  s = add(q, 0)
      q = where(h and m, v, 0);  accumulate s, q

In a loop over a block of a row, which starts at ``b``, positions are ``b + i``: ``t - b`` is compared then.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

from lamina_fx.dtype import bool_, int32, int64
from lamina_fx.symbolic import Expr

from ..ir.kernel import Accumulate, IndexValue, Kernel, Let, Loop, Stmt, walk

__all__ = ["narrow_index_matches"]


def narrow_index_matches(kernel: Kernel) -> Kernel:
    """The kernel with its one-hot comparisons made cheap; the same object when it has none."""
    if not any(type(s) is IndexValue for s in walk(kernel.body)):
        return kernel
    rewriter = _Rewriter()
    body = tuple([replace(p, body=rewriter.block(p.body)) for p in kernel.body])
    return replace(kernel, body=body) if rewriter.count else kernel


class _Rewriter:
    """Counts what it changed, which also names what it adds."""

    def __init__(self) -> None:
        self.count = 0

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            if type(stmt) is Loop:
                result += self.loop(stmt) if stmt.kind == "simd" else [replace(stmt, body=self.block(stmt.body))]
            elif hasattr(stmt, "body"):
                result.append(replace(stmt, body=self.block(stmt.body)))  # type: ignore[type-var, union-attr, attr-defined]
            else:
                result.append(stmt)
        return tuple(result)

    def loop(self, loop: Loop) -> list[Stmt]:
        """A loop over a block of a row compares with positions from the block's start on."""
        base = next((b for s in loop.body if type(s) is IndexValue and (b := _base(s, loop)) is not None), None)
        if base is None:
            return self.from_zero(loop) or [loop]
        names = {s.name for s in loop.body if type(s) is IndexValue and _base(s, loop) == base}
        inside = _names(loop)
        before: dict[str, Stmt] = {}
        body: list[Stmt] = []
        for stmt in loop.body:
            if type(stmt) is IndexValue and stmt.name in names:
                stmt = replace(stmt, expr=loop.axis)
            elif type(stmt) is Let and (target := _target(stmt, names, inside)) is not None:
                start, shifted = f"{target}_at{self.count}", f"{target}_to{self.count}"
                before[start] = IndexValue(start, int64, base)
                before[shifted] = Let(shifted, int64, "sub", (target, start))
                stmt = replace(stmt, args=tuple([shifted if a == target else a for a in stmt.args]))
            body.append(stmt)
        narrowed = self.from_zero(replace(loop, body=tuple(body)))
        return [*before.values(), *narrowed] if narrowed else [loop]

    def from_zero(self, loop: Loop) -> list[Stmt]:
        """Empty: it has no such comparisons."""
        most: Any = loop.extent.range()[1]
        if type(most) is not int or most >= 1 << 31 or loop.step != 1:
            return []
        inside = _names(loop)
        places = {s.name: s for s in loop.body if type(s) is IndexValue and s.dtype is int64 and s.expr is loop.axis}
        matches = {s.name: t for s in loop.body if type(s) is Let and (t := _target(s, places, inside)) is not None}
        users = [s for s in walk(loop.body) if _reads(s) & places.keys()]
        if not matches or any(getattr(s, "name", None) not in matches for s in users):
            return []
        before, rest = self.without_one_hot_sums(loop, matches, inside)
        live = any(type(s) is not Let and type(s) is not IndexValue for s in rest.body)
        return [*before, *(self.narrowed(rest, places, matches) if live else [])]

    def found(self, loop: Loop, target: str) -> tuple[list[Stmt], str]:
        """Statements that say whether the target is a position of the loop, and the name of that."""
        self.count += 1
        n, size, before = f"{target}_in{self.count}", getattr(loop.extent, "value", f"{target}_n{self.count}"), []
        if type(size) is str:
            before.append(IndexValue(size, int64, loop.extent))
        low, high = Let(f"{n}a", bool_, "ge", (target, 0)), Let(f"{n}b", bool_, "lt", (target, size))
        return [*before, low, high, Let(n, bool_, "logical_and", (low.name, high.name))], n

    def without_one_hot_sums(self, loop: Loop, matches: dict[str, str], inside: set[str]) -> tuple[list[Stmt], Loop]:
        """Statements for the sums of one selected element each, and the loop without them."""
        lets = {s.name: s for s in loop.body if type(s) is Let}
        sums = {a.name: a for a in loop.accumulators if a.kind == "sum" and a.init is None and a.dtype.kind == "float"}
        before: list[Stmt] = []
        body: list[Stmt] = []
        for stmt in loop.body:
            chosen = None
            if type(stmt) is Accumulate and stmt.running is None and stmt.accumulator in sums:
                chosen = _selected(stmt.value, matches, lets, inside)
            if chosen is None:
                body.append(stmt)
                continue
            match, others, value = chosen
            tests, name = self.found(loop, matches[match])
            result = sums.pop(stmt.accumulator)  # type: ignore[union-attr]
            before += tests
            for number, other in enumerate(others):
                before.append(Let(f"{name}m{number}", bool_, "logical_and", (name, other)))
                name = f"{name}m{number}"
            before.append(Let(f"{name}v", result.dtype, "where", (name, value, 0.0)))
            before.append(Let(result.name, result.dtype, "add", (f"{name}v", 0.0)))
        made = {s.name for s in before if type(s) is Let}
        kept = tuple([a for a in loop.accumulators if a.name not in made])
        return before, replace(loop, body=tuple(body), accumulators=kept) if before else loop

    def narrowed(self, loop: Loop, places: dict[str, IndexValue], matches: dict[str, str]) -> list[Stmt]:
        before: list[Stmt] = []
        narrow: dict[str, str] = {}
        for target in dict.fromkeys(matches.values()):
            tests, name = self.found(loop, target)
            safe = Let(f"{name}c", int64, "where", (name, target, -1))
            before += [*tests, safe, Let(f"{name}d", int32, "convert_element_type", (safe.name,))]
            narrow[target] = f"{name}d"
        body: list[Stmt] = []
        for stmt in loop.body:
            if type(stmt) is IndexValue and stmt.name in places:
                stmt = replace(stmt, dtype=int32)
            elif type(stmt) is Let and stmt.name in matches:
                stmt = replace(stmt, args=tuple([narrow.get(a, a) for a in stmt.args]))  # type: ignore[arg-type]
            body.append(stmt)
        return [*before, replace(loop, body=tuple(body))]


def _base(stmt: IndexValue, loop: Loop) -> Expr | None:
    """Where positions start when the statement's are ``start + axis``; None: at 0, or they are none."""
    if stmt.dtype is not int64 or not isinstance(stmt.expr, Expr) or stmt.expr is loop.axis:
        return None
    base = stmt.expr - loop.axis
    return base if isinstance(base, Expr) and loop.axis not in base.free_symbols else None


def _names(loop: Loop) -> set[str]:
    """What statements of the loop define."""
    found = [getattr(s, "running" if type(s) is Accumulate else "name", None) for s in walk(loop.body)]
    return {name for name in found if name is not None}


def _reads(stmt: Stmt) -> set[Any]:
    found = {a for a in getattr(stmt, "args", ()) if type(a) is str}
    return found | {getattr(stmt, field, None) for field in ("value", "mask", "index", "other") if hasattr(stmt, field)}


def _target(stmt: Let, places: Container[Any], inside: set[str]) -> str | None:
    """What an equality compares the position with, when that is a name from outside the loop."""
    if stmt.op != "eq":
        return None
    a, b = stmt.args
    other = a if b in places else b if a in places else None
    return other if type(other) is str and other not in inside else None


def _selected(
    value: object, matches: dict[str, str], lets: dict[str, Let], inside: set[str]
) -> tuple[str, list[Any], Any] | None:
    """(match, other conditions, chosen) when ``value`` is zero but where the match and the conditions hold, and what
    is chosen is fixed in the loop."""
    stmt = lets.get(value) if type(value) is str else None
    if stmt is None or stmt.op != "where":
        return None
    condition, chosen, otherwise = stmt.args
    if type(otherwise) is str or otherwise != 0 or (type(chosen) is str and chosen in inside):
        return None
    if condition in matches:
        return condition, [], chosen  # type: ignore[return-value]
    both = lets.get(condition) if type(condition) is str else None
    if both is None or both.op not in ("logical_and", "bitwise_and"):
        return None
    match = next((a for a in both.args if a in matches), None)
    others: list[Any] = [a for a in both.args if a != match]
    if type(match) is not str or any(a in inside for a in others):
        return None
    return match, others, chosen
