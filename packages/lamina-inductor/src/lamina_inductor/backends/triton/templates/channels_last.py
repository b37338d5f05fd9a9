"""Copies of images with their channels last in memory, and where positions of images lie.

A copy walks tiles of the two dimensions that lie together in the source and in the target: positions and channels, or,
where images lie together (a weight's gradient reads its operands so), images and channels.
"""

from __future__ import annotations

from typing import Any

from lamina_prims.memory_formats import channels_last_strides

from ....ir.program import Operand
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .gemm import ceil_div, scaled
from .kernel_text import KernelText

__all__ = ["pack", "spatial_offset", "spatial_parts"]

MOST = 65535
"""Programs along the last dimension of a grid."""


def pack(operand: Operand, offset: Any, wide: bool) -> tuple[TritonLaunch, Operand, Any]:
    """A copy with the channels last; the operand as it is there (its buffer: ``scratch``), and the next offset."""
    images, channels = operand.shape[:2]
    spatial: Any = 1
    for size in operand.shape[2:]:
        spatial = spatial * size
    count = images * channels * spatial
    text = KernelText(wide)
    text.block(BLOCK_P=64, BLOCK_C=64)
    text.pointer("source", operand.dtype, operand)
    text.pointer("target", operand.dtype, Scratch(count * operand.dtype.itemsize, offset))
    kept, rows = (images, spatial) if not _images_together(operand, spatial) else (spatial, images)
    _copy_tile(text, operand, spatial, kept is spatial)
    kernel, buffers, sizes = text.finish(warps=4, origins=(("", "channels_last", ""),))
    grid = (ceil_div(rows, 64), ceil_div(channels, 64), kept)
    packed = Operand("scratch", operand.dtype, offset, operand.shape, channels_last_strides(operand.shape))
    end = offset + (count * operand.dtype.itemsize + 255) // 256 * 256
    return TritonLaunch(kernel, buffers, sizes, grid), packed, end


def _images_together(operand: Operand, spatial: Any) -> bool:
    """Do images lie together, and positions not? (Positions are then counted by the grid's last dimension.)"""
    known = constant(spatial)
    return constant(operand.strides[0]) == 1 and constant(operand.strides[-1]) != 1 and (known or MOST + 1) <= MOST


def _copy_tile(text: KernelText, operand: Operand, spatial: Any, images: bool) -> None:
    """Rows of the tile are positions of an image, or images at a position."""
    kept, row = ("p", "image") if images else ("image", "p")
    ends = text.size(operand.shape[0] if images else spatial)
    channels = operand.shape[1]
    text.add(
        f"{kept} = tl.program_id(2){'.to(tl.int64)' if text.wide else ''}",
        f"{row} = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)",
        "c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)",
        f"inside = ({row}[:, None] < {ends}) & (c[None, :] < {text.size(channels)})",
    )
    place = spatial_offset(text, "p", operand.shape[2:], operand.strides[2:])
    column = scaled(text, "c[None, :]", operand.strides[1])
    image, whole = text.atom(operand.strides[0]), text.atom(spatial * channels)
    if images:  # they lie together
        text.add(
            f"x = tl.load(source + {place} + (image[:, None] + {column}), inside)",
            f"tl.store(target + p * {text.atom(channels)} + (image[:, None] * {whole} + c[None, :]), x, inside)",
        )
        return
    text.add(
        f"x = tl.load(source + image * {image} + (({place})[:, None] + {column}), inside)",
        f"tl.store(target + image * {whole} + (p[:, None] * {text.atom(channels)} + c[None, :]), x, inside)",
    )


def spatial_offset(text: KernelText, name: str, sizes: tuple[Any, ...], strides: tuple[Any, ...]) -> str:
    """Offset of position number ``name``."""
    step: Any = strides[-1]
    dense = True
    for size, stride in zip(reversed(sizes[1:]), reversed(strides[:-1]), strict=True):
        step = step * size
        dense = dense and bool(constant(stride - step) == 0)
    if dense:
        return scaled(text, name, strides[-1])
    parts = spatial_parts(text, name, sizes)
    return " + ".join([f"({part}) * {text.atom(s)}" for part, s in zip(parts, strides, strict=True)])


def spatial_parts(text: KernelText, name: str, sizes: tuple[Any, ...]) -> list[str]:
    """The index in each dimension from the number of a position."""
    found: list[str] = []
    rest = name
    for place, size in enumerate(reversed(sizes)):
        last = place == len(sizes) - 1
        found.append(rest if last else f"{rest} % {text.atom(size)}")
        rest = f"({rest} // {text.atom(size)})"
    return found[::-1]
