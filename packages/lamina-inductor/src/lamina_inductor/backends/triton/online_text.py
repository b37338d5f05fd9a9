"""One step of the reductions of ``online``, and their combination over lanes, as Triton text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.kernel import Loop
from .online import Beside
from .tiles import constant

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["write_combined", "write_start", "write_step"]


def write_start(writer: PhaseWriter, item: Beside) -> None:
    """What a lane has before it has seen anything."""
    if item.kind == "square":
        writer.add(f"{item.of}_mean = tl.full([XBLOCK, RBLOCK], 0.0, {_type(item)})")


def write_step(writer: PhaseWriter, item: Beside, value: str, mask: str) -> None:
    """Take a tile into the maximum (or sum) and into what is beside it."""
    own, total = f"{item.of}_sum", f"{item.accumulator.name}_sum"
    if item.kind == "exp":
        if mask:
            writer.add(f'{item.of}_tile = tl.where({mask}, {value}, float("-inf"))')
            value = f"{item.of}_tile"
        # One exponential: the lane's maximum or the new value is the larger of the two. A lane that has seen -inf only
        # counts something, which its correction makes nothing of.
        writer.add(f"{item.of}_new = lm_maximum({own}, {value})")
        writer.add(f"{item.of}_less = tl.exp(tl.minimum({own}, {value}) - {item.of}_new)")
        writer.add(f'{item.of}_less = tl.where({item.of}_new == float("-inf"), 0.0, {item.of}_less)')
        grown, same = f"{total} * {item.of}_less + 1.0", f"{total} + {item.of}_less"
        writer.add(f"{total} = tl.where({value} > {own}, {grown}, {same})")
        writer.add(f"{own} = {item.of}_new")
        return
    if mask:
        writer.add(f"{item.of}_in = {mask}")
    writer.add(f"{item.of}_far = {value} - {item.of}_mean")
    new = f"{own} + {value}"
    writer.add(f"{own} = tl.where({item.of}_in, {new}, {own})" if mask else f"{own} = {new}")
    writer.add(f"{item.of}_mean = {own} * ({_one(item)} / (base // RBLOCK + 1))")
    term = f"{total} + {item.of}_far * ({value} - {item.of}_mean)"
    writer.add(f"{total} = tl.where({item.of}_in, {term}, {total})" if mask else f"{total} = {term}")


def _one(item: Beside) -> str:
    return "tl.full([], 1.0, tl.float64)" if item.accumulator.dtype.itemsize == 8 else "1.0"


def _type(item: Beside) -> str:
    return "tl.float64" if item.accumulator.dtype.itemsize == 8 else "tl.float32"


def write_combined(writer: PhaseWriter, item: Beside, loop: Loop) -> None:
    """Correct the lanes for the row's maximum (or mean), and add them up. What they had of the other stays as it is."""
    name, own, total = item.accumulator.name, f"{item.of}_sum", f"{item.accumulator.name}_sum"
    if item.kind == "exp":
        writer.add(f"{name}_most = tl.reduce({own}, 1, lm_maximum)[:, None]")
        writer.add(f'{name}_at = tl.where({name}_most == float("-inf"), 0.0, {name}_most)')
        text = f"tl.sum({total} * tl.exp({own} - {name}_at), 1)[:, None]"
        text = f'tl.where({name}_most == float("-inf"), float("nan"), {text})'
    else:
        count = constant(loop.extent)
        assert count is not None  # or the loops were not joined
        rounds, rest = divmod(count, writer.tile.r)
        lane = "tl.arange(0, RBLOCK)[None, :]"
        seen = f"({rounds} + ({lane} < {rest}).to(tl.int32)).to({_type(item)})" if rest else f"{float(rounds)!r}"
        writer.add(f"{name}_seen = {seen}")
        writer.add(f"{name}_mean = tl.sum({own}, 1)[:, None] / {float(count)!r}")
        apart = f"{own} / {name}_seen"
        if rest and not rounds:
            apart = f"tl.where({name}_seen == 0, 0.0, {own} / {name}_seen)"
        writer.add(f"{name}_apart = {apart} - {name}_mean")
        text = f"tl.sum({total} + {name}_seen * {name}_apart * {name}_apart, 1)[:, None]"
    writer.define(name, text, item.accumulator.dtype, frozenset("x"))
