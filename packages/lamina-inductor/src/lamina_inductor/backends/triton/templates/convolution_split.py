"""Convolutions split along the sum: parts into scratch memory, then a kernel that adds them in order; its epilogue.

The gradient by a weight is a convolution with few positions, one for each tap of the filter, and a sum over all
positions of all images: without a split it would be the work of a few programs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx import float32

from ....ir.program import Convolution
from ....tune.candidates import GemmCandidate
from ..program import Scratch, TritonLaunch
from .convolution import Sizes, declare, only, origins_of, place_rows, write_result, write_sum
from .gemm import ceil_div
from .kernel_text import KernelText

__all__ = ["split_launches"]


def split_launches(
    step: Convolution, config: GemmCandidate, sizes: Sizes, wide: bool, offset: Any
) -> list[TritonLaunch]:
    """The two launches; scratch memory is free from ``offset`` on."""
    rows = sizes.images * sizes.positions
    parts = Scratch(rows * sizes.outputs * config.split * 4, offset)
    text = KernelText(wide)
    text.block(BLOCK_M=config.block_m, BLOCK_N=config.block_n, BLOCK_K=config.block_k, GROUP=config.group)
    declare(text, step)
    text.pointer("parts", float32, parts)
    place_rows(text, step, sizes)
    steps = sizes.taps * ceil_div(sizes.inputs, config.block_k)
    each = ceil_div(steps, config.split)
    text.add(f"begin = tl.program_id(1) * {each}", f"end = min(begin + {each}, {steps})")
    write_sum(text, step, config, sizes, "begin, end")
    number = f"(tl.program_id(1) * {text.atom(rows)} + m[:, None]) * {sizes.outputs} + n[None, :]"
    text.add(f"tl.store(parts + ({number}), acc{only(step, config, 'mn')})")
    kernel, buffers, values = text.finish(
        warps=config.warps, stages=config.stages, origins=origins_of(replace(step, epilogue=None))
    )
    tiles = ceil_div(rows, config.block_m) * ceil_div(sizes.outputs, config.block_n)
    return [TritonLaunch(kernel, buffers, values, (tiles, config.split)), _add_parts(step, config, sizes, wide, parts)]


def _add_parts(step: Convolution, config: GemmCandidate, sizes: Sizes, wide: bool, parts: Scratch) -> TritonLaunch:
    """The kernel that adds the parts of small tiles."""
    small = replace(config, block_m=min(config.block_m, 16), block_n=min(config.block_n, 64), split=1)
    rows = sizes.images * sizes.positions
    text = KernelText(wide)
    text.block(BLOCK_M=small.block_m, BLOCK_N=small.block_n, GROUP=small.group, SPLIT=config.split)
    text.pointer("parts", float32, parts)
    place_rows(text, step, sizes)
    mask = only(step, small, "mn")
    text.add(
        f"parts_at = parts + (m[:, None] * {sizes.outputs} + n[None, :])",
        "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
        "for _ in range(SPLIT):",
        f"    acc += tl.load(parts_at{mask}{', other=0.0' if mask else ''})",
        f"    parts_at += {text.size(rows * sizes.outputs)}",
    )
    checks = write_result(text, step, small, sizes)
    kernel, buffers, values = text.finish(warps=4, origins=origins_of(step), checks=checks)
    tiles = ceil_div(rows, small.block_m) * ceil_div(sizes.outputs, small.block_n)
    return TritonLaunch(kernel, buffers, values, (tiles,))
