"""Rows in blocks: what is made for each block of a row, and how the blocks' results are combined, in order.

Stage ``n`` is what needs ``n`` combinations. A reduction beside another (``beside``) is combined with it: each block
has the sum of squared distances from its own mean, or of exponentials from its own maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lamina_fx import bool_
from lamina_fx.symbolic import Min, Symbol

from ..ir.kernel import Accumulate, Accumulator, IndexValue, Let, Load, Loop, Stmt, Store
from .beside import Fed, find_beside
from .blocks import as_index, before_all, closure, feed, in_order
from .emitter import Reduce, Scan
from .flat import Flat, Info, analyse, substitute
from .groups import axis_symbol
from .row_nest import Partial
from .split_reduction import scan_of

__all__ = ["RowBlocks", "block_loops", "combine_blocks", "cut_rows", "of_row"]

COMBINATIONS = 2
"""At most: each is a meeting of a group, or a launch."""


@dataclass(frozen=True)
class RowBlocks:
    """The statements over (x, number of the block, place in it), and what each of them waits for.

    beside: reduction -> (kind, the one it stands beside). params: reduction -> the buffer of the blocks' results.
    starts: scan -> the buffer of what stands before each block, and behind the last.
    """

    flat: Flat
    x: Symbol
    member: Symbol
    place: Symbol
    again: Symbol
    kept: Any
    members: Any
    reduced: Any
    block: int
    stages: dict[Any, int]
    beside: dict[str, tuple[str, str]]
    params: dict[str, str]
    starts: dict[str, str]

    @property
    def reduces(self) -> dict[str, Reduce]:
        """By name; of a scan, what all of it comes to."""
        return _reduces(self.flat, self.place)

    @property
    def last(self) -> int:
        """The last stage."""
        return max(self.stages.values())

    @property
    def partials(self) -> list[Partial]:
        """Buffers of the blocks' results."""
        reduces, count = self.reduces, self.kept * self.members
        parts = [Partial(p, reduces[name].dtype, count) for name, p in self.params.items()]
        return parts + [Partial(p, reduces[name].dtype, count + self.kept) for name, p in self.starts.items()]

    def values(self, stage: int) -> list[Info]:
        """Values of the row, and their stores, of a stage."""
        info = self.flat.info.values()
        return [i for i in info if self.stages[i.key] == stage and of_row(self.flat, i)]

    def length(self, member: Symbol) -> Any:
        """Elements of a block."""
        if type(self.reduced) is int and self.reduced % self.block == 0:
            return self.block
        return Min(self.block, self.reduced - member * self.block)

    def partial(self, member: Any) -> Any:
        """Where a block's results lie."""
        return as_index(member * self.kept + (self.x if self.x in self.flat.sizes else 0))


def cut_rows(flat: Flat, x: Symbol, r: Symbol, block: int, spare: int) -> RowBlocks | None:
    """Rows in blocks of ``block`` elements. None: it takes more combinations, or a reduction cannot be combined."""
    kept, reduced = flat.sizes.get(x, 1), flat.sizes[r]
    members = (reduced + block - 1) // block
    reduces = list(_reduces(flat, r).values())
    if any(s.kind.startswith("arg") or type(s.value) is not str for s in reduces):
        return None
    member, place, again = (
        axis_symbol(spare, members), axis_symbol(spare + 1, block), axis_symbol(spare + 2, members)
    )  # fmt: skip
    mapping: dict[Any, Any] = {r: member * block + place}
    within = frozenset((member, place))  # what is the same in a block is no value of its row
    moved = [
        replace(s, axes=within)
        if type(s) is Reduce
        else replace(s, axis=place)
        if type(s) is Scan
        else substitute(s, mapping)
        for s in flat.statements
    ]
    sizes = ({x: kept} if x in flat.sizes else {}) | {member: members, place: block}
    cut = analyse(moved, list(sizes), sizes, within)
    values = {key: i.stmt for key, i in cut.info.items()}
    scans = [s.name for s in flat.statements if type(s) is Scan]
    known = {s.name: Fed(s.kind, s.dtype, s.value) for s in reduces if s.name not in scans}
    found = {name: find_beside(values, known, fed, reduced) for name, fed in known.items()}
    beside = {name: b for name, b in found.items() if b is not None}
    stages: dict[Any, int] = {}
    for key, info in cut.info.items():
        stages[key] = max([stages[n] for n in info.needs], default=0)
        if type(info.stmt) is Reduce:
            stages[key] = stages[beside[key][1]] if key in beside else stages[key] + 1
        elif type(info.stmt) is Scan:
            stages[key] += 1
    if max(stages.values()) > COMBINATIONS:
        return None
    params = {s.name: f"p{k}" for k, s in enumerate(reduces)}
    starts = {name: f"s{k}" for k, name in enumerate(scans)}
    return RowBlocks(cut, x, member, place, again, kept, members, reduced, block, stages, beside, params, starts)  # type: ignore[arg-type]


