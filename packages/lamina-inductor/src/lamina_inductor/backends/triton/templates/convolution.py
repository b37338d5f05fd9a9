"""Convolutions as products: rows are positions of the result, columns its channels; the sum is over taps and channels.

``out[i, c, p] = sum_{t, k} input[i, k, p * stride - padding + t * dilation] * weight[c, k, t]``. Operands whose
channels do not lie together are first copied to scratch memory with the channels last (``_pack``), so that every tap
reads whole vectors. Taps that fall outside read zeros. The epilogue runs on the tile, like that of a product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lamina_fx import DType, float32
from lamina_fx.symbolic import Symbol, as_expr

from ....ir.program import Convolution, Operand
from ....schedule.share import rename
from ....tune.candidates import GemmCandidate
from ..literals import language_type
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .convolution_boxes import box_of, has_rest, write_boxes
from .gemm import DTYPES, ceil_div, precision_of, scaled
from .kernel_text import KernelText, is_multiple
from .tile_writer import TileWriter, statements_of

__all__ = ["convolution_launches", "is_convolution"]

ORIGIN = (("", "convolution", ""),)


def is_convolution(step: Convolution) -> bool:
    """Is there a template for it?"""
    dilated = any(d != 1 for d in step.input_dilation)
    known = all(constant(s) not in (None, 0) for s in step.weight.shape)
    sizes = all(constant(s) != 0 for s in (*step.input.shape, *step.out.shape))
    types = {step.input.dtype, step.weight.dtype, step.out.dtype}
    return known and sizes and len(types) == 1 and step.input.dtype.name in DTYPES and not (step.transposed or dilated)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of a convolution: images, channels of the input and of the result in a group, positions, taps."""

    images: Any
    inputs: int
    outputs: int
    positions: Any
    taps: int


def _sizes(step: Convolution) -> _Sizes:
    positions: Any = 1
    for size in step.out.shape[2:]:
        positions = positions * size
    taps = 1
    for size in step.weight.shape[2:]:
        taps *= int(constant(size) or 0)
    inputs = int(constant(step.weight.shape[1]) or 0)
    outputs = int(constant(step.weight.shape[0]) or 0) // step.groups
    return _Sizes(step.out.shape[0], inputs, outputs, positions, taps)


def convolution_launches(
    step: Convolution, config: GemmCandidate, wide: bool, multiprocessors: int = 132
) -> list[TritonLaunch]:
    """The launches of a convolution and its epilogue."""
    sizes = _sizes(step)
    launches: list[TritonLaunch] = []
    offset: Any = 0
    plain = sizes.taps == 1 and all(s == 1 for s in step.stride)
    for field in ("input", "weight"):
        operand: Operand = getattr(step, field)
        kept = sizes.inputs < 8 or (plain and field == "input")
        if constant(operand.strides[1]) == 1 or (kept and not config.descriptors):
            continue
        launch, packed, offset = _pack(operand, offset, wide)
        launches.append(launch)
        step = replace(step, **{field: packed})
    launches.append(_main(step, config, sizes, KernelText(wide), multiprocessors))
    return launches


# -- channels last ---------------------------------------------------------------------------------------


def _channels_last(operand: Operand) -> tuple[Any, ...]:
    """Strides of the operand's shape with its second dimension innermost."""
    strides: list[Any] = [0] * len(operand.shape)
    step: Any = 1
    for dim in (1, *reversed(range(2, len(operand.shape))), 0):
        strides[dim] = step
        step = step * operand.shape[dim]
    return tuple(strides)


def _pack(operand: Operand, offset: Any, wide: bool) -> tuple[TritonLaunch, Operand, Any]:
    """A copy with the channels last; the operand as it is there (its buffer: ``scratch``), and the next offset."""
    count: Any = 1
    for size in operand.shape:
        count = count * size
    spatial: Any = 1
    for size in operand.shape[2:]:
        spatial = spatial * size
    scratch = Scratch(count * operand.dtype.itemsize, offset)
    text = KernelText(wide)
    text.block(BLOCK_P=64, BLOCK_C=64)
    text.pointer("source", operand.dtype, operand)
    text.pointer("target", operand.dtype, scratch)
    channels = operand.shape[1]
    text.add(
        f"image = tl.program_id(2){'.to(tl.int64)' if wide else ''}",
        "p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)",
        "c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)",
        f"inside = (p[:, None] < {text.size(spatial)}) & (c[None, :] < {text.size(channels)})",
    )
    place = _spatial(text, "p", operand.shape[2:], operand.strides[2:])
    text.add(
        f"x = tl.load(source + image * {text.atom(operand.strides[0])} + (({place})[:, None] + "
        f"{scaled(text, 'c[None, :]', operand.strides[1])}), inside)",
        f"tl.store(target + image * {text.atom(spatial * channels)} + (p[:, None] * {text.atom(channels)} + "
        "c[None, :]), x, inside)",
    )
    kernel, buffers, sizes = text.finish(warps=4, origins=(("", "channels_last", ""),))
    grid = (ceil_div(spatial, 64), ceil_div(channels, 64), operand.shape[0])
    packed = Operand("scratch", operand.dtype, offset, operand.shape, _channels_last(operand))
    end = offset + (count * operand.dtype.itemsize + 255) // 256 * 256
    return TritonLaunch(kernel, buffers, sizes, grid), packed, end


