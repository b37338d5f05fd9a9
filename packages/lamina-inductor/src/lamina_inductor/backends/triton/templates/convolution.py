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
from .channels_last import pack, spatial_offset, spatial_parts
from .convolution_boxes import box_of, has_rest, is_flat, write_boxes, write_flat_sum
from .gemm import DTYPES, ceil_div, precision_of, scaled
from .kernel_text import KernelText, is_multiple
from .tile_writer import TileWriter, statements_of

__all__ = [
    "Sizes", "as_plain", "convolution_launches", "declare", "is_convolution", "only", "origins_of", "place_rows",
    "write_result", "write_sum",
]  # fmt: skip

ORIGIN = (("", "convolution", ""),)


def is_convolution(step: Convolution) -> bool:
    """Is there a template for it?"""
    dilated = any(d != 1 for d in step.input_dilation)
    turned = step.transposed and not _is_turned(step)
    known = all(constant(s) not in (None, 0) for s in step.weight.shape)
    sizes = all(constant(s) != 0 for s in (*step.input.shape, *step.out.shape))
    types = {step.input.dtype, step.weight.dtype, step.out.dtype}
    return known and sizes and len(types) == 1 and step.input.dtype.name in DTYPES and not (turned or dilated)


def _is_turned(step: Convolution) -> bool:
    """Is a transposed one a plain one with its weight turned around?"""
    return step.groups == 1 and all(s == 1 for s in step.stride) and not any(step.output_padding)


