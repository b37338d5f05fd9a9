"""Loops over the reduced axis ``r`` and their accumulators, as statements of a phase's writer.

A tile that holds the row needs no loop: each accumulator is one reduction of the tile. Otherwise an accumulator is a
tile that lives through a ``for``, and is reduced after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx import bool_, float32, int64
from lamina_fx.symbolic import Min

from ...ir.kernel import Accumulate, Accumulator, BindIndex, Load, Loop, walk
from .literals import language_type, typed_literal
from .online import Beside
from .online_text import write_combined, write_start, write_step
from .reductions import LAST_INDEX, combine_text, reduce_text, start_text
from .running import start_running, write_running
from .tiles import constant

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["write_accumulate", "write_axis", "write_loop"]

_FULL = frozenset("xr")


def write_loop(writer: PhaseWriter, loop: Loop, beside: tuple[Beside, ...] = ()) -> None:
    """A pass over ``r``; ``beside``: reductions that need the loop's own."""
    for accumulator in loop.accumulators:
        writer.accumulators[accumulator.name] = accumulator
    if writer.tile.whole:
        _write_row(writer, loop)
        return
    running = {s.accumulator for s in loop.body if type(s) is Accumulate and s.running is not None}
    for accumulator in (*loop.accumulators, *[b.accumulator for b in beside]):
        (start_running if accumulator.name in running else _start)(writer, accumulator)
    for item in beside:
        write_start(writer, item)
    bound = constant(loop.extent)
    if bound is None and not loop.extent.free_symbols <= set(writer.names):  # of a tile, or of a block
        bound = loop.extent.range()[1]
    end = writer.index(loop.extent) if bound is None else str(bound)
    back = _turns_back(writer, loop, beside, bool(running))
    ahead = f", num_stages={writer.tile.stages}" if writer.tile.stages > 1 else ""
    writer.add(f"for {'forth' if back else 'base'} in {'tl.' if ahead else ''}range(0, {end}, RBLOCK{ahead}):")
    writer.depth += 1
    if back:
        writer.add(f"base = ({end} - 1) // RBLOCK * RBLOCK - forth")
    write_axis(writer, loop, "base + ")
    for stmt in loop.body:
        writer.statement(stmt, beside)
    writer.depth -= 1
    for item in beside:
        write_combined(writer, item, loop)
    for accumulator in loop.accumulators:
        if accumulator.name not in running:
            _finish(writer, accumulator, f"{accumulator.name}_sum", f"{accumulator.name}_at")


def _turns_back(writer: PhaseWriter, loop: Loop, beside: tuple[Beside, ...], scans: bool) -> bool:
    """Does this pass walk from the end? It does if it reads what a pass just read forth, whose end is in the cache; or
    if a scan, which cannot turn, reads the same next."""
    read, again = _read(loop), bool(_read(loop) & writer.walked)
    if scans or beside:
        back = not scans and not again and all(b.kind == "exp" for b in beside) and _is_scanned_next(writer, read)
    else:
        back = (again and not writer.went_back) or (not again and _is_scanned_next(writer, read))
    writer.turned = again and back != writer.went_back
    writer.walked, writer.went_back = frozenset() if again else read, back
    return back


def _read(loop: Loop) -> frozenset[str]:
    return frozenset([s.buffer for s in walk(loop.body) if type(s) is Load])


def _is_scanned_next(writer: PhaseWriter, read: frozenset[str]) -> bool:
    loop = next((s for s in writer.following if type(s) is Loop), None)
    scans = loop is not None and any(type(s) is Accumulate and s.running is not None for s in loop.body)
    return scans and bool(read & _read(loop))  # type: ignore[arg-type]


def _write_row(writer: PhaseWriter, loop: Loop) -> None:
    """A pass over a row that the tile holds. Its sums are made together, with as few barriers as for one."""
    write_axis(writer, loop, "")
    feeds = [s for s in loop.body if type(s) is Accumulate and s.running is None]
    sums = [s for s in feeds if _is_sum(writer.accumulators[s.accumulator])]
    together = sums if len(sums) > 1 else []
    for stmt in loop.body:
        if _defined(stmt) not in writer.shapes and stmt not in together:  # an earlier pass may have computed it
            writer.statement(stmt)
    for start in range(0, len(together), 4):
        _add_together(writer, together[start : start + 4])


def _is_sum(accumulator: Accumulator) -> bool:
    return accumulator.kind == "sum" and accumulator.dtype is float32


def _add_together(writer: PhaseWriter, sums: list[Accumulate]) -> None:
    if len(sums) == 1:
        writer.statement(sums[0])
        return
    mask, _ = writer.mask(frozenset("r"))
    tiles: list[str] = []
    for stmt in sums:
        value = _spread(writer, writer.operand(stmt.value, float32, typed=True), stmt.value)
        tiles.append(f"tl.where({mask}, {value}, 0.0)" if mask else value)
    names = [stmt.accumulator for stmt in sums]
    totals = ", ".join([f"{name}_total" for name in names])
    writer.add(f"{totals} = tl.reduce(({', '.join(tiles)}), 1, lm_sum{len(sums)})")
    for name in names:
        writer.define(name, f"{name}_total[:, None]", float32, frozenset("x"))


def _defined(stmt: Any) -> str | None:
    """The name that a statement gives a value, if it does."""
    if type(stmt) is Accumulate:
        return stmt.running
    return stmt.symbol.name if type(stmt) is BindIndex else getattr(stmt, "name", None)


