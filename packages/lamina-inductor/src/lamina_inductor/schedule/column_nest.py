"""Loops for reductions over an outer axis: a tile of columns is the vector, rows are walked in order.

``mean(x, 0)`` of ``x[R, C]``: parallel over tiles of C; in a tile, for each row a vector loop adds to a local array.
Values that hold for a column (results of reductions and what follows from them) are local arrays over the tile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Min, Symbol

from ..ir.kernel import BindIndex, Let, Load, Local, Loop, Stmt, Store
from .blocks import as_index, closure, combine, dtype_of, grain, identity_of, in_order
from .emitter import Reduce
from .flat import Flat, Info, analyse
from .groups import axis_symbol
from .rows import flat_rows

__all__ = ["column_nest"]

TILE, NARROW_TILE = 256, 64
TILE_ELEMENTS = 1 << 18
"""A tile that is read more than once should stay in half of a 2 MB cache."""


def column_nest(flat: Flat, fast: Symbol) -> tuple[Loop, ...]:
    """The one phase: every row reduction of ``flat`` runs over axes other than ``fast``."""
    others = [a for a in flat.rows if a is not fast]
    spare = len(flat.axes) + 1
    width = flat.sizes[fast]
    tile = max(1, _tile(width, flat))  # of an empty tensor it would be 0
    tiles = (width + tile - 1) // tile
    tile_axis, place = axis_symbol(spare, tiles), axis_symbol(spare + 1, tile)
    from .flat import substitute

    statements = [substitute(s, {fast: tile_axis * tile + place}) for s in flat.statements]
    sizes = dict(flat.sizes)
    del sizes[fast]
    sizes |= {tile_axis: tiles, place: Min(tile, width - tile_axis * tile)}
    axes = [*others, tile_axis, *[a for a in flat.axes if a in flat.inner], place]
    split = analyse(statements, axes, sizes, flat.inner)
    split, outer = flat_rows(split, [*others, tile_axis], spare + 2)
    extent = split.sizes[outer]
    body = _Columns(split, place, tile).body()
    cost = sum(i.cost for i in split.info.values())
    inner = split.extent([a for a in split.axes if a in split.inner])
    work = cost * tile * inner if type(inner) is int else None
    return (Loop(outer, as_index(extent), "parallel", tuple(body), grain=grain(work)),)


def _tile(width: Any, flat: Flat) -> int:
    """Columns of a tile: fewer when there are many rows."""
    inner = flat.extent([a for a in flat.axes if a in flat.inner])
    widest = min(TILE, width) if type(width) is int else TILE
    if type(inner) is not int or all(i.level == 0 or type(i.stmt) is Reduce for i in flat.info.values()):
        return widest
    fit = TILE_ELEMENTS // max(1, inner) // NARROW_TILE * NARROW_TILE
    return max(min(NARROW_TILE, widest), min(fit, widest))


class _Columns:
    """Writes the body of one tile."""

    def __init__(self, flat: Flat, place: Symbol, tile: int) -> None:
        self.flat = flat
        self.place = place
        self.tile = tile
        self.arrays: dict[Any, str] = {}
        self.inverses = 0

    def body(self) -> list[Stmt]:
        flat = self.flat
        levels = 1 + max(i.level for i in flat.info.values())
        result: list[Stmt] = [i.stmt for i in flat.info.values() if self._scalar(i)]
        sections: list[tuple[list[Info], bool]] = []
        for level in range(levels):
            columns = [i for i in flat.info.values() if i.level == level and self._column(i)]
            sections.append((self._with_bound(columns), False))
            sections.append((self._roots(level), True))
        self._choose_arrays(sections)
        declared = [Local(n, dtype_of(flat.info[k].stmt), self.tile) for k, n in self.arrays.items()]
        result = [*declared, *result]
        for infos, is_sweep in sections:
            if infos:
                result.extend(self._sweep(infos) if is_sweep else self._between(infos))
        return result

    def _scalar(self, info: Info) -> bool:
        """Varies over the outer axis only."""
        kind = type(info.stmt)
        return (
            kind not in (Reduce, Store)
            and not (info.axes & self.flat.inner)
            and self.place not in info.axes
            and info.level == 0
        )

    def _column(self, info: Info) -> bool:
        """One value per column."""
        return type(info.stmt) is not Reduce and not (info.axes & self.flat.inner) and not self._scalar(info)

    def _with_bound(self, infos: list[Info]) -> list[Info]:
        """With the indices that these statements use: local arrays hold none, so each section binds its own."""
        known = {i.key for i in infos}
        needed = {need: self.flat.info[need] for i in infos for need in i.needs if need not in known}
        return [*(i for i in needed.values() if type(i.stmt) is BindIndex and self._column(i)), *infos]

    def _roots(self, level: int) -> list[Info]:
        found = []
        for info in self.flat.info.values():
            if (type(info.stmt) is Reduce and info.level == level + 1) or (
                type(info.stmt) is Store and info.level == level and (info.axes & self.flat.inner)
            ):
                found.append(info)
        return found

    def _choose_arrays(self, sections: list[tuple[list[Info], bool]]) -> None:
        """Column values that another section reads live in arrays."""
        home: dict[Any, int] = {}
        for number, (infos, _) in enumerate(sections):
            for info in infos:
                if type(info.stmt) is Reduce:
                    self.arrays[info.key] = f"col{len(self.arrays)}"
                home[info.key] = number
        for number, (infos, is_sweep) in enumerate(sections):
            keys = self._inside(infos) if is_sweep else {i.key for i in infos}
            for reader in in_order(self.flat, keys):
                for need in reader.needs:
                    info = self.flat.info[need]
                    named = type(info.stmt) not in (Store, BindIndex)
                    if named and self._column(info) and home.get(need, number) != number and need not in self.arrays:
                        self.arrays[need] = f"col{len(self.arrays)}"

    def _inside(self, roots: list[Info]) -> set[Any]:
        def stop(info: Info) -> bool:
            if type(info.stmt) is Reduce:
                return info not in roots
            if type(info.stmt) is BindIndex and self._column(info):
                return False
            return type(info.stmt) is not Store and not (info.axes & self.flat.inner)

        return closure(self.flat, [r.key for r in roots], stop)

    def _fetch(self, keys: set[Any]) -> list[Stmt]:
        """Loads of the column values that these statements read from arrays."""
        wanted: dict[Any, None] = {}
        for key in self.flat.info:
            if key in keys:
                for need in self.flat.info[key].needs:
                    if need in self.arrays and need not in keys:
                        wanted[need] = None
        return [Load(k, dtype_of(self.flat.info[k].stmt), self.arrays[k], self.place) for k in wanted]

    def _tile_loop(self, body: list[Stmt]) -> Loop:
        return Loop(self.place, as_index(self.flat.sizes[self.place]), "simd", tuple(body))

    def _between(self, infos: list[Info]) -> list[Stmt]:
        body: list[Stmt] = self._fetch({i.key for i in infos})
        for info in infos:
            body.append(info.stmt)
            if info.key in self.arrays:
                body.append(Store(self.arrays[info.key], self.place, info.key))
        return [self._tile_loop(body)]

    def _sweep(self, roots: list[Info]) -> list[Stmt]:
        flat = self.flat
        keys = self._inside(roots)
        inverse = self._divisors(keys)
        start: list[Stmt] = []
        fetch = [s for s in self._fetch(keys) if s.name not in inverse]
        fetch += [Load(f"{k}_inv", dtype_of(flat.info[k].stmt), a, self.place) for k, a in inverse.items()]
        body: list[tuple[frozenset[Symbol], Stmt]] = [(frozenset((self.place,)), s) for s in fetch]
        fetched: set[Any] = set(self.arrays)  # what comes from arrays varies over the tile, and what follows from it
        for info in in_order(flat, keys):
            stmt = info.stmt
            if type(stmt) is not Reduce:
                if not fetched.isdisjoint(info.needs):
                    fetched.add(info.key)
                if type(stmt) is Let and stmt.op == "div" and stmt.args[1] in inverse:
                    stmt = replace(stmt, op="mul", args=(stmt.args[0], f"{stmt.args[1]}_inv"))
                body.append((info.axes | {self.place} if info.key in fetched else info.axes, stmt))
                continue
            array, old, new = self.arrays[info.key], f"{stmt.name}_o", f"{stmt.name}_n"
            start.append(Store(array, self.place, identity_of(stmt.kind, stmt.dtype)))
            everywhere = frozenset((*flat.inner, self.place))
            body.append((everywhere, Load(old, stmt.dtype, array, self.place)))
            body.append((everywhere, combine(stmt.kind, stmt.dtype, new, old, stmt.value)))  # type: ignore[arg-type]
            body.append((everywhere, Store(array, self.place, new)))
        axes = [a for a in flat.axes if a in flat.inner]
        loops = self._loops(axes, body)
        return [*self._reciprocals(inverse), *([self._tile_loop(start)] if start else []), *loops]

    def _divisors(self, keys: set[Any]) -> dict[Any, str]:
        """Column values that a sweep only divides by, and arrays for their reciprocals: one division a column."""
        used: dict[Any, bool] = {}
        for reader in in_order(self.flat, keys):
            stmt = reader.stmt
            divides = type(stmt) is Let and stmt.op == "div" and stmt.dtype.name in ("float32", "float64")
            divisor = stmt.args[1] if divides and stmt.args[0] != stmt.args[1] else None  # type: ignore[union-attr]
            for need in reader.needs:
                used[need] = used.get(need, True) and need == divisor
        found = [k for k, only in used.items() if only and k in self.arrays and k not in keys]
        self.inverses += len(found)
        return {k: f"inv{self.inverses - n}" for n, k in enumerate(found)}

    def _reciprocals(self, inverse: dict[Any, str]) -> list[Stmt]:
        result: list[Stmt] = []
        for key, array in inverse.items():
            dtype = dtype_of(self.flat.info[key].stmt)
            body = [
                Load(f"{key}_d", dtype, self.arrays[key], self.place),
                Let(f"{key}_r", dtype, "reciprocal", (f"{key}_d",)),
                Store(array, self.place, f"{key}_r"),
            ]
            result += [Local(array, dtype, self.tile), self._tile_loop(body)]
        return result

    def _loops(self, axes: list[Symbol], body: list[tuple[frozenset[Symbol], Stmt]]) -> list[Stmt]:
        if not axes:
            outside = [s for v, s in body if self.place not in v]
            return [*outside, self._tile_loop([s for v, s in body if self.place in v])]
        deeper = frozenset((*axes[1:], self.place))
        outside = [s for v, s in body if not (v & deeper)]
        inside = self._loops(axes[1:], [(v, s) for v, s in body if v & deeper])
        return [Loop(axes[0], as_index(self.flat.sizes[axes[0]]), "serial", (*outside, *inside))]