def as_plain(step: Convolution) -> Convolution:
    """A transposed convolution of stride 1, the gradient by the input of a plain one, as a plain one."""
    if not step.transposed:
        return step
    weight = step.weight
    window, steps = weight.shape[2:], weight.strides[2:]
    turned = replace(
        weight,
        shape=(weight.shape[1], weight.shape[0], *window),
        strides=(weight.strides[1], weight.strides[0], *[-s for s in steps]),
        offset=weight.offset + sum([(n - 1) * s for n, s in zip(window, steps, strict=True)]),
    )
    reach = [d * (int(constant(n) or 0) - 1) for d, n in zip(step.dilation, window, strict=True)]
    padding = tuple([(r - before, r - after) for r, (before, after) in zip(reach, step.padding, strict=True)])
    return replace(step, weight=turned, padding=padding, transposed=False, output_padding=())


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a convolution: images, channels of the input and of the result in a group, positions, taps."""

    images: Any
    inputs: int
    outputs: int
    positions: Any
    taps: int


def _sizes(step: Convolution) -> Sizes:
    positions: Any = 1
    for size in step.out.shape[2:]:
        positions = positions * size
    taps = 1
    for size in step.weight.shape[2:]:
        taps *= int(constant(size) or 0)
    inputs = int(constant(step.weight.shape[1]) or 0)
    outputs = int(constant(step.weight.shape[0]) or 0) // step.groups
    return Sizes(step.out.shape[0], inputs, outputs, positions, taps)


def convolution_launches(
    step: Convolution, config: GemmCandidate, wide: bool, multiprocessors: int = 132
) -> list[TritonLaunch]:
    """The launches of a convolution and its epilogue."""
    step = as_plain(step)
    sizes = _sizes(step)
    launches: list[TritonLaunch] = []
    offset: Any = 0
    plain = sizes.taps == 1 and all(s == 1 for s in step.stride)
    for field in ("input", "weight"):
        operand: Operand = getattr(step, field)
        kept = sizes.inputs < 8 or (plain and field == "input")
        if constant(operand.strides[1]) == 1 or (kept and not config.descriptors):
            continue
        launch, packed, offset = pack(operand, offset, wide)
        launches.append(launch)
        step = replace(step, **{field: packed})
    if config.split > 1:
        from .convolution_split import split_launches  # it prints tiles of this module

        return [*launches, *split_launches(step, config, sizes, wide, offset)]
    return [*launches, _main(step, config, sizes, KernelText(wide), multiprocessors)]


# -- the product -----------------------------------------------------------------------------------------


def _main(
    step: Convolution, config: GemmCandidate, sizes: Sizes, text: KernelText, multiprocessors: int
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
    tile = "tile" if config.persistent else "tl.program_id(0)"
    if config.descriptors and not is_flat(step):
        write_boxes(text, step, config, tile)
    else:
        text.block(GROUP=config.group)
        place_rows(text, step, sizes, tile)
        if config.descriptors:
            write_flat_sum(text, step, config)
        else:
            declare(text, step)
            write_sum(text, step, config, sizes)
    checks = write_result(text, step, config, sizes)
    text.depth = 0
    kernel, buffers, values = text.finish(
        warps=config.warps, stages=config.stages, origins=origins_of(step), checks=checks
    )
    return TritonLaunch(kernel, buffers, values, (programs,) if step.groups == 1 else (programs, step.groups))


def _boxes(step: Convolution, config: GemmCandidate, sizes: Sizes) -> Any:
    """Tiles of positions."""
    if not config.descriptors or is_flat(step):
        return ceil_div(sizes.images * sizes.positions, config.block_m)
    count: Any = 1
    for size, side in zip((sizes.images, *step.out.shape[2:]), box_of(step, config.block_m), strict=True):
        count = count * ceil_div(size, side)
    return count


def origins_of(step: Convolution) -> tuple[tuple[str, str, str], ...]:
    """What is in the kernel."""
    return (*ORIGIN, *(step.epilogue.kernel.origins if step.epilogue else ()))


def pointer_of(operand: Operand) -> Operand | Scratch:
    """What a pointer parameter is given."""
    return Scratch(0, operand.offset) if operand.buffer == "scratch" else operand


def declare(text: KernelText, step: Convolution) -> None:
    """The operands as pointers."""
    for name in ("input", "weight"):
        operand: Operand = getattr(step, name)
        text.pointer(name, operand.dtype, pointer_of(operand))


def place_rows(text: KernelText, step: Convolution, sizes: Sizes, tile: str = "tl.program_id(0)") -> None:
    """Which tile this is: rows ``m``, their ``image`` and ``position``, and the ``channel`` of each column."""
    rows = sizes.images * sizes.positions
    wide = ".to(tl.int64)" if text.wide else ""
    text.add(
        f"tiles_m = tl.cdiv({text.size(rows)}, BLOCK_M)",
        f"tiles_n = tl.cdiv({sizes.outputs}, BLOCK_N)",
        f"place = {tile}",
        "first = place // (GROUP * tiles_n) * GROUP",
        "height = min(tiles_m - first, GROUP)",
        "start_m = (first + place % (GROUP * tiles_n) % height) * BLOCK_M",
        "start_n = place % (GROUP * tiles_n) // height * BLOCK_N",
        f"m = start_m{wide} + tl.arange(0, BLOCK_M)",
        "n = start_n + tl.arange(0, BLOCK_N)",
        f"inside_m = m[:, None] < {text.size(rows)}",
        f"inside_n = n[None, :] < {sizes.outputs}",
        f"image = m // {text.atom(sizes.positions)}",
        f"position = m % {text.atom(sizes.positions)}",
    )
    for dim, part in enumerate(spatial_parts(text, "position", step.out.shape[2:])):
        before = step.padding[dim][0]
        text.add(f"start_{dim} = {part} * {step.stride[dim]} - {text.atom(before)}")
    channel = "n" if step.groups == 1 else f"tl.program_id(1) * {sizes.outputs} + n"
    text.add(f"channel = ({channel})[None, :]")


def write_sum(
    text: KernelText, step: Convolution, config: GemmCandidate, sizes: Sizes, span: str | None = None
) -> None:
    """The tile ``acc``. One loop over taps and blocks of channels, or some of them, so that it is one pipeline."""
    blocks = ceil_div(sizes.inputs, config.block_k)
    first = "" if step.groups == 1 else f" + tl.program_id(1) * {sizes.inputs} * {text.atom(step.input.strides[1])}"
    text.add(
        f"input_at = input + image * {text.atom(step.input.strides[0])}{first}",
        f"weight_at = weight + channel * {text.atom(step.weight.strides[0])}",
        "acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)",
        f"for step in range({span or sizes.taps * blocks}):",
    )
    text.depth += 1
    text.add(f"c = step % {blocks} * BLOCK_K + tl.arange(0, BLOCK_K)", f"tap = step // {blocks}")
    window = step.weight.shape[2:]
    inside = ["inside_m"] if not is_multiple(sizes.images * sizes.positions, config.block_m) else []
    offset, tap_offset = [], []
    for dim, part in enumerate(spatial_parts(text, "tap", window)):
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


def only(step: Convolution, config: GemmCandidate, dims: str) -> str:
    """The mask of a tile along these dimensions."""
    sizes = _sizes(step)
    parts = []
    whole = is_multiple(sizes.images * sizes.positions, config.block_m)
    boxes = config.descriptors and not is_flat(step)
    if "m" in dims and (has_rest(step, config) if boxes else not whole):
        parts.append("inside_m")
    if "n" in dims and sizes.outputs % config.block_n:
        parts.append("inside_n")
    return f", {' & '.join(parts)}" if parts else ""


def write_result(text: KernelText, step: Convolution, config: GemmCandidate, sizes: Sizes) -> bool:
    """Store the tile, and run the epilogue on it. Is there an index check?"""
    out = step.out
    if step.bias is not None:
        text.pointer("bias", step.bias.dtype, step.bias)
        text.add(f"acc += tl.load(bias + channel * {text.atom(step.bias.strides[0])}{only(step, config, 'n')})")
    if step.epilogue is None or not step.scratch:
        text.pointer("out", out.dtype, out)
        place = spatial_offset(text, "position", out.shape[2:], out.strides[2:])
        where = f"(image * {text.atom(out.strides[0])} + {place})[:, None] + channel * {text.atom(out.strides[1])}"
        text.add(f"tl.store(out + ({where}), acc.to({language_type(out.dtype)}){only(step, config, 'mn')})")
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
    masks = {d: name for d, name in masks.items() if name in only(step, config, "mn")}
    shapes = {"image_x": "x", "position_x": "x", "channel": "r"}
    writer = TileWriter(text, call, phase, shapes, masks, computed)
    return writer.write_all([rename(s, mapping) for s in statements])