def write_axis(writer: PhaseWriter, loop: Loop, base: str) -> None:
    """The index along ``r``, and its mask."""
    name = loop.axis.name
    if writer.tile.whole and name in writer.shapes:
        return
    wide = ".to(tl.int64)" if writer.wide else ""
    writer.add(f"{name} = {base}tl.arange(0, RBLOCK)[None, :]{wide}")
    writer.shapes[name] = frozenset("r")
    writer.masks.pop("r", None)
    bounds = loop.extent.children() if type(loop.extent) is Min else (loop.extent,)
    bounds = [b for b in bounds if constant(b) is None or constant(b) % writer.tile.r]  # type: ignore[operator]
    if bounds:  # apart: from a minimum the compiler would not see for how many neighbours the mask is the same
        tests = [f"{name} < {writer.index(b)}" for b in bounds]
        writer.add(f"inside_r = {tests[0] if len(tests) == 1 else ' & '.join(f'({t})' for t in tests)}")
        writer.masks["r"] = ("inside_r", frozenset("r") | writer.shape_of(loop.extent))


def _start(writer: PhaseWriter, accumulator: Accumulator) -> None:
    dtype = "tl.int8" if _compares_bool(accumulator) else language_type(accumulator.dtype)
    writer.add(f"{accumulator.name}_sum = tl.full([XBLOCK, RBLOCK], {start_text(accumulator)}, {dtype})")
    if accumulator.kind == "logaddexp":
        writer.add(f"{accumulator.name}_grown = tl.zeros_like({accumulator.name}_sum)")
    if accumulator.kind.startswith("arg"):
        writer.add(f"{accumulator.name}_at = tl.full([XBLOCK, RBLOCK], {LAST_INDEX}, tl.int64)")


def _compares_bool(accumulator: Accumulator) -> bool:
    return accumulator.kind.startswith("arg") and accumulator.dtype is bool_


def _finish(writer: PhaseWriter, accumulator: Accumulator, value: str, at: str) -> None:
    """Reduce a tile along ``r``; the result is a value of each row."""
    name = accumulator.name
    if accumulator.kind.startswith("arg"):
        writer.add(f"{name}_best, {name} = tl.reduce(({value}, {at}), 1, lm_{accumulator.kind})")
        writer.define(name, f"{name}[:, None]", int64, frozenset("x"))
    elif accumulator.kind == "logaddexp":
        ones = f"tl.full([XBLOCK, RBLOCK], 1.0, {language_type(accumulator.dtype)})"
        grown = ones if writer.tile.whole else f"{name}_grown"
        writer.add(f"{name}_most, {name}_times = tl.reduce(({value}, {grown}), 1, lm_log_pairs)")
        writer.define(name, f"({name}_most + tl.log({name}_times))[:, None]", accumulator.dtype, frozenset("x"))
    else:
        writer.define(name, reduce_text(accumulator, value), accumulator.dtype, frozenset("x"))


def write_accumulate(writer: PhaseWriter, stmt: Accumulate, beside: tuple[Beside, ...] = ()) -> None:
    """Feed an accumulator with a tile."""
    accumulator = writer.accumulators[stmt.accumulator]
    if stmt.running is not None:
        write_running(writer, stmt, accumulator)
        return
    value = writer.operand(stmt.value, accumulator.dtype, typed=True)
    if _compares_bool(accumulator):
        value = f"{value}.to(tl.int8)"
    value, at = _spread(writer, value, stmt.value), ""
    if accumulator.kind.startswith("arg"):
        at = _spread(writer, writer.operand(stmt.index, int64, typed=True), stmt.index)
    mask, _ = writer.mask(frozenset("r"))
    found = next((b for b in beside if b.of == stmt.accumulator), None)
    if writer.tile.whole:
        _reduce_row(writer, accumulator, value, at, mask)
    elif found is not None:
        write_step(writer, found, value, mask)
    else:
        _carry(writer, accumulator, value, at, mask)


def _spread(writer: PhaseWriter, text: str, operand: Any) -> str:
    """An operand over the whole tile."""
    return text if writer.shape_of(operand) == _FULL else f"tl.broadcast_to({text}, [XBLOCK, RBLOCK])"


def _reduce_row(writer: PhaseWriter, accumulator: Accumulator, value: str, at: str, mask: str) -> None:
    name = accumulator.name
    if mask:
        writer.add(f"{name}_tile = tl.where({mask}, {value}, {start_text(accumulator)})")
        value = f"{name}_tile"
    if mask and at:
        writer.add(f"{name}_at = tl.where({mask}, {at}, {LAST_INDEX})")
        at = f"{name}_at"
    _finish(writer, accumulator, value, at)


def _carry(writer: PhaseWriter, accumulator: Accumulator, value: str, at: str, mask: str) -> None:
    """One step of an accumulator that lives through a loop."""
    name, total = accumulator.name, f"{accumulator.name}_sum"
    if accumulator.kind.startswith("arg"):
        writer.add(f"{name}_new, {name}_new_at = lm_{accumulator.kind}({total}, {name}_at, {value}, {at})")
        writer.add(f"{total} = {_chosen(mask, f'{name}_new', total)}")
        writer.add(f"{name}_at = {_chosen(mask, f'{name}_new_at', f'{name}_at')}")
    elif accumulator.kind == "logaddexp":
        one = typed_literal(1, accumulator.dtype)
        writer.add(f"{name}_new, {name}_newer = lm_log_pairs({total}, {name}_grown, {value}, {one})")
        writer.add(f"{total} = {_chosen(mask, f'{name}_new', total)}")
        writer.add(f"{name}_grown = {_chosen(mask, f'{name}_newer', f'{name}_grown')}")
    else:
        new = combine_text(accumulator.kind, accumulator.dtype, total, value)
        writer.add(f"{total} = {_chosen(mask, new, total)}")


def _chosen(mask: str, new: str, old: str) -> str:
    return f"tl.where({mask}, {new}, {old})" if mask else new
