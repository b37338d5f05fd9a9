"""Passes over what is reduced, and long reductions in two phases: partial results of blocks, then their combination.

    x[N].sum():   parallel i2 < K:  simd i3 < B, r1_p = sum:  v1 = x[i2*B + i3];  r1_p <- v1
                                    p0[i2] = r1_p
                  parallel i0 < 1:  simd i4 < K, r1 = sum:  r1 <- p0[i4];  out[0] = r1

Of a search for the place of an extremum a block hands on both, so that blocks are compared: the first of the best wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lamina_fx import DType, int64
from lamina_fx.symbolic import Min, Symbol

from ..ir.kernel import Accumulate, Accumulator, Let, Load, Loop, Stmt, Store
from .blocks import as_index, closure, feed, in_order
from .emitter import Reduce, Scan
from .flat import Flat, Info, analyse, substitute
from .groups import axis_symbol
from .row_nest import Partial

__all__ = ["is_root", "of_row", "scan_of", "split_reduction", "sweep"]


def of_row(flat: Flat, info: Info) -> bool:
    """Is it a value of the row, or a store of one?"""
    return type(info.stmt) is not Reduce and not (info.axes & flat.inner) and not info.late


def is_root(flat: Flat, info: Info, level: int) -> bool:
    """Does a pass of this level end in it: a reduction, or a store of an element?"""
    if info.late:
        return False
    if type(info.stmt) is Reduce:
        return info.level == level + 1
    return type(info.stmt) is Store and info.level == level and bool(info.axes & flat.inner)


def _inside(flat: Flat, roots: list[Info]) -> list[Info]:
    """What one pass computes per element, in order: down from its roots to values of the row."""
    keys: set[Any] = set()
    for root in roots:
        keys |= closure(flat, [root.key], lambda i, root=root: i is not root and not (i.axes & flat.inner))
    return in_order(flat, keys)


def sweep(flat: Flat, r: Symbol, roots: list[Info], suffix: str, adds: Sequence[Stmt] = ()) -> Loop:
    """A pass over ``r`` down from its roots; accumulators get the suffix. ``adds``: statements at its end."""
    inside: list[Stmt] = []
    sums: list[Accumulator] = []
    fed = [flat.info[a] for stmt in adds if type(stmt) is Let for a in stmt.args if a in flat.info]
    for info in _inside(flat, [*roots, *fed]):
        if type(info.stmt) is Reduce:
            name = info.stmt.name + suffix
            sums.append(Accumulator(name, info.stmt.dtype, info.stmt.kind))
            inside.append(feed(info.stmt, name))
            if suffix and _is_place(info.stmt):
                sums.append(Accumulator(f"{name}v", info.stmt.dtype, info.stmt.kind[3:]))
                inside.append(Accumulate(f"{name}v", info.stmt.value))
        elif type(info.stmt) is Scan:
            running, feeds = scan_of(info.stmt)
            sums.append(running)
            inside.append(feeds)
        else:
            inside.append(info.stmt)
    return Loop(r, as_index(flat.sizes[r]), "simd", (*inside, *adds), tuple(sums))


def scan_of(scan: Scan, init: str | None = None) -> tuple[Accumulator, Accumulate]:
    """A scan as the accumulator of a pass and the statement that feeds it; ``init``: what stands before the first
    element."""
    name = f"{scan.name}_all"
    return Accumulator(name, scan.dtype, scan.kind, init), Accumulate(name, scan.value, running=scan.name)


def split_reduction(
    flat: Flat, x: Symbol, r: Symbol, block: int, spare: int
) -> tuple[tuple[Loop, ...], list[Partial], str]:
    """Partial results of blocks of so many elements along ``r``, and a phase that combines them."""
    kept: Any = flat.sizes.get(x, 1)
    reduced: Any = flat.sizes[r]
    blocks = (reduced + block - 1) // block
    part, place = axis_symbol(spare, kept * blocks), axis_symbol(spare + 1, block)
    reduces = [i.stmt for i in flat.info.values() if type(i.stmt) is Reduce]
    results = [(f"{stmt.name}_p{end}", dtype) for stmt in reduces for end, dtype in _results(stmt)]
    params = {name: f"p{k}" for k, (name, _) in enumerate(results)}
    number = part // kept
    moved: dict[Any, Any] = {x: part % kept, r: number * block + place}
    cut = _moved(flat, moved, {part: kept * blocks, place: Min(block, reduced - number * block)})
    first = _first_phase(cut, part, place, params)
    again = axis_symbol(spare + 2, blocks)
    sums = tuple([Accumulator(s.name, s.dtype, s.kind) for s in reduces])
    combine: list[Stmt] = []
    index = again * kept + (x if kept > 1 else 0)
    for stmt in reduces:
        q = f"{stmt.name}_q"
        combine += [Load(f"{q}{end}", d, params[f"{stmt.name}_p{end}"], index) for end, d in _results(stmt)]
        combine.append(Accumulate(stmt.name, f"{q}v", q) if _is_place(stmt) else Accumulate(stmt.name, q))
    row = [i for i in flat.info.values() if of_row(flat, i)]
    before = [i.stmt for i in row if not i.level]
    after = [i.stmt for i in row if i.level]
    loop = Loop(again, as_index(blocks), "simd", tuple(combine), sums)
    second = Loop(x, as_index(kept), "parallel", (*before, loop, *after))
    partials = [Partial(params[name], dtype, kept * blocks) for name, dtype in results]
    return (first, second), partials, "split reduction"


def _is_place(stmt: Reduce) -> bool:
    """Does it find where an extremum is? Then a block hands on the extremum, too, to compare it with others'."""
    return stmt.kind.startswith("arg")


def _results(stmt: Reduce) -> list[tuple[str, DType]]:
    """What a block hands on: endings of names, and dtypes."""
    return [("", int64), ("v", stmt.dtype)] if _is_place(stmt) else [("", stmt.dtype)]


def _moved(flat: Flat, mapping: dict[Any, Any], sizes: dict[Symbol, Any]) -> Flat:
    """The same statements over other axes, of which the last one is reduced."""
    axes = list(sizes)
    inner = frozenset(axes[-1:])
    moved = [replace(s, axes=inner) if type(s) is Reduce else substitute(s, mapping) for s in flat.statements]
    return analyse(moved, axes, sizes, inner)


def _first_phase(flat: Flat, part: Symbol, place: Symbol, params: dict[str, str]) -> Loop:
    roots = [i for i in flat.info.values() if is_root(flat, i, 0)]
    needed = closure(flat, [r.key for r in roots], lambda i: False)
    before = [i.stmt for i in in_order(flat, needed) if of_row(flat, i)]
    after = [Store(param, part, name) for name, param in params.items()]
    body = (*before, sweep(flat, place, roots, "_p"), *after)
    return Loop(part, as_index(flat.sizes[part]), "parallel", body)
