"""One step of a program as a program of its own, for a tuner to measure: its buffers are workspace, full of noise
(masks: all true; integers, which may be indices: 0).

The program runs the step ``count`` times and returns one number, whose reading waits for the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lamina_fx import float32

from ....ir.program import Buffer, Program, Result
from ..emit import emit_program
from ..literals import has_type, language_type, pointer_type
from ..program import TritonKernel, TritonLaunch, TritonProgram
from ..tiles import Tile, constant
from .expand import Planner
from .known_sizes import with_sizes

__all__ = ["repeated", "trial_of"]

BLOCK = 4096


def trial_of(step: Any, program: Program, planner: Planner) -> TritonProgram:
    """The step alone, printed as ``planner`` says. Sizes must be known, or what they were when the graph was captured:
    the kernels of a symbolic size are measured at that."""
    emitted = emit_program(replace(program, steps=(step,)), planner, index_bits=32 if program.narrow else 64)
    emitted = replace(emitted, steps=with_sizes(emitted.steps, program.hints), below=())
    used = {name for item in emitted.steps for name in _names(item)}
    buffers: dict[str, Buffer] = {}
    offset = 0
    for name in sorted(used & set(program.buffers)):
        buffer = with_sizes(program.buffers[name], program.hints)
        buffers[name] = replace(buffer, storage="workspace", index=0, offset=offset)
        offset += (_extent(buffer) * buffer.dtype.itemsize + 255) // 256 * 256
    buffers["done"] = Buffer("done", float32, (BLOCK,), (1,), "output", 0)
    alone = replace(
        program, inputs=(), buffers=buffers, sizes=(), steps=(step,), outputs=(Result("buffer", "done"),),
        workspace=offset, constants=(), writes=(), meta={},
    )  # fmt: skip
    return replace(emitted, program=alone)


def repeated(trial: TritonProgram, count: int) -> TritonProgram:
    """Noise into the buffers, the step ``count`` times, and the number that is returned."""
    fills = [_fill(b) for b in trial.program.buffers.values() if has_type(b.dtype)]
    launches = [f for f in fills if f.buffers != ("done",)]
    last = [f for f in fills if f.buffers == ("done",)]
    kernels = {f.kernel.name: f.kernel for f in fills}
    return replace(trial, kernels=(*trial.kernels, *kernels.values()), steps=(*launches, *trial.steps * count, *last))


def _extent(buffer: Buffer) -> int:
    extent = 1
    for size, stride in zip(buffer.shape, buffer.strides, strict=True):
        extent += (constant(size) - 1) * constant(stride)  # type: ignore[operator]
    return extent


def _fill(buffer: Buffer) -> TritonLaunch:
    name = f"noise_{buffer.dtype.name}"
    value = {"bool": "bits >= 0", "int": f"(bits * 0).to({language_type(buffer.dtype)})"}.get(
        buffer.dtype.kind, f"(bits.to(tl.float32) * 1.9073486328125e-06 - 1.0).to({language_type(buffer.dtype)})"
    )
    source = f"""@triton.jit
def {name}(target, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = (i * 2654435761 + (i >> 7) * 40503) & 0xFFFFF
    tl.store(target + i, {value}, i < n)
"""
    parameters = (("target", pointer_type(buffer.dtype)), ("n", "i64"))
    kernel = TritonKernel(
        name, source, parameters, Tile(1, warps=8), frozenset(("target",)), (("", "noise", ""),), (("BLOCK", BLOCK),)
    )
    extent = _extent(buffer)
    return TritonLaunch(kernel, (buffer.name,), (extent,), (-(-extent // BLOCK),))


def _names(item: Any) -> list[str]:
    """Names of buffers in a launch or an external step."""
    places = item.buffers if isinstance(item, TritonLaunch) else _operands(item.step)
    result = []
    for place in places:
        operand = getattr(place, "operand", place)
        name = operand if isinstance(operand, str) else getattr(operand, "buffer", None)
        if name is not None:
            result.append(name)
    return result


def _operands(step: Any) -> list[Any]:
    fields = [getattr(step, f, None) for f in ("left", "right", "out", "input", "weight", "bias")]
    return [f for f in fields if f is not None]