def _spatial(text: KernelText, name: str, sizes: tuple[Any, ...], strides: tuple[Any, ...]) -> str:
    """Offset of position number ``name``."""
    step: Any = strides[-1]
    dense = True
    for size, stride in zip(reversed(sizes[1:]), reversed(strides[:-1]), strict=True):
        step = step * size
        dense = dense and bool(constant(stride - step) == 0)
    if dense:
        return scaled(text, name, strides[-1])
    parts = _parts(text, name, sizes)
    return " + ".join([f"({part}) * {text.atom(s)}" for part, s in zip(parts, strides, strict=True)])


def _parts(text: KernelText, name: str, sizes: tuple[Any, ...]) -> list[str]:
    """The index in each dimension from the number of a position."""
    found: list[str] = []
    rest = name
    for place, size in enumerate(reversed(sizes)):
        last = place == len(sizes) - 1
        found.append(rest if last else f"{rest} % {text.atom(size)}")
        rest = f"({rest} // {text.atom(size)})"
    return found[::-1]


# -- the product -----------------------------------------------------------------------------------------


def _main(
    step: Convolution, config: GemmCandidate, sizes: _Sizes, text: KernelText, multiprocessors: int
) -> TritonLaunch:
    tiles = _boxes(step, config, sizes) * ceil_div(sizes.outputs, config.block_n)
    programs: Any = tiles
    text.block(BLOCK_M=config.block_m, BLOCK_N=config.block_n, BLOCK_K=config.block_k)
    if config.persistent:
        known = constant(tiles)
        programs = multiprocessors if known is None else min(known, multiprocessors)
        text.block(PROGRAMS=multiprocessors)
        text.add(f"for tile in tl.range(tl.program_id(0), {text.size(tiles)}, PROGRAMS, flatten=True):")
        text.depth += 1
    if config.descriptors:
        write_boxes(text, step, config, "tile" if config.persistent else "tl.program_id(0)")
    else:
        text.block(GROUP=config.group)
        for name in ("input", "weight"):
            operand: Operand = getattr(step, name)
            text.pointer(name, operand.dtype, _pointer(operand))
        _place(text, step, sizes, sizes.images * sizes.positions)
        _sum(text, step, config, sizes)
    if step.bias is not None:
        text.pointer("bias", step.bias.dtype, step.bias)
        text.add(f"acc += tl.load(bias + channel * {text.atom(step.bias.strides[0])}{_only(step, config, 'n')})")
    checks = _write(text, step, config, sizes)
    text.depth = 0
    origins = (*ORIGIN, *(step.epilogue.kernel.origins if step.epilogue else ()))
    kernel, buffers, values = text.finish(warps=config.warps, stages=config.stages, origins=origins, checks=checks)
    return TritonLaunch(kernel, buffers, values, (programs,) if step.groups == 1 else (programs, step.groups))


def _boxes(step: Convolution, config: GemmCandidate, sizes: _Sizes) -> Any:
    """Tiles of positions."""
    if not config.descriptors:
        return ceil_div(sizes.images * sizes.positions, config.block_m)
    count: Any = 1
    for size, side in zip((sizes.images, *step.out.shape[2:]), box_of(step, config.block_m), strict=True):
        count = count * ceil_div(size, side)
    return count


def _pointer(operand: Operand) -> Operand | Scratch:
    return Scratch(0, operand.offset) if operand.buffer == "scratch" else operand


def _place(text: KernelText, step: Convolution, sizes: _Sizes, rows: Any) -> None:
    wide = ".to(tl.int64)" if text.wide else ""
    text.add(
        f"tiles_m = tl.cdiv({text.size(rows)}, BLOCK_M)",
        f"tiles_n = tl.cdiv({sizes.outputs}, BLOCK_N)",
        "place = tl.program_id(0)",
        "first = place // (GROUP * tiles_n) * GROUP",
        "height = min(tiles_m - first, GROUP)",
        f"m = (first + place % (GROUP * tiles_n) % height){wide} * BLOCK_M + tl.arange(0, BLOCK_M)",
        "n = place % (GROUP * tiles_n) // height * BLOCK_N + tl.arange(0, BLOCK_N)",
        f"inside_m = m[:, None] < {text.size(rows)}",
        f"inside_n = n[None, :] < {sizes.outputs}",
        f"image = m // {text.atom(sizes.positions)}",
        f"position = m % {text.atom(sizes.positions)}",
    )
    for dim, part in enumerate(_parts(text, "position", step.out.shape[2:])):
        before = step.padding[dim][0]
        text.add(f"start_{dim} = {part} * {step.stride[dim]} - {text.atom(before)}")
    channel = "n" if step.groups == 1 else f"tl.program_id(1) * {sizes.outputs} + n"
    text.add(f"channel = ({channel})[None, :]")


