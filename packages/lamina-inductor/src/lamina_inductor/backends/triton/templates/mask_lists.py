"""Which tiles of a mask matter: lists for attention, so that empty tiles cost nothing and full ones need no mask.

A first kernel says of each tile of the mask whether nothing, everything or a part of it takes part; a second one
writes, for every tile of queries (or of keys), the numbers of the tiles that are whole and of those that are mixed.
Worth it for a mask that several heads share.

Scratch memory, in int32: counts [matrices, own, 2], lists [matrices, own, 2, walked]; states [matrices, tiles_m,
tiles_n] behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina_fx import bool_, int32

from ....ir.program import Operand
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .attention_text import Scores, lead_lines
from .gemm import ceil_div
from .kernel_text import KernelText

__all__ = ["MaskLists", "mask_lists"]

SHARED = 4
"""Heads that share a matrix of the mask, from which on lists are made."""

MOST_TILES = 4096
"""Tiles in a row that one program lists."""

_LEAD = ("b", "h", "g")


@dataclass(frozen=True, slots=True)
class MaskLists:
    """Lists in scratch memory, of ``walked`` tiles for each of ``own`` tiles; ``end``: the scratch behind them."""

    mask: Operand
    own: Any
    walked: Any
    scratch: Scratch
    launches: tuple[TritonLaunch, ...]
    end: Any

    def declare(self, text: KernelText) -> None:
        """The pointer."""
        text.pointer("lists", int32, self.scratch)

    def find(self, text: KernelText, tile: str) -> None:
        """Lines that define ``whole_count``, ``mixed_count``, ``whole_at`` and ``mixed_at`` of a tile."""
        matrix = "0"
        for name, size in zip(_LEAD, _lead(self.mask), strict=True):
            if constant(size) != 1:
                matrix = name if matrix == "0" else f"({matrix} * {text.atom(size)} + {name})"
        counts, walked = _matrices(self.mask) * self.own * 2, text.atom(self.walked)
        text.add(
            f"listed = {matrix} * {text.atom(self.own)} + {tile}",
            "whole_count = tl.load(lists + listed * 2)",
            "mixed_count = tl.load(lists + listed * 2 + 1)",
            f"whole_at = lists + {text.atom(counts)} + listed * 2 * {walked}",
            f"mixed_at = whole_at + {walked}",
        )


def _lead(mask: Operand) -> tuple[Any, ...]:
    """Sizes of the mask's dimensions in front of its matrices; 1 where heads share them."""
    return tuple(
        [1 if constant(stride) == 0 else size for size, stride in zip(mask.shape[:3], mask.strides, strict=False)]
    )


def _matrices(mask: Operand) -> Any:
    count: Any = 1
    for size in _lead(mask):
        count = count * size
    return count