def _reduces(flat: Flat, r: Symbol) -> dict[str, Reduce]:
    found: dict[str, Reduce] = {}
    for stmt in flat.statements:
        if type(stmt) is Reduce:
            found[stmt.name] = stmt
        elif type(stmt) is Scan:
            found[stmt.name] = Reduce(stmt.name, stmt.dtype, stmt.kind, stmt.value, frozenset((r,)))
    return found


def of_row(flat: Flat, info: Info) -> bool:
    """Is it a value of the row (or a store of one), and no reduction?"""
    return type(info.stmt) is not Reduce and not (info.axes & flat.inner)


# -- what a program does with its block ------------------------------------------------------------------


def block_loops(rows: RowBlocks, stage: int) -> list[Stmt]:
    """The passes over a block: reductions that the next meeting needs, and stores that have all they need."""
    flat = rows.flat
    plain = [s for s in rows.reduces.values() if rows.stages[s.name] == stage + 1 and s.name not in rows.beside]
    late = [s for s in rows.reduces.values() if rows.stages[s.name] == stage + 1 and s.name in rows.beside]
    stores = [
        i for i in flat.info.values()
        if type(i.stmt) is Store and i.axes & flat.inner and rows.stages[i.key] == stage
    ]  # fmt: skip
    result: list[Stmt] = []
    if plain or stores:
        ends: list[Stmt] = [feed(s, f"{s.name}_p") for s in plain]
        result.extend(_pass(rows, [i.key for i in stores] + [s.value for s in plain], plain, ends))
    if late:
        result.extend(_own_means(rows, late))
        ends = [e for s in late for e in _term(rows, s)]
        result.extend(_pass(rows, [rows.reduces[rows.beside[s.name][1]].value for s in late], late, ends))
    result.extend(Store(rows.params[s.name], rows.partial(rows.member), f"{s.name}_p") for s in (*plain, *late))
    return result


def _pass(rows: RowBlocks, roots: list[Any], reduces: list[Reduce], ends: list[Stmt]) -> list[Stmt]:
    """A loop over the block, behind loads of what its scans start from."""
    flat = rows.flat
    keys = closure(flat, roots, lambda i: type(i.stmt) is not Store and not (i.axes & flat.inner))
    sums = [Accumulator(f"{s.name}_p", s.dtype, s.kind) for s in reduces]
    starts: list[Stmt] = []
    body: list[Stmt] = []
    for info in in_order(flat, keys):
        if type(info.stmt) is Scan:
            start = f"{info.stmt.name}_start"
            running, feeds = scan_of(info.stmt, start)
            starts.append(Load(start, info.stmt.dtype, rows.starts[info.stmt.name], rows.partial(rows.member)))
            sums.append(running)
            body.append(feeds)
        else:
            body.append(info.stmt)
    loop = Loop(rows.place, as_index(rows.length(rows.member)), "simd", (*body, *ends), tuple(sums))
    return [*starts, loop]


def _own_means(rows: RowBlocks, late: list[Reduce]) -> list[Stmt]:
    """The mean of a block, for the squares of distances from it."""
    result: dict[str, Stmt] = {}
    for stmt in late:
        kind, of = rows.beside[stmt.name]
        if kind == "square":
            count = _count(rows, stmt, f"{of}_pn", rows.member, result)
            result[f"{of}_pm"] = Let(f"{of}_pm", stmt.dtype, "div", (f"{of}_p", count))
    return list(result.values())


def _count(rows: RowBlocks, stmt: Reduce, name: str, member: Symbol, defined: dict[str, Stmt]) -> Any:
    """The length of a block as an operand."""
    length = rows.length(member)
    if type(length) is int:
        return float(length)
    defined[name] = IndexValue(name, stmt.dtype, length)
    return name


def _term(rows: RowBlocks, stmt: Reduce) -> list[Stmt]:
    """What a block feeds to a reduction beside another: from its own maximum, or mean."""
    kind, of = rows.beside[stmt.name]
    value, name = rows.reduces[of].value, stmt.name
    far = Let(f"{name}_pd", stmt.dtype, "sub", (value, f"{of}_p" if kind == "exp" else f"{of}_pm"))
    args = (far.name,) if kind == "exp" else (far.name, far.name)
    term = Let(f"{name}_pt", stmt.dtype, "exp" if kind == "exp" else "mul", args)
    return [far, term, Accumulate(f"{name}_p", term.name)]


