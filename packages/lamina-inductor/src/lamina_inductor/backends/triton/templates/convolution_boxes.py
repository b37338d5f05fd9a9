"""Convolutions that read their input through a tensor descriptor, a box of positions for each tap.

    a[p, k] = input[image, h + tap_h - 1, w + tap_w - 1, k]      a = input.load([image, h + ..., w + ..., k])

The rows of a tile are a box of ``images x h x w`` positions whose sides are powers of two, and each tap reads the same
box, shifted. What lies outside of the image is zeros, which the copy engine fills in, so there are no masks and no
addresses to compute. The product is made transposed, because only its right operand may be a box that is read as a
matrix without going through registers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from lamina_prims.memory_formats import channels_last_strides

from ....ir.program import Convolution, Operand
from ....tune.candidates import GemmCandidate
from ..tiles import constant
from .gemm import precision_of
from .kernel_text import KernelText, is_multiple
from .offsets import places as at

__all__ = ["box_of", "can_describe_images", "has_rest", "is_flat", "write_boxes", "write_flat_sum"]

HALF = ("bfloat16", "float16")

LONGEST = 256
"""Side of a box at most, by the hardware."""


def can_describe_images(step: Convolution, tf32: bool, block_k: int = 32) -> bool:
    """May its operands, with their channels last, be read through descriptors by the matrix units?

    Neighbours of the result read neighbours of the input, channels fill their blocks, and steps in memory are
    multiples of 16 bytes.
    """
    channels = constant(step.weight.shape[1])
    if not (step.input.dtype.name in HALF or tf32) or step.groups != 1 or any(s != 1 for s in step.stride):
        return False
    if channels is None or channels % block_k or any(constant(n) is None for n in step.out.shape[2:]):
        return False
    if constant(step.weight.strides[1]) == 1 and not _is_dense(step.weight):
        return False
    if prod([constant(n) or 0 for n in step.weight.shape[2:]]) == 1 and constant(step.input.strides[1]) != 1:
        return False  # read once: a copy would cost as much
    return all(_is_read_in_steps(o) for o in (step.input, step.weight))


def _steps(operand: Operand) -> tuple[Any, ...]:
    """Strides with the channels last; those of dimensions with one element, which never count, are as if dense."""
    dense = channels_last_strides(operand.shape)
    return tuple([d if constant(n) == 1 else s for n, s, d in zip(operand.shape, operand.strides, dense, strict=True)])


def _is_dense(weight: Operand) -> bool:
    """Are a filter's taps and channels one row in memory?"""
    step: int | None = constant(weight.shape[1])
    for dim in reversed(range(2, len(weight.shape))):
        if step is None or constant(_steps(weight)[dim]) != step:
            return False
        step *= constant(weight.shape[dim]) or 0
    return True


def _is_read_in_steps(operand: Operand) -> bool:
    """Will its strides be multiples of 16 bytes? An operand with other channels is packed, and its strides are."""
    if constant(operand.strides[1]) != 1:
        return True
    size = operand.dtype.itemsize
    outer = [s for d, s in enumerate(_steps(operand)) if d != 1]
    return is_multiple(operand.offset * size, 16) and all(is_multiple(s * size, 16) and constant(s) != 0 for s in outer)


