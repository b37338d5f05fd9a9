"""What becomes of a product's tile: it is stored, or the kernel that follows is printed on it.

Where an epilogue moves several whole matrices, large tiles are finished in slices of their columns. Cutting a tile
moves no element, and what a thread holds beside its sums (operands of the epilogue, its steps) is as much smaller:
without it, gradients of activations did not fit into registers, which made them twice as slow.
"""

from __future__ import annotations

from typing import TypeVar

from lamina_fx import DType, float32
from lamina_fx.symbolic import as_expr

from ....ir.kernel import Load, Loop, Stmt, Store
from ....ir.program import Gemm
from ....tune.candidates import GemmCandidate
from ....tune.model import slices_of_tile
from ..literals import language_type
from ..tiles import constant
from .kernel_text import KernelText, is_multiple
from .offsets import batch_offset, scaled
from .tile_writer import TileWriter, statements_of

__all__ = ["epilogue_writer", "masks_of", "slices_of", "write_result"]

Writer = TypeVar("Writer", bound=TileWriter)


def masks_of(step: Gemm, config: GemmCandidate) -> dict[str, str]:
    """The masks of a tile, by its dimension."""
    m, n = step.out.shape[-2:]
    masks = {} if is_multiple(m, config.block_m) else {"x": "inside_m"}
    return masks | ({} if is_multiple(n, config.block_n) else {"r": "inside_n"})


def slices_of(step: Gemm, config: GemmCandidate) -> int:
    """In how many slices of its columns a tile is finished."""
    if step.epilogue is None:
        return 1
    phase, statements = statements_of(step.epilogue)
    axes = {phase.axis, *[s.axis for s in phase.body if type(s) is Loop]}
    buffers = {p.name: b for p, b in zip(step.epilogue.kernel.params, step.epilogue.buffers, strict=True)}
    moved = 0 if step.scratch else 1
    for stmt in statements:
        whole = isinstance(stmt, (Load, Store)) and axes <= as_expr(stmt.index).free_symbols
        moved += whole and (type(stmt) is Store or buffers[stmt.buffer] != step.out.buffer)
    held = config.block_m * config.block_n // (32 * config.warps)
    return slices_of_tile(held, moved >= 3)


def write_result(text: KernelText, step: Gemm, slices: int = 1) -> bool:
    """Store the tile ``acc``, unless only the epilogue wants it, and run the epilogue. Is there an index check?

    ``slices``: a power of two; the tile is cut along its columns, which moves no element.
    """
    masks = {}
    m, n = step.out.shape[-2:]
    if not is_multiple(m, text.blocks["BLOCK_M"]):
        masks["x"] = "inside_m"
    if not is_multiple(n, text.blocks["BLOCK_N"]):
        masks["r"] = "inside_n"
    checks = False
    for number, name in enumerate(_cut(text, "acc", slices, "BLOCK_N")):
        if slices > 1:
            wide = ".to(tl.int64)" if text.wide else ""
            side = f"BLOCK_N // {slices}"
            text.add(f"acc = {name}", f"n = start_n{wide} + {number} * ({side}) + tl.arange(0, {side})")
            text.add(*[f"inside_n = n[None, :] < {text.size(n)}" for dim in masks if dim == "r"])
        if step.accumulate or step.epilogue is None or not step.scratch:
            _store(text, step, " & ".join(masks.values()))
        checks = (step.epilogue is not None and _epilogue(text, step, masks, slices)) or checks
    return checks


def _cut(text: KernelText, name: str, slices: int, side: str) -> list[str]:
    """Names of the slices of a tile with ``side`` columns, from left to right."""
    if slices == 1:
        return [name]
    half = f"({side}) // 2" if " " in side else f"{side} // 2"
    text.add(
        f"{name}_0, {name}_1 = tl.split(tl.permute(tl.reshape({name}, [BLOCK_M, 2, {half}]), [0, 2, 1]))",
    )
    return [part for k in (0, 1) for part in _cut(text, f"{name}_{k}", slices // 2, half)]


def _store(text: KernelText, step: Gemm, mask: str) -> None:
    out = step.out
    text.pointer("out", out.dtype, out)
    sm, sn = out.strides[-2:]
    base = f"out{batch_offset(text, out.shape[:-2], out.strides[:-2])}"
    text.add(f"out_at = {base} + ({scaled(text, 'm[:, None]', sm)} + {scaled(text, 'n[None, :]', sn)})")
    tail = f", {mask}" if mask else ""
    if step.accumulate:
        text.add(f"acc += tl.load(out_at{tail}{', other=0.0' if mask else ''}).to(tl.float32)")
    text.add(f"tl.store(out_at, acc.to({language_type(out.dtype)}){tail})")


def _epilogue(text: KernelText, step: Gemm, masks: dict[str, str], slices: int) -> bool:
    writer, statements = epilogue_writer(text, step, masks, TileWriter)
    writer.columns = f"BLOCK_N // {slices}" if slices > 1 else "BLOCK_N"
    return writer.write_all(statements)


def epilogue_writer(
    text: KernelText, step: Gemm, masks: dict[str, str], kind: type[Writer]
) -> tuple[Writer, list[Stmt]]:
    """What writes an epilogue, of this class, and its statements; the lines that define its indices are added."""
    call = step.epilogue
    assert call is not None
    phase, statements = statements_of(call)
    m = step.out.shape[-2]
    batched = any(constant(b) != 1 for b in step.out.shape[:-2])
    loop = next(s for s in phase.body if hasattr(s, "axis"))
    row = f"matrix * {text.atom(m)} + m[:, None]" if batched else "m[:, None]"
    text.add(f"{phase.axis.name} = {row}", f"{loop.axis.name} = n[None, :]")
    computed: dict[str, tuple[str, DType]] = {
        p.name: ("acc", float32)
        for p, b in zip(call.kernel.params, call.buffers, strict=True)
        if b == step.out.buffer and p.role != "out"
    }
    shapes = {phase.axis.name: "x", loop.axis.name: "r"}
    return kind(text, call, phase, shapes, masks, computed), statements
