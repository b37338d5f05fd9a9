"""Scans along ``r``: accumulators that say what they have so far, as statements of a phase's writer.

In a tile that holds the row, or the block, a scan is one ``tl.associative_scan``. In a loop a tile's scan is combined
with a carry, ``[XBLOCK, 1]``, which takes what the tile comes to, in order: by a reduction, which waits for no scan.
Elements behind the row's end are behind all others: they reach nothing that is stored.

Sums of exponentials are carried as pairs (``lm_log_pairs``): one exponential for a combination, and a logarithm at the
end. Booleans and integers of less than four bytes are scanned as int32, and cut off afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina_fx import DType, int32

from ...ir.kernel import Accumulate, Accumulator
from ...schedule.blocks import before_all
from .literals import language_type, literal, typed_literal
from .reductions import combine_text

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["start_running", "write_running"]

_FULL = frozenset("xr")


def start_running(writer: PhaseWriter, accumulator: Accumulator) -> None:
    """The carry before a loop."""
    carry, own = f"{accumulator.name}_carry", accumulator.dtype
    dtype = _held(own)
    if accumulator.init is None:
        start = before_all(accumulator.kind, own)
        text = literal(int(start) if own.kind == "bool" else start, dtype)
        writer.add(f"{carry} = tl.full([XBLOCK, 1], {text}, {language_type(dtype)})")
    else:
        first = _widened(writer.operand(accumulator.init, own, typed=True), own)
        writer.add(f"{carry} = tl.broadcast_to({first}, [XBLOCK, 1])")
    if accumulator.kind == "logaddexp":
        grown = 0.0 if accumulator.init is None else 1.0
        writer.add(f"{accumulator.name}_grown = tl.full([XBLOCK, 1], {grown}, {language_type(dtype)})")


def write_running(writer: PhaseWriter, stmt: Accumulate, accumulator: Accumulator) -> None:
    """The elements of a tile with all that was fed before them."""
    assert stmt.running is not None
    dtype, shape = accumulator.dtype, writer.shape_of(stmt.value)
    want = (shape | {"r"}) if writer.tile.whole else _FULL
    value = _widened(writer.operand(stmt.value, dtype, typed=True), dtype)
    if shape != want:
        value = f"tl.broadcast_to({value}, {writer.tile_text(want)})"
    if accumulator.kind == "logaddexp":
        _write_pairs(writer, stmt.running, accumulator, value, want)
        return
    name, held = accumulator.name, _held(dtype)
    scan, carry = f"{name}_scan", f"{name}_carry"
    if not writer.tile.whole:
        writer.add(f"{name}_tile = {value}")
        value = f"{name}_tile"
    writer.add(f"{scan} = {_scan_text(accumulator, value)}")
    if not writer.tile.whole:
        text = combine_text(accumulator.kind, held, carry, scan)
    elif accumulator.init is not None:
        first = _widened(writer.operand(accumulator.init, dtype, typed=True), dtype)
        want |= writer.shape_of(accumulator.init)
        text = combine_text(accumulator.kind, held, first, scan)
    else:
        text = scan
    if held is not dtype:
        writer.add(f"{scan}ned = {text}")
        text = f"{scan}ned != 0" if dtype.kind == "bool" else f"{scan}ned.to({language_type(dtype)})"
    writer.define(stmt.running, text, dtype, want)
    if not writer.tile.whole:
        writer.add(f"{carry} = {combine_text(accumulator.kind, held, carry, _total_text(accumulator, value))}")


def _write_pairs(writer: PhaseWriter, result: str, accumulator: Accumulator, value: str, shape: frozenset[str]) -> None:
    name, dtype = accumulator.name, accumulator.dtype
    most, times = f"{name}_most", f"{name}_times"
    ones = f"tl.full({writer.tile_text(shape)}, 1.0, {language_type(dtype)})"
    if not writer.tile.whole:
        writer.add(f"{name}_tile = {value}")
        value = f"{name}_tile"
    writer.add(f"{most}, {times} = tl.associative_scan(({value}, {ones}), 1, lm_log_pairs)")
    if not writer.tile.whole:
        writer.add(f"{name}_new, {name}_newer = lm_log_pairs({name}_carry, {name}_grown, {most}, {times})")
        writer.define(result, f"{name}_new + tl.log({name}_newer)", dtype, shape)
        writer.add(f"{name}_most, {name}_times = tl.reduce(({value}, {ones}), 1, lm_log_pairs)")
        total = f"{name}_most[:, None], {name}_times[:, None]"
        writer.add(f"{name}_carry, {name}_grown = lm_log_pairs({name}_carry, {name}_grown, {total})")
        return
    if accumulator.init is not None:
        first, one = writer.operand(accumulator.init, dtype, typed=True), typed_literal(1, dtype)
        shape |= writer.shape_of(accumulator.init)
        writer.add(f"{most}, {times} = lm_log_pairs({first}, {one}, {most}, {times})")
    writer.define(result, f"{most} + tl.log({times})", dtype, shape)


def _scan_text(accumulator: Accumulator, value: str) -> str:
    if accumulator.kind == "sum":
        return f"tl.cumsum({value}, 1)"
    if accumulator.kind == "prod":
        return f"tl.cumprod({value}, 1)"
    return f"tl.associative_scan({value}, 1, lm_{accumulator.kind}imum)"


def _total_text(accumulator: Accumulator, tile: str) -> str:
    if accumulator.kind == "sum":
        return f"tl.sum({tile}, 1)[:, None]"
    return (
        f"tl.reduce({tile}, 1, {'lm_product' if accumulator.kind == 'prod' else f'lm_{accumulator.kind}imum'})[:, None]"
    )


def _held(dtype: DType) -> DType:
    """The type in which elements are combined."""
    narrow = dtype.kind == "bool" or (dtype.kind == "int" and dtype.itemsize < 4)
    return int32 if narrow else dtype


def _widened(text: str, dtype: DType) -> str:
    return text if _held(dtype) is dtype else f"{text}.to(tl.int32)"
