"""The phases of ``schedule.staged_nest`` as one launch, when the elements do not fit the second cache: a wave of work
goes over slabs of the kept axis, and each phase follows the one before it some slabs behind, where what that one read
is still in the cache. So memory is read once, though no program holds a row.

Work is cut into items: one block of a tile (or one tile) of a phase. A program takes a ticket, which says its item:

    ticket   0 ..  N-1: phase 0 of slab 0
             N .. 2N-1: phase 0 of slab 1, phase 1 of slab 0
            2N .. 3N-1: phase 0 of slab 2, phase 1 of slab 1, phase 2 of slab 0      (here with one slab between phases)

Before it begins, an item waits until all items of the phase before it on its slab are done, which it counts. These have
smaller tickets, that is, were begun before: whatever runs beside it on the device, the item with the smallest ticket
never waits, so no number of programs, launches or multiprocessors can stop all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ir.kernel import Kernel, Load, Loop, walk
from ...schedule.waves import makes_wave
from .block_printer import block_loop
from .kernel_printer import PrintedPhase, print_phase
from .tiles import Tile, constant, wave_tile

__all__ = ["COUNTERS", "Wave", "plan_wave", "print_wave"]

COUNTERS = "counters"
"""Name of the parameter that points to the ticket, and to the counters of finished items."""

STRIDE = 8
"""Counters in one sector of the cache: only one of them is used."""

AHEAD = 1056
"""Tickets, at least, between a phase and the next one on a slab: programs that are under way at once."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Phases over ``kept`` iterations, with tiles; ``tiles`` of a slab and ``blocks`` of a tile, for each phase;
    slabs."""

    phases: tuple[Loop, ...]
    sides: tuple[Tile, ...]
    tiles: tuple[int, ...]
    blocks: tuple[int, ...]
    slabs: int
    kept: int

    @property
    def items(self) -> tuple[int, ...]:
        """Of a slab, for each phase."""
        return tuple([t * b for t, b in zip(self.tiles, self.blocks, strict=True)])

    @property
    def behind(self) -> int:
        """Slabs between a phase and the next one."""
        return -(-AHEAD // sum(self.items))

    @property
    def programs(self) -> int:
        """Of the launch."""
        return sum(self.items) * (self.slabs + self.behind * (len(self.phases) - 1))

    @property
    def counters(self) -> int:
        """Elements of the memory for counters."""
        return STRIDE * (1 + self.slabs * (len(self.phases) - 1))


def plan_wave(kernel: Kernel, extents: Sequence[int | None]) -> Wave | None:
    """The wave over the phases of a kernel, of which ``extents`` are the iterations; None: launches apart are as good,
    or the kernel is no such thing."""
    phases = kernel.body
    loops = [block_loop(p) for p in phases]
    if len(phases) < 3 or loops[0] is None or loops[-1] is None:
        return None
    blocks = [1 if b is None else constant(b.extent) for b in loops]
    kept = extents[0]
    if kept is None or None in blocks or any(e != kept for e in extents):
        return None
    slab, sides = wave_tile(phases, kept)
    if not makes_wave(kept, sides[0].x > 1, _read(loops[0], kept * (blocks[0] or 0))):
        return None
    tiles = tuple([slab // side.x for side in sides])
    return Wave(phases, sides, tiles, tuple([b or 0 for b in blocks]), -(-kept // slab), kept)


def _read(blocks: Loop, programs: int) -> int:
    """Bytes of elements that a phase reads."""
    sweep = next(s for s in blocks.body if type(s) is Loop)
    loads = {(s.buffer, s.index): s.dtype.itemsize for s in walk(blocks.body) if type(s) is Load}
    length: Any = constant(sweep.extent) or constant(sweep.extent.range()[1])
    return programs * length * sum(loads.values())


def print_wave(kernel: Kernel, wave: Wave, name: str, wide: bool) -> PrintedPhase:
    """One function for each phase, and the one that is launched."""
    printed = [
        print_phase(kernel, phase, f"{name}_{number}", side, wide, wave.kept % side.x == 0, called=True)
        for number, (phase, side) in enumerate(zip(wave.phases, wave.sides, strict=True))
    ]
    buffers = tuple([p.name for p in kernel.params if any(p.name in f.buffers for f in printed)])
    sizes = tuple(dict.fromkeys(n for f in printed for n in f.sizes))
    checks = any(f.checks for f in printed)
    parameters = ", ".join([*buffers, COUNTERS, *sizes, *(["error"] if checks else [])])
    lines = [f"    {line}" for line in _dispatch(wave, printed, wide)]
    main = "\n".join(["@triton.jit", f"def {name}({parameters}):", *lines]) + "\n"
    return PrintedPhase(name, "\n\n".join([*[f.source for f in printed], main]), buffers, sizes, checks)


def _dispatch(wave: Wave, printed: list[PrintedPhase], wide: bool) -> list[str]:
    """From a ticket to an item: phases of single tiles first, then those of blocks in turn."""
    apart = [k for k, phase in enumerate(wave.phases) if block_loop(phase) is None]
    turns = [k for k, phase in enumerate(wave.phases) if block_loop(phase) is not None]
    lines = [
        f'ticket = tl.atomic_add({COUNTERS}, 1, sem="relaxed"){".to(tl.int64)" if wide else ""}',
        f"step, item = ticket // {sum(wave.items)}, ticket % {sum(wave.items)}",
    ]
    start = 0
    for k in apart:
        lines.append(f"{'el' if start else ''}if item < {start + wave.items[k]}:")
        lines += [f"    {line}" for line in _item(wave, printed[k], k, f"item - {start}" if start else "item")]
        start += wave.items[k]
    lines.append("else:")
    lines.append(f"    turn, item = (item - {start}) % {len(turns)}, (item - {start}) // {len(turns)}")
    for number, k in enumerate(turns):
        lines.append(f"    {'el' if number else ''}if turn == {number}:")
        lines += [f"        {line}" for line in _item(wave, printed[k], k, "item")]
    return lines


def _item(wave: Wave, printed: PrintedPhase, k: int, item: str) -> list[str]:
    """Phase ``k`` of a slab: wait, do, count."""
    slab, tiles, side = f"(step - {wave.behind * k})" if k else "step", wave.tiles[k], wave.sides[k]
    blocks = block_loop(wave.phases[k]) is not None
    tile = slab if tiles == 1 else f"{slab} * {tiles} + {f'({item}) % {tiles}' if wave.blocks[k] > 1 else item}"
    places = [tile, *([item if tiles == 1 else f"({item}) // {tiles}"] if blocks else []), str(side.x), str(side.r)]
    arguments = ", ".join([*printed.buffers, *printed.sizes, *(["error"] if printed.checks else []), *places])
    inside = f"(step >= {wave.behind * k}) & (step < {wave.behind * k + wave.slabs})" if k else f"step < {wave.slabs}"
    counter = f"{COUNTERS} + {STRIDE} * ({slab} * {len(wave.phases) - 1} + "
    lines = [f"if {inside}:"]
    if k:
        lines.append(f"    lm_await({counter}{k}), {wave.items[k - 1]})")
    if wave.kept % (tiles * side.x):  # the last slab is not full
        lines.append(f"    if {tile} < {-(-wave.kept // side.x)}:")
        lines.append(f"        {printed.name}({arguments})")
    else:
        lines.append(f"    {printed.name}({arguments})")
    if k < len(wave.phases) - 1:
        lines.append(f"    lm_done({counter}{k + 1}))")
    return lines
