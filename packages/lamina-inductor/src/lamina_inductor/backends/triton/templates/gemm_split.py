"""Products split along the sum: parts into scratch memory, then a kernel that adds them in order; its epilogue."""

from __future__ import annotations

from dataclasses import replace

from lamina_fx import float32
from lamina_fx.symbolic import as_expr

from ....ir.program import Gemm
from ....tune.candidates import GemmCandidate
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .gemm import (
    Printed,
    Product,
    declare,
    numel_of,
    origins_of,
    place_tile,
    write_sum,
)
from .gemm_result import masks_of, write_result
from .kernel_text import KernelText
from .offsets import ceil_div
from .prologue import Prologue

__all__ = ["split_launches"]


def split_launches(step: Gemm, config: GemmCandidate, wide: bool, prologues: dict[str, Prologue]) -> Printed:
    """Parts of the sum into scratch memory, then their sum, in order, and the epilogue."""
    product = Product(step, config, KernelText(wide), prologues)
    text = product.text
    m, n, k = product.sizes
    tiles = declare(product)
    batch = numel_of(product.batch)
    scratch = Scratch(m * n * batch * config.split * 4)
    text.pointer("parts", float32, scratch)
    place_tile(product, "tl.program_id(0)", "tl.program_id(2)")
    blocks = ceil_div(ceil_div(k, config.block_k), config.split)
    text.add(
        f"begin = tl.program_id(1) * {text.atom(blocks)} * BLOCK_K",
        f"end = min(begin + {text.atom(blocks)} * BLOCK_K, {text.size(k)})",
    )
    write_sum(product, "begin", "end")
    batched = constant(batch) != 1
    part = f"(matrix * {config.split} + tl.program_id(1))" if batched else "tl.program_id(1)"
    masks = masks_of(step, config)
    tail = "".join([f", {' & '.join(masks.values())}"]) if masks else ""
    number = f"({part} * {text.atom(m)} + m[:, None]) * {text.atom(n)} + n[None, :]"
    text.add(f"tl.store(parts + ({number}), acc{tail})")
    kernel, buffers, sizes = text.finish(
        warps=config.warps, stages=config.stages, origins=origins_of(replace(step, epilogue=None), prologues)
    )
    first = TritonLaunch(kernel, buffers, sizes, (tiles, config.split, batch) if batched else (tiles, config.split))
    return [first, _add_parts(step, config, scratch, wide)]


def _add_parts(step: Gemm, config: GemmCandidate, scratch: Scratch, wide: bool) -> TritonLaunch:
    """The kernel that adds the parts of small tiles."""
    text = KernelText(wide)
    m, n = step.out.shape[-2:]
    small = replace(config, block_m=min(config.block_m, 16), block_n=min(config.block_n, 64), split=1)
    product = Product(step, small, text)
    text.block(BLOCK_M=small.block_m, BLOCK_N=small.block_n, SPLIT=config.split)
    text.pointer("parts", float32, scratch)
    wide_text = ".to(tl.int64)" if wide else ""
    text.add(
        f"m = tl.program_id(0){wide_text} * BLOCK_M + tl.arange(0, BLOCK_M)",
        f"n = tl.program_id(1){wide_text} * BLOCK_N + tl.arange(0, BLOCK_N)",
    )
    masks = masks_of(step, small)
    if "x" in masks:
        text.add(f"inside_m = m[:, None] < {text.size(m)}")
    if "r" in masks:
        text.add(f"inside_n = n[None, :] < {text.size(n)}")
    batched = any(constant(b) != 1 for b in product.batch)
    if batched:
        text.add(f"matrix = tl.program_id(2){wide_text}")
    row = f"(matrix * SPLIT * {text.atom(m)} + m[:, None])" if batched else "m[:, None]"
    tail = f", {' & '.join(masks.values())}, other=0.0" if masks else ""
    text.add(
        f"parts_at = parts + ({row} * {text.atom(n)} + n[None, :])",
        "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
        "for _ in range(SPLIT):",
        f"    acc += tl.load(parts_at{tail})",
        f"    parts_at += {text.size(as_expr(m) * n)}",
    )
    checks = write_result(text, step)
    kernel, buffers, sizes = text.finish(warps=4, origins=origins_of(step, {}), checks=checks)
    tiles = (ceil_div(m, small.block_m), ceil_div(n, small.block_n))
    batch = numel_of(product.batch)
    return TritonLaunch(kernel, buffers, sizes, (*tiles, batch) if batched else tiles)