def box_of(step: Convolution, positions: int) -> tuple[int, ...]:
    """Sides of a box with so many positions, (images, *spatial): the fewest boxes, then the least read around them."""
    sizes = [constant(n) or 1 << 20 for n in (step.out.shape[0], *step.out.shape[2:])]  # unknown images are many
    window = [constant(n) or 1 for n in step.weight.shape[2:]]
    sides = [[1 << k for k in range(positions.bit_length()) if 1 << k <= LONGEST] for _ in sizes]

    def cost(box: tuple[int, ...]) -> tuple[int, int]:
        boxes = prod([-(-n // b) for n, b in zip(sizes, box, strict=True)])
        return boxes, box[0] * prod([b + w - 1 for b, w in zip(box[1:], window, strict=True)])

    return min([box for box in product(*sides) if prod(box) == positions], key=cost)


def write_boxes(text: KernelText, step: Convolution, config: GemmCandidate, tile: str) -> None:
    """The tile ``acc`` of number ``tile``, and where it lies: ``image``, ``position``, ``channel``, what is inside."""
    box = box_of(step, config.block_m)
    names = ["image", *[f"at_{d}" for d in range(len(box) - 1)]]
    sides = [*zip(names, (step.out.shape[0], *step.out.shape[2:]), box, strict=True)]
    _declare(text, step, config, box)
    outputs = int(constant(step.weight.shape[0]) or 0)
    text.add(
        f"tiles_n = tl.cdiv({outputs}, BLOCK_N)",
        f"start_n = {tile} % tiles_n * BLOCK_N",
        f"rest = {tile} // tiles_n",
    )
    for name, size, side in reversed(sides[1:]):
        count = -(-int(size) // side)
        text.add(f"start_{name} = rest % {count} * {side}", f"rest = rest // {count}")
    text.add(f"start_image = rest * {box[0]}")
    _sum(text, step, config, names)
    text.add("acc = acc.T", "n = start_n + tl.arange(0, BLOCK_N)", "channel = n[None, :]")
    _write_rows(text, sides)
    if outputs % config.block_n:
        text.add(f"inside_n = channel < {outputs}")


def _write_rows(text: KernelText, sides: list[tuple[str, Any, int]]) -> None:
    """The image and the position of each row; ``sides``: (name, size, side of the box) of each dimension."""
    text.add("row = tl.arange(0, BLOCK_M)")
    rest = "row"
    for name, _, side in reversed(sides[1:]):
        text.add(f"{name} = start_{name} + {rest} % {side}")
        rest = f"({rest} // {side})"
    position = "at_0"
    for name, size, _ in sides[2:]:
        position = f"({position} * {size} + {name})"
    text.add(f"image = start_image{'.to(tl.int64)' if text.wide else ''} + {rest}", f"position = {position}")
    parts = [f"({name} < {text.size(size)})" for name, size, side in sides if not is_multiple(size, side)]
    if parts:
        text.add(f"inside_m = ({' & '.join(parts)})[:, None]")


def is_flat(step: Convolution) -> bool:
    """Is it a product of rows that lie at equal steps: one tap at every position of images with channels last?"""
    operand = step.input
    taps = prod([constant(n) or 0 for n in step.weight.shape[2:]])
    if taps != 1 or any(constant(p) != 0 for pair in step.padding for p in pair) or any(s != 1 for s in step.stride):
        return False
    steps = _steps(operand)
    reach: Any = steps[-1]
    for inner, outer in zip(
        range(len(operand.shape) - 1, 1, -1), (*range(len(operand.shape) - 2, 1, -1), 0), strict=True
    ):
        reach = reach * operand.shape[inner]
        if constant(steps[outer] - reach) != 0:
            return False
    return True


def write_flat_sum(text: KernelText, step: Convolution, config: GemmCandidate) -> None:
    """The tile ``acc`` at ``start_m``, ``start_n`` of a flat one."""
    image, weight = _last(step.input), _last(step.weight)
    rows: Any = 1
    for size in image.shape[:-1]:
        rows = rows * size
    channels = image.shape[-1]
    text.descriptor(
        "input",
        replace(image, shape=(rows, channels), strides=(image.strides[-2], 1)),
        (config.block_m, config.block_k),
    )
    matrix = replace(weight, shape=(weight.shape[0], channels), strides=(weight.strides[0], 1))
    text.descriptor("weight", matrix, (config.block_n, config.block_k))
    precision = precision_of(step.input.dtype, config)
    text.add(
        "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
        f"for c in range(0, {channels}, BLOCK_K):",
        f"    a, b = input.load([{at(text, 'start_m', 'c')}]), weight.load([{at(text, 'start_n', 'c')}])",
        f"    acc = tl.dot(a, b.T, acc{precision})",
    )


def has_rest(step: Convolution, config: GemmCandidate) -> bool:
    """Do boxes reach over the ends of the result?"""
    sizes = (step.out.shape[0], *step.out.shape[2:])
    return not all(is_multiple(n, b) for n, b in zip(sizes, box_of(step, config.block_m), strict=True))


def _declare(text: KernelText, step: Convolution, config: GemmCandidate, box: tuple[int, ...]) -> None:
    image, weight = (_last(getattr(step, name)) for name in ("input", "weight"))
    text.descriptor("input", image, (*box, config.block_k))
    rows, columns = weight.shape[0], prod([int(constant(n) or 0) for n in weight.shape[1:]])
    matrix = replace(weight, shape=(rows, columns), strides=(weight.strides[0], 1))
    text.descriptor("weight", matrix, (config.block_n, config.block_k))


def _last(operand: Operand) -> Operand:
    """The operand with its channels as the last dimension; packed ones count their offset in bytes."""
    order = (0, *range(2, len(operand.shape)), 1)
    shape, strides = (tuple([given[d] for d in order]) for given in (operand.shape, _steps(operand)))
    offset = operand.offset // operand.dtype.itemsize if operand.buffer == "scratch" else operand.offset
    return replace(operand, shape=shape, strides=strides, offset=offset)


def _sum(text: KernelText, step: Convolution, config: GemmCandidate, names: list[str]) -> None:
    """One loop over taps and blocks of channels, so that it is one pipeline."""
    window = [int(constant(n) or 0) for n in step.weight.shape[2:]]
    places, rest = [], "tap"
    for dim in reversed(range(len(window))):
        tap = rest if dim == 0 else f"{rest} % {window[dim]}"
        rest = f"{rest} // {window[dim]}"
        moved = f"{tap} * {step.dilation[dim]}" if step.dilation[dim] != 1 else tap
        before = step.padding[dim][0]
        places.append(f"start_{names[1 + dim]} + {moved}{f' - {text.atom(before)}' if constant(before) != 0 else ''}")
    channels = int(constant(step.weight.shape[1]) or 0)
    blocks = channels // config.block_k
    precision = precision_of(step.input.dtype, config)
    text.add(
        "acc = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)",
        f"for step in range({prod(window) * blocks}):",
        f"    c = step % {blocks} * BLOCK_K",
        f"    tap = step // {blocks}",
        f"    a = input.load([{at(text, 'start_image', *reversed(places), 'c')}]).reshape(BLOCK_M, BLOCK_K)",
        f"    b = weight.load([{at(text, 'start_n', f'tap * {channels} + c')}])",
        f"    acc = tl.dot(b, a.T, acc{precision})",
    )