def _sum(text: KernelText, step: Convolution, config: GemmCandidate, sizes: _Sizes) -> None:
    """The tile ``acc``. One loop over taps and blocks of channels, so that it is one pipeline."""
    blocks = ceil_div(sizes.inputs, config.block_k)
    first = "" if step.groups == 1 else f" + tl.program_id(1) * {sizes.inputs} * {text.atom(step.input.strides[1])}"
    text.add(
        f"input_at = input + image * {text.atom(step.input.strides[0])}{first}",
        f"weight_at = weight + channel * {text.atom(step.weight.strides[0])}",
        "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
        f"for step in range({sizes.taps * blocks}):",
    )
    text.depth += 1
    text.add(f"c = step % {blocks} * BLOCK_K + tl.arange(0, BLOCK_K)", f"tap = step // {blocks}")
    window = step.weight.shape[2:]
    inside = ["inside_m"] if not is_multiple(sizes.images * sizes.positions, config.block_m) else []
    offset, tap_offset = [], []
    for dim, part in enumerate(_parts(text, "tap", window)):
        text.add(f"tap_{dim} = {part}", f"at_{dim} = start_{dim} + tap_{dim} * {step.dilation[dim]}")
        if any(constant(p) != 0 for p in step.padding[dim]):
            size = text.size(step.input.shape[2 + dim])
            inside.append(f"((at_{dim} >= 0) & (at_{dim} < {size}))[:, None]")
        offset.append(scaled(text, f"at_{dim}", step.input.strides[2 + dim]))
        tap_offset.append(scaled(text, f"tap_{dim}", step.weight.strides[2 + dim]))
    whole_k = sizes.inputs % config.block_k == 0
    if not whole_k:
        inside.append(f"(c[None, :] < {sizes.inputs})")
    right = [] if sizes.outputs % config.block_n == 0 else ["inside_n"]
    right += [] if whole_k else [f"(c[:, None] < {sizes.inputs})"]
    precision = precision_of(step.input.dtype, config)
    columns = scaled(text, "c[None, :]", step.input.strides[1])
    rows = scaled(text, "c[:, None]", step.weight.strides[1])
    text.add(
        f"a = tl.load(input_at[:, None] + (({' + '.join(offset)})[:, None] + {columns}){_where(inside)})",
        f"b = tl.load(weight_at + ({' + '.join(tap_offset)} + {rows}){_where(right)})",
        f"acc = tl.dot(a, b, acc{precision})",
    )
    text.depth -= 1


def _where(parts: list[str]) -> str:
    return f", {' & '.join(parts)}, other=0.0" if parts else ""


def _only(step: Convolution, config: GemmCandidate, dims: str) -> str:
    """The mask of a tile along these dimensions."""
    sizes = _sizes(step)
    parts = []
    whole = is_multiple(sizes.images * sizes.positions, config.block_m)
    if "m" in dims and (has_rest(step, config) if config.descriptors else not whole):
        parts.append("inside_m")
    if "n" in dims and sizes.outputs % config.block_n:
        parts.append("inside_n")
    return f", {' & '.join(parts)}" if parts else ""


def _write(text: KernelText, step: Convolution, config: GemmCandidate, sizes: _Sizes) -> bool:
    """Store the tile, and run the epilogue on it."""
    out = step.out
    if step.epilogue is None or not step.scratch:
        text.pointer("out", out.dtype, out)
        place = _spatial(text, "position", out.shape[2:], out.strides[2:])
        where = f"(image * {text.atom(out.strides[0])} + {place})[:, None] + channel * {text.atom(out.strides[1])}"
        text.add(f"tl.store(out + ({where}), acc.to({language_type(out.dtype)}){_only(step, config, 'mn')})")
    if step.epilogue is None:
        return False
    call = step.epilogue
    phase, statements = statements_of(call)
    loop = next(s for s in phase.body if hasattr(s, "axis"))
    channels = out.shape[1]
    image, channel = Symbol("image_x", 0, sizes.images - 1), Symbol("channel", 0, channels - 1)
    position = Symbol("position_x", 0, sizes.positions - 1)
    text.add("image_x = image[:, None]", "position_x = position[:, None]")
    mapping: dict[Any, Any] = {phase.axis: as_expr(image) * channels + channel, loop.axis: position}
    computed: dict[str, tuple[str, DType]] = {
        p.name: ("acc", float32)
        for p, b in zip(call.kernel.params, call.buffers, strict=True)
        if b == out.buffer and p.role != "out"
    }
    masks = {"x": "inside_m", "r": "inside_n"}
    masks = {d: name for d, name in masks.items() if name in _only(step, config, "mn")}
    shapes = {"image_x": "x", "position_x": "x", "channel": "r"}
    writer = TileWriter(text, call, phase, shapes, masks, computed)
    return writer.write_all([rename(s, mapping) for s in statements])