def mask_lists(scores: Scores, over: str, offset: Any, wide: bool) -> MaskLists | None:
    """Lists for a kernel that walks tiles of keys (``over`` = "n") or queries ("m"); None: they are not worth it.

    ``offset``: where in the scratch memory, in bytes.
    """
    mask = scores.step.mask
    if mask is None or scores.step.causal:
        return None
    heads: Any = 1
    for size in scores.lead:
        heads = heads * size
    sizes = [constant(s) for s in (heads, _matrices(mask), scores.queries, scores.keys)]
    if None in sizes or sizes[0] < SHARED * sizes[1] or sizes[2] * sizes[3] < 4 * scores.block_m * scores.block_n:  # type: ignore[operator]
        return None
    tiles_m, tiles_n = ceil_div(scores.queries, scores.block_m), ceil_div(scores.keys, scores.block_n)
    own, walked = (tiles_m, tiles_n) if over == "n" else (tiles_n, tiles_m)
    if walked > MOST_TILES:
        return None
    matrices = sizes[1]
    lists = Scratch(matrices * own * (2 + 2 * walked) * 4, offset)  # type: ignore[operator]
    states_at = offset + (lists.bytes + 255) // 256 * 256
    states = Scratch(matrices * tiles_m * tiles_n * 4, states_at)  # type: ignore[operator]
    launches = (
        _states(scores, mask, states, (tiles_n, tiles_m, matrices), wide),
        _compact(lists, states, over, (tiles_m, tiles_n, matrices)),
    )
    return MaskLists(mask, own, walked, lists, launches, states_at + (states.bytes + 255) // 256 * 256)


def _states(scores: Scores, mask: Operand, states: Scratch, grid: tuple[Any, ...], wide: bool) -> TritonLaunch:
    """0: nothing of the tile takes part, 1: all of it, 2: a part, or what is added is not 0."""
    text = KernelText(wide)
    text.block(BLOCK_M=scores.block_m, BLOCK_N=scores.block_n)
    text.pointer("mask", mask.dtype, mask)
    text.pointer("states", int32, states)
    text.add(
        f"matrix = tl.program_id(2){'.to(tl.int64)' if wide else ''}",
        *lead_lines(text, _lead(mask), "matrix"),
        "m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)",
        "n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)",
        f"inside = (m[:, None] < {text.size(scores.queries)}) & (n[None, :] < {text.size(scores.keys)})",
    )
    place = f"mask{mask_offset(text, mask)}"
    text.add(f"x = tl.load({place}, inside, other=0)")
    if mask.dtype is bool_:
        text.add("some = inside & (x != 0)", "every = some | (m[:, None] >= " + f"{text.size(scores.queries)})")
    else:
        text.add(
            'some = inside & (x != float("-inf"))',
            f"every = (inside & (x == 0)) | (m[:, None] >= {text.size(scores.queries)})",
        )
    text.add(
        "any_of = tl.max(tl.max(some.to(tl.int32), 1), 0)",
        "all_of = tl.min(tl.min(every.to(tl.int32), 1), 0)",
        "state = tl.where(any_of == 0, 0, tl.where(all_of == 1, 1, 2))",
        "tile = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)",
        "tl.store(states + tile, state)",
    )
    kernel, buffers, sizes = text.finish(warps=4, origins=(("", "mask_tiles", ""),))
    return TritonLaunch(kernel, buffers, sizes, grid)


def mask_offset(text: KernelText, mask: Operand) -> str:
    """`` + `` the offsets of the elements ``m``, ``n`` of the matrix at ``b``, ``h``, ``g``."""
    found = ""
    for name, size, stride in zip(_LEAD, mask.shape, mask.strides, strict=False):
        if constant(size) != 1 and constant(stride) != 0:
            found += f" + {name} * {text.atom(stride)}"
    row, column = (0 if constant(n) == 1 else s for n, s in zip(mask.shape[-2:], mask.strides[-2:], strict=True))
    return f"{found} + (m[:, None] * {text.atom(row)} + n[None, :] * {text.atom(column)})"


def _compact(lists: Scratch, states: Scratch, over: str, sizes: tuple[Any, ...]) -> TritonLaunch:
    """One program lists the tiles for one tile of what is kept."""
    tiles_m, tiles_n, matrices = sizes
    own, walked = (tiles_m, tiles_n) if over == "n" else (tiles_n, tiles_m)
    text = KernelText()
    text.block(BLOCK=max(16, 1 << (walked - 1).bit_length()))
    text.pointer("lists", int32, lists)
    text.pointer("states", int32, states)
    steps = (tiles_n, 1) if over == "n" else (1, tiles_n)
    text.add(
        f"listed = tl.program_id(1) * {own} + tl.program_id(0)",
        "i = tl.arange(0, BLOCK)",
        f"at = tl.program_id(1) * {tiles_m * tiles_n} + tl.program_id(0) * {steps[0]} + i * {steps[1]}",
        f"state = tl.load(states + at, i < {walked}, other=0)",
    )
    for number, name in enumerate(("whole", "mixed"), 1):
        text.add(
            f"{name} = (state == {number}).to(tl.int32)",
            f"tl.store(lists + listed * 2 + {number - 1}, tl.sum({name}, 0))",
            f"{name}_at = lists + {matrices * own * 2} + (listed * 2 + {number - 1}) * {walked}",
            f"tl.store({name}_at + tl.cumsum({name}, 0) - 1, i, {name} == 1)",
        )
    kernel, buffers, values = text.finish(warps=4, origins=(("", "mask_lists", ""),))
    return TritonLaunch(kernel, buffers, values, (own, matrices))
