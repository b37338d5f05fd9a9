"""What must hold between the inputs: sizes, aliases, memory; and sizes that become inputs of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina_fx import ScalarSpec
from lamina_fx.symbolic import Integer, Symbol, SymInt, to_python

from .. import guard as g
from .translator import BreakBefore

__all__ = ["add_alias_guards", "add_shape_guards", "add_symbol_inputs"]


def add_symbol_inputs(tx: Any) -> None:
    """Sizes that stand in arguments, and that no array input shows, become inputs of their own."""
    used: set[Any] = set()
    for node in tx.output.graph.nodes:
        if node.op == "call_function":
            _symbols_in((node.args, node.kwargs), used)
    for entry in tx.output.inputs:
        for size in getattr(entry.spec, "shape", ()):
            if isinstance(size, SymInt):
                used.discard(size.expr)
                used.discard(size.original)
    for symbol in sorted(used, key=lambda s: s.name):
        value = tx.shape_env_ints[symbol]
        tx.output.add_input(tx.symbols[symbol], symbol.name, ScalarSpec(int, value), value.hint)


def _symbols_in(value: Any, found: set[Any]) -> None:
    kind = type(value)
    if kind is SymInt:
        found.update(value.expr.free_symbols)
    elif kind in (tuple, list):
        for item in value:
            _symbols_in(item, found)
    elif kind is dict:
        _symbols_in(list(value.values()), found)
    elif kind is slice:
        _symbols_in((value.start, value.stop, value.step), found)


def add_shape_guards(tx: Any) -> None:
    """Guards for what was asked of symbolic sizes, and for their ranges."""
    for shape_guard in tx.shape_env.guards:
        expr = shape_guard.expr
        if not expr.free_symbols:
            continue
        symbols = {s.name: tx.symbols[s] for s in expr.free_symbols}
        tx.guard(g.shape_holds(to_python(expr), symbols, line=shape_guard.source or ""))
    for symbol, lower, upper in tx.bounded_symbols:
        known = tx.shape_env.simplify(symbol)
        equal = isinstance(known, Symbol) and known is not symbol and known in tx.symbols
        if isinstance(known, Integer) or (equal and (known.lower, known.upper) == (lower, upper)):
            continue  # a guard above says so
        where = {symbol.name: tx.symbols[symbol]}
        if lower > 0:
            tx.guard(g.shape_holds(f"{lower} <= {symbol.name}", where))
        if upper is not None:
            tx.guard(g.shape_holds(f"{symbol.name} <= {upper}", where))


def add_alias_guards(tx: Any) -> None:
    """Two inputs that were two objects stay two; where the region writes, their memory stays apart as it was.

    A region may not write elements that two inputs share: the graph ends before the first such write.
    """
    sources = [t.source for _, t in tx.arrays]
    if len(sources) < 2:
        return
    tx.guard(g.all_distinct(sources))
    if any(n.effect == "write" for n in tx.output.graph.nodes):
        _guard_overlap(tx)


def _guard_overlap(tx: Any) -> None:
    """Inputs whose memory is apart stay so; one that lies in another's stays at its place in it."""
    bounds = getattr(tx.frontend, "memory_bounds", None)
    if bounds is None:
        return
    spans = [(*bounds(value), value, tensor) for value, tensor in tx.arrays]
    overlapping = list(_overlapping(spans))
    for first, second in overlapping:
        _refuse_write(tx, first, second)
    if not overlapping:
        tx.guard(g.no_overlap([tensor.source for *_, tensor in spans]))
        return
    for first, second in overlapping:
        tx.guard(g.overlap_is(first[3].source, second[3].source, second[0] - first[0]))
    together = {frozenset((id(a[3]), id(b[3]))) for a, b in overlapping}
    for i, a in enumerate(spans):
        for b in spans[i + 1 :]:
            if frozenset((id(a[3]), id(b[3]))) not in together:
                tx.guard(g.no_overlap([a[3].source, b[3].source]))


def _overlapping(spans: list[tuple[Any, ...]]) -> Iterator[tuple[Any, Any]]:
    """Pairs whose ranges of memory have a byte in common."""
    open_: list[tuple[Any, ...]] = []
    for span in sorted(spans, key=lambda s: s[:2]):
        open_ = [other for other in open_ if other[1] > span[0]]
        if span[0] < span[1]:
            for other in open_:
                yield other, span
            open_.append(span)


def _refuse_write(tx: Any, first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    """End the graph before the first write to elements that both inputs show."""
    if not tx.frontend.shares_memory(first[2], second[2]):
        return
    key_of = getattr(tx.frontend, "memory_key", None)
    keys = None if key_of is None else {key_of(first[3].fake), key_of(second[3].fake)}
    for key, steps in tx.writes:
        if keys is None or key in keys:
            reason = f"a write to memory that {first[3].source} and {second[3].source} share"
            raise BreakBefore(steps, reason)
