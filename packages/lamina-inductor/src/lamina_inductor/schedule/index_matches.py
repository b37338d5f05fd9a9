"""One-hot comparisons in vectorised loops: a pass over kernel IR.

The gradient of a cross entropy compares a row's target (an int64) with the position in the row. Such comparisons are
done with 32 bits, and the sum over the row of what they select is that one element:

    Loop i in N: simd, s = sum                            in = 0 <= t < N
      j = index i;  h = eq(t, j)                    ->    q = where(in and m, v, 0);  s = add(q, 0)
      q = where(h and m, v, 0);  accumulate s, q
"""

from __future__ import annotations

from dataclasses import replace

from lamina_fx.dtype import bool_, int32, int64
from lamina_fx.symbolic import Integer

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
        extent = loop.extent
        if type(extent) is not Integer or extent.value >= 1 << 31 or loop.step != 1:
            return [loop]
        inside = {name for s in walk(loop.body) if (name := getattr(s, "name", None))}
        places = {s.name: s for s in loop.body if type(s) is IndexValue and s.dtype is int64 and s.expr is loop.axis}
        matches = {s.name: t for s in loop.body if type(s) is Let and (t := _target(s, places, inside)) is not None}
        users = [s for s in walk(loop.body) if _reads(s) & places.keys()]
        if not matches or any(getattr(s, "name", None) not in matches for s in users):
            return [loop]
        before, rest = self.without_one_hot_sums(loop, matches, inside)
        live = any(type(s) is not Let and type(s) is not IndexValue for s in rest.body)
        return [*before, *(self.narrowed(rest, places, matches) if live else [])]

    def found(self, loop: Loop, target: str) -> tuple[list[Stmt], str]:
        """Statements that say whether the target is a position of the loop, and the name of that."""
        self.count += 1
        n, size = f"{target}_in{self.count}", loop.extent.value  # type: ignore[attr-defined]
        low, high = Let(f"{n}a", bool_, "ge", (target, 0)), Let(f"{n}b", bool_, "lt", (target, size))
        return [low, high, Let(n, bool_, "logical_and", (low.name, high.name))], n

    def without_one_hot_sums(self, loop: Loop, matches: dict[str, str], inside: set[str]) -> tuple[list[Stmt], Loop]:
        """Statements for the sums of one selected element each, and the loop without them."""
        lets = {s.name: s for s in loop.body if type(s) is Let}
        sums = {a.name: a for a in loop.accumulators if a.kind == "sum" and a.init is None and a.dtype.kind == "float"}
        before: list[Stmt] = []
        body: list[Stmt] = []
        for stmt in loop.body:
            chosen = None
            if type(stmt) is Accumulate and stmt.accumulator in sums:
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


def _reads(stmt: Stmt) -> set[object]:
    found = {a for a in getattr(stmt, "args", ()) if type(a) is str}
    return found | {getattr(stmt, field, None) for field in ("value", "mask", "index", "other") if hasattr(stmt, field)}


def _target(stmt: Let, places: dict[str, IndexValue], inside: set[str]) -> str | None:
    """What an equality compares the position with, when that is a name from outside the loop."""
    if stmt.op != "eq":
        return None
    a, b = stmt.args
    other = a if b in places else b if a in places else None
    return other if type(other) is str and other not in inside else None


def _selected(
    value: object, matches: dict[str, str], lets: dict[str, Let], inside: set[str]
) -> tuple[str, list[object], object] | None:
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
    others: list[object] = [a for a in both.args if a != match]
    if type(match) is not str or any(a in inside for a in others):
        return None
    return match, others, chosen
