"""What a program does to memory and why its kernels are as they are.

``traffic(program)`` counts bytes per kernel call; ``explain(program)`` is a text for people: steps, kernels with
what was fused in them, and
the pairs that were not fused, each with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.program import Buffer, Convolution, Gemm, KernelCall, Launch, Program

__all__ = ["Traffic", "explain", "traffic", "traffic_of"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one call of a kernel must read and write at least (each buffer once); None where a size is
    symbolic."""

    kernel: str
    read: int | None
    written: int | None
    origins: tuple[tuple[str, str, str], ...]


def traffic(program: Program) -> tuple[Traffic, ...]:
    """One entry per kernel call, in the order of the steps."""
    return tuple([entry for step in program.steps for entry in traffic_of(program, step)])


def traffic_of(program: Program, step: Any) -> tuple[Traffic, ...]:
    """One entry per kernel call of one step."""
    return tuple([_of_call(program, call) for call in _calls(step)])


def _calls(step: Any) -> tuple[KernelCall, ...]:
    if type(step) is Launch:
        return step.parts
    if type(step) in (Gemm, Convolution) and step.epilogue is not None:
        return (step.epilogue,)
    return ()


def _of_call(program: Program, call: KernelCall) -> Traffic:
    pairs = list(zip(call.kernel.params, call.buffers, strict=True))
    read = {b for p, b in pairs if p.role != "out"}
    written = {b for p, b in pairs if p.role != "in"}
    return Traffic(
        call.kernel.name,
        _bytes([program.buffers[b] for b in read]),
        _bytes([program.buffers[b] for b in written]),
        call.kernel.origins,
    )


def _bytes(buffers: list[Buffer]) -> int | None:
    total = 0
    for buffer in buffers:
        count: Any = buffer.dtype.itemsize
        for size in buffer.shape:
            count = count * size
        if type(count) is not int:
            return None
        total += count
    return total


def explain(program: Program) -> str:
    """Steps, kernels and the decisions of the fusion pass, as text."""
    counts = f"{len(program.steps)} steps, {len(program.kernels)} kernels"
    lines = [f"{program.name}: {counts}, workspace {program.workspace} bytes"]
    for step in program.steps:
        if type(step) is Launch:
            lines.append("launch " + ", ".join(call.kernel.name for call in step.parts))
        else:
            epilogue = getattr(step, "epilogue", None)
            name = getattr(step, "operator", type(step).__name__.lower())
            lines.append(name + (f" then {epilogue.kernel.name}" if epilogue else ""))
    for kernel in program.kernels:
        lines.append(f"{kernel.name} ({kernel.note}): " + ", ".join(_origin(o) for o in kernel.origins))
    refused = [r for r in program.meta.get("reasons", ()) if not r.fused]
    if refused:
        lines.append("not fused:")
        lines.extend(f"  {r.producer} into {r.consumer}: {r.why}" for r in dict.fromkeys(refused))
    return "\n".join(lines)


def _origin(origin: tuple[str, str, str]) -> str:
    name, op, line = origin
    return (op if name.startswith(op) else f"{op} {name}") + (f" at {line}" if line else "")
