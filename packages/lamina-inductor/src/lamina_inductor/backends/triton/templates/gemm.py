"""Matrix products: ``out[z, m, n] = sum_k left[z, m, k] * right[z, k, n]``, and the kernel that follows on each tile.

One program computes a tile of ``BLOCK_M`` x ``BLOCK_N``; programs walk the tiles in groups of ``GROUP`` rows, so that
what they read together stays in the second-level cache. Half types are added up in float32, float32 by IEEE products.
Any strides will do; where they allow it, operands are read through tensor descriptors that the host makes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from lamina_fx import DType, float32

from ....ir.program import Gemm, Operand
from ....tune.candidates import GemmCandidate
from ..program import TritonLaunch
from ..tiles import constant
from .gemm_result import slices_of, write_result
from .kernel_text import KernelText, is_multiple, is_stride
from .offsets import batch_offset, ceil_div, matrix_index, places, scaled
from .prologue import Prologue

__all__ = ["Printed", "Product", "can_describe", "ceil_div", "described_operand", "gemm_launches", "is_gemm"]

DTYPES = frozenset(("float16", "bfloat16", "float32"))
"""Element types of products that have a template; others go to a library."""

Printed = list[TritonLaunch]
"""Launches of kernels that have no names yet."""


def is_gemm(step: Gemm) -> bool:
    """Is there a template for the product?"""
    types = {step.left.dtype, step.right.dtype, step.out.dtype}
    known = len(types) == 1 and step.left.dtype.name in DTYPES
    return known and all(constant(s) != 0 for s in (*step.left.shape, *step.right.shape))


@dataclass(frozen=True, slots=True)
class Product:
    """A product while it is printed."""

    step: Gemm
    config: GemmCandidate
    text: KernelText
    prologues: dict[str, Prologue] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[Any, Any, Any]:
        """M, N, K."""
        return self.step.left.shape[-2], self.step.right.shape[-1], self.step.left.shape[-1]

    @property
    def batch(self) -> tuple[Any, ...]:
        """Sizes of the dimensions of batch that have more than one element."""
        return self.step.out.shape[:-2]


def gemm_launches(
    step: Gemm,
    config: GemmCandidate,
    wide: bool,
    multiprocessors: int = 132,
    prologues: dict[str, Prologue] | None = None,
) -> Printed:
    """The launches of a product, its epilogue, and what makes its operands (``left``, ``right``) on the way in."""
    if config.split > 1:
        from .gemm_split import split_launches  # it prints tiles of this module

        return split_launches(step, config, wide, prologues or {})
    if config.overlapped:
        from .gemm_turns import turns_launch

        return [turns_launch(step, config, multiprocessors)]
    product = Product(step, config, KernelText(wide), prologues or {})
    text = product.text
    tiles = declare(product)
    if config.persistent:
        text.block(PROGRAMS=multiprocessors)
        count = f"tiles_m * tiles_n{''.join([f' * {text.atom(b)}' for b in product.batch if constant(b) != 1])}"
        text.add(f"for tile in tl.range(tl.program_id(0), {count}, PROGRAMS, flatten=True):")
        text.depth += 1
        place_tile(product, "tile % (tiles_m * tiles_n)", "tile // (tiles_m * tiles_n)")
    else:
        place_tile(product, "tl.program_id(0)", "tl.program_id(1)")
    write_sum(product, "0", text.size(product.sizes[2]))
    checks = write_result(text, step, slices_of(step, config))
    text.depth = 0
    kernel, buffers, sizes = text.finish(
        warps=config.warps, stages=config.stages, origins=origins_of(step, product.prologues), checks=checks
    )
    batch = numel_of(product.batch)
    if config.persistent:
        count = tiles * batch
        known = constant(count)
        grid: tuple[Any, ...] = (multiprocessors if known is None else min(known, multiprocessors),)
    else:
        grid = (tiles,) if constant(batch) == 1 else (tiles, batch)
    return [TritonLaunch(kernel, buffers, sizes, grid)]


def origins_of(step: Gemm, prologues: dict[str, Prologue]) -> tuple[tuple[str, str, str], ...]:
    """What is in the kernel."""
    before = [o for p in prologues.values() for o in p.kernel.origins]
    return (*before, ("", "dot_general", ""), *(step.epilogue.kernel.origins if step.epilogue else ()))


def numel_of(sizes: tuple[Any, ...]) -> Any:
    """Product of sizes."""
    total: Any = 1
    for size in sizes:
        total = total * size
    return total


# -- the sum ---------------------------------------------------------------------------------------------


def can_describe(operand: Operand) -> bool:
    """May the host make a descriptor of these matrices: one step is 1, others and the address multiples of 16 bytes?"""
    size = operand.dtype.itemsize
    outer, inner = operand.strides[-2:]
    steps = (outer, inner) if constant(inner) == 1 else (inner, outer)
    if constant(steps[1]) != 1 or constant(steps[0]) == 0:
        return False
    batch = [operand.strides[d] for d in _batch_dims(operand)]
    return is_multiple(operand.offset * size, 16) and all(is_stride(s * size, 16) for s in (steps[0], *batch))


def _batch_dims(operand: Operand) -> list[int]:
    """Dimensions of batch that a descriptor has: those along which matrices differ."""
    known = [(constant(n), constant(s)) for n, s in zip(operand.shape[:-2], operand.strides[:-2], strict=True)]
    return [d for d, (size, stride) in enumerate(known) if size != 1 and stride != 0]


def declare(product: Product) -> Any:
    """Parameters and numbers of tiles; returns the number of tiles of a matrix."""
    step, config, text = product.step, product.config, product.text
    m, n, _ = product.sizes
    text.block(BLOCK_M=config.block_m, BLOCK_N=config.block_n, BLOCK_K=config.block_k, GROUP=config.group)
    for name, operand, block in (
        ("left", step.left, (config.block_m, config.block_k)),
        ("right", step.right, (config.block_k, config.block_n)),
    ):
        if config.descriptors:
            text.descriptor(name, *described_operand(operand, block))
        elif name not in product.prologues:
            text.pointer(name, operand.dtype, operand)
    text.add(f"tiles_m = {_tiles_text(text, m, 'BLOCK_M')}", f"tiles_n = {_tiles_text(text, n, 'BLOCK_N')}")
    return ceil_div(m, config.block_m) * ceil_div(n, config.block_n)


def _tiles_text(text: KernelText, size: Any, block: str) -> str:
    return f"tl.cdiv({text.size(size)}, {block})"


def described_operand(operand: Operand, block: tuple[int, ...]) -> tuple[Operand, tuple[int, ...]]:
    """The matrices with their contiguous dimension last, and the block, which is of one matrix."""
    shape, strides = operand.shape[-2:], operand.strides[-2:]
    if constant(strides[1]) != 1:
        shape, strides, block = shape[::-1], strides[::-1], block[::-1]
    batch = _batch_dims(operand)
    shape = (*[operand.shape[d] for d in batch], *shape)
    strides = (*[operand.strides[d] for d in batch], *strides)
    return replace(operand, shape=shape, strides=strides), (*(1 for _ in batch), *block)


def place_tile(product: Product, tile: str, matrix: str) -> None:
    """Which tile this is: ``m`` and ``n``, the rows and columns, and ``inside_m``, ``inside_n`` where they may end."""
    text = product.text
    wide = ".to(tl.int64)" if text.wide else ""
    text.add(
        f"place = {tile}",
        "first = place // (GROUP * tiles_n) * GROUP",
        "height = min(tiles_m - first, GROUP)",
        "start_m = (first + place % (GROUP * tiles_n) % height) * BLOCK_M",
        "start_n = place % (GROUP * tiles_n) // height * BLOCK_N",
        f"m = start_m{wide} + tl.arange(0, BLOCK_M)",
        f"n = start_n{wide} + tl.arange(0, BLOCK_N)",
    )
    m, n, _ = product.sizes
    if not is_multiple(m, product.config.block_m):
        text.add(f"inside_m = m[:, None] < {text.size(m)}")
    if not is_multiple(n, product.config.block_n):
        text.add(f"inside_n = n[None, :] < {text.size(n)}")
    if any(constant(b) != 1 for b in product.batch):
        text.add(f"matrix = {matrix}{wide}")


def write_sum(product: Product, begin: str, end: str) -> None:
    """The tile ``acc``: the sum over ``k`` from ``begin`` to ``end``."""
    step, config, text = product.step, product.config, product.text
    if config.descriptors:
        _describedwrite_sum(product, begin, end)
        return
    m, n, k = product.sizes
    (lm, lk), (rk, rn) = step.left.strides[-2:], step.right.strides[-2:]
    left, right = (_start(product, name) for name in ("left", "right"))
    start = "" if begin == "0" else f"{begin} + "
    text.add(
        f"k = {start}tl.arange(0, BLOCK_K)",
        f"left_at = {left} + ({scaled(text, 'm[:, None]', lm)} + {scaled(text, 'k[None, :]', lk)})",
        f"right_at = {right} + ({scaled(text, 'k[:, None]', rk)} + {scaled(text, 'n[None, :]', rn)})",
        "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
        f"for base in range({begin}, {end}, BLOCK_K):",
    )
    in_k = "" if is_multiple(k, config.block_k) else f"tl.arange(0, BLOCK_K)[%s] < {end} - base"
    left_mask = _both("" if is_multiple(m, config.block_m) else "inside_m", in_k.replace("%s", "None, :"))
    right_mask = _both("" if is_multiple(n, config.block_n) else "inside_n", in_k.replace("%s", ":, None"))
    precision = precision_of(step.left.dtype, config)
    text.depth += 1
    for name, mask, target in (("left", left_mask, "a"), ("right", right_mask, "b")):
        if name in product.prologues:
            product.prologues[name].print(text, name, f"{name}_at", mask, target)
        else:
            text.add(f"{target} = tl.load({name}_at{mask})")
    text.depth -= 1
    text.add(
        f"    acc = tl.dot(a, b, acc{precision})",
        f"    left_at += {scaled(text, 'BLOCK_K', lk)}",
        f"    right_at += {scaled(text, 'BLOCK_K', rk)}",
    )


def precision_of(dtype: DType, config: GemmCandidate) -> str:
    """The argument of ``tl.dot`` that says how operands are rounded."""
    if dtype is not float32:
        return ""
    return f', input_precision="{"tf32" if config.tf32 else "ieee"}"'


def _start(product: Product, name: str) -> str:
    """Where the matrix begins: an address, or an offset where it is made on the way in."""
    operand: Operand = getattr(product.step, name)
    offset = batch_offset(product.text, product.batch, operand.strides[:-2])
    return f"{product.text.size(operand.offset) if name in product.prologues else name}{offset}"


def _both(first: str, second: str) -> str:
    """The arguments ``mask`` and ``other`` of a load."""
    parts = [f"({p})" if " " in p else p for p in (first, second) if p]
    return f", {' & '.join(parts)}, other=0.0" if parts else ""


def _describedwrite_sum(product: Product, begin: str, end: str) -> None:
    step, text = product.step, product.text
    left = _load_described(product, "left", ("start_m", "base"), ("BLOCK_M", "BLOCK_K"))
    right = _load_described(product, "right", ("base", "start_n"), ("BLOCK_K", "BLOCK_N"))
    precision = precision_of(step.left.dtype, product.config)
    text.add(
        "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
        f"for base in range({begin}, {end}, BLOCK_K):",
        f"    acc = tl.dot({left}, {right}, acc{precision})",
    )


def _load_described(product: Product, name: str, place: tuple[str, ...], block: tuple[str, ...]) -> str:
    """The block of an operand, as the product wants it."""
    operand: Operand = getattr(product.step, name)
    turned = constant(operand.strides[-1]) != 1
    place, block = (place[::-1], block[::-1]) if turned else (place, block)
    batch = _batch_dims(operand)
    indices = [matrix_index(product.text, product.batch, d) for d in batch]
    text = f"{name}.load([{places(product.text, *indices, *place)}])"
    text += f".reshape({', '.join(block)})" if batch else ""
    return f"{text}.T" if turned else text