# -- what all blocks come to -----------------------------------------------------------------------------


def combine_blocks(rows: RowBlocks, stage: int) -> list[Stmt]:
    """Loops over the members' results, in order: scans of them, each reduction of this stage, then those beside."""
    reduces = [s for s in rows.reduces.values() if rows.stages[s.name] == stage]
    known = [s for s in reduces if s.name not in rows.starts]
    scans = _scan_members(rows, [s for s in reduces if s.name in rows.starts])
    plain = [s for s in known if s.name not in rows.beside]
    late = [s for s in known if s.name in rows.beside]
    if not known:
        return scans
    body: list[Stmt] = []
    for stmt in plain:
        body += [_part(rows, stmt), Accumulate(stmt.name, f"{stmt.name}_q")]
    result: list[Stmt] = [*scans, _over_members(rows, plain, body)]
    if late:
        between: dict[str, Stmt] = {}
        inside: dict[str, Stmt] = {}
        ends = [e for s in late for e in _corrected(rows, s, between, inside)]
        result += [*between.values(), _over_members(rows, late, [*inside.values(), *ends])]
    return result


def _scan_members(rows: RowBlocks, scans: list[Reduce]) -> list[Stmt]:
    """What the scans have before each block."""
    before: list[Stmt] = []
    body: list[Stmt] = []
    sums: list[Accumulator] = []
    for stmt in scans:
        name, buffer = stmt.name, rows.starts[stmt.name]
        before.append(Let(f"{name}_0", stmt.dtype, "constant", (before_all(stmt.kind, stmt.dtype),)))
        before.append(Store(buffer, rows.partial(0), f"{name}_0"))
        sums.append(Accumulator(f"{name}_all", stmt.dtype, stmt.kind))
        body.append(_part(rows, stmt))
        body.append(Accumulate(f"{name}_all", f"{name}_q", running=f"{name}_before"))
        body.append(Store(buffer, rows.partial(rows.again + 1), f"{name}_before"))
    return [*before, Loop(rows.again, as_index(rows.members), "simd", tuple(body), tuple(sums))] if scans else []


def _over_members(rows: RowBlocks, reduces: list[Reduce], body: list[Stmt]) -> Loop:
    sums = tuple([Accumulator(s.name, s.dtype, s.kind) for s in reduces])
    return Loop(rows.again, as_index(rows.members), "simd", tuple(body), sums)


def _part(rows: RowBlocks, stmt: Reduce) -> Load:
    return Load(f"{stmt.name}_q", stmt.dtype, rows.params[stmt.name], rows.partial(rows.again))


def _corrected(rows: RowBlocks, stmt: Reduce, between: dict[str, Stmt], inside: dict[str, Stmt]) -> list[Stmt]:
    """A member's part of a reduction beside another, as if made with what the whole row has of that other."""
    kind, of = rows.beside[stmt.name]
    name, dtype = stmt.name, stmt.dtype
    inside[f"{of}_q"] = _part(rows, rows.reduces[of])
    inside[f"{name}_q"] = _part(rows, stmt)

    def let(suffix: str, op: str, *args: Any) -> Let:
        return Let(f"{name}_q{suffix}", dtype, op, args)

    if kind == "square":
        count = _count(rows, stmt, f"{of}_qn", rows.again, inside)
        between[f"{of}_qm"] = Let(f"{of}_qm", dtype, "div", (of, float(rows.reduced)))
        mean, far = let("m", "div", f"{of}_q", count), let("d", "sub", f"{name}_qm", f"{of}_qm")
        square, weight = let("s", "mul", far.name, far.name), let("w", "mul", f"{name}_qs", count)
        return [mean, far, square, weight, let("t", "add", f"{name}_q", weight.name), Accumulate(name, f"{name}_qt")]
    # A block of -inf has no sum of its own (NaN): nothing, unless the whole row is -inf.
    nothing = float("-inf")
    between[f"{of}_qe"] = Let(f"{of}_qe", bool_, "eq", (of, nothing))
    between[f"{of}_qz"] = Let(f"{of}_qz", dtype, "where", (f"{of}_qe", float("nan"), 0.0))
    far, scale = let("d", "sub", f"{of}_q", of), let("s", "exp", f"{name}_qd")
    grown, empty = let("g", "mul", f"{name}_q", scale.name), Let(f"{name}_qe", bool_, "eq", (f"{of}_q", nothing))
    chosen = let("t", "where", empty.name, f"{of}_qz", grown.name)
    return [far, scale, grown, empty, chosen, Accumulate(name, chosen.name)]
