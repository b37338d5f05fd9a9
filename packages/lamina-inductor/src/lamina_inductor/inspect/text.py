"""Readable text of kernels and programs. Equal kernels have equal text, so it is also how they are recognised."""

from __future__ import annotations

from typing import Any

from ..ir.kernel import Accumulate, BindIndex, If, IndexValue, Kernel, Let, Load, Local, Loop, Sort, Stmt, Store
from ..ir.program import (
    Attention,
    AttentionBackward,
    Convolution,
    CopyBuffer,
    Gemm,
    HostCall,
    KernelCall,
    Launch,
    Operand,
    Program,
)

__all__ = ["format_body", "format_kernel", "format_program"]


def format_kernel(kernel: Kernel) -> str:
    """Signature and body, one statement a line."""
    params = ", ".join(f"{p.name}: {p.role} {p.dtype}" for p in kernel.params)
    sizes = f"; {', '.join(s.name for s in kernel.sizes)}" if kernel.sizes else ""
    return "\n".join([f"kernel {kernel.name}({params}{sizes})", *_block(kernel.body, 1)])


def format_body(kernel: Kernel) -> str:
    """What makes two kernels equal: parameters, sizes and statements, without name, origins and note."""
    params = ",".join(f"{p.name}:{p.role}:{p.dtype}" for p in kernel.params)
    return "\n".join([f"{params};{','.join(s.name for s in kernel.sizes)}", *_block(kernel.body, 0)])


def _block(body: tuple[Stmt, ...], depth: int) -> list[str]:
    lines: list[str] = []
    pad = "  " * depth
    for stmt in body:
        if type(stmt) is Loop:
            lines.append(pad + _loop(stmt))
            lines.extend(_block(stmt.body, depth + 1))
        elif type(stmt) is If:
            lines.append(f"{pad}if {stmt.condition}")
            lines.extend(_block(stmt.body, depth + 1))
        else:
            lines.append(pad + _statement(stmt))
    return lines


def _loop(loop: Loop) -> str:
    text = f"{loop.kind} {loop.axis.name} < {loop.extent}"
    if loop.step != 1:
        text += f" step {loop.step}"
    for a in loop.accumulators:
        text += f", {a.name}: {a.dtype} = {a.kind}" + ("" if a.init is None else f" from {a.init}")
    return text


def _statement(stmt: Any) -> str:
    kind = type(stmt)
    mask = getattr(stmt, "mask", None)
    tail = f" if {mask}" if mask else ""
    if kind is Let:
        return f"{stmt.name}: {stmt.dtype} = {stmt.op}({', '.join(map(_operand, stmt.args))})"
    if kind is Load:
        return f"{stmt.name}: {stmt.dtype} = {stmt.buffer}[{stmt.index}]{tail}"
    if kind is Store:
        mode = "=" if stmt.mode == "set" else f"{stmt.mode}="
        return f"{stmt.buffer}[{stmt.index}] {mode} {_operand(stmt.value)}{tail}{' atomic' if stmt.atomic else ''}"
    if kind is IndexValue:
        return f"{stmt.name}: {stmt.dtype} = index {stmt.expr}"
    if kind is BindIndex:
        wrap = " wrap" if stmt.wrap else ""
        size = "" if stmt.size is None else f" < {stmt.size}"
        return f"{stmt.symbol.name} = at {stmt.value}{size}{wrap}{tail} check {stmt.check}"
    if kind is Accumulate:
        at = "" if stmt.index is None else f" at {_operand(stmt.index)}"
        so_far = "" if stmt.running is None else f" so far {stmt.running}"
        return f"{stmt.accumulator} <- {_operand(stmt.value)}{at}{so_far}"
    if kind is Sort:
        what = f"{'places' if stmt.places else 'row'} of {stmt.value} {'down' if stmt.descending else 'up'}"
        what = f"{'' if stmt.count is None else f'first {stmt.count} '}{what}"
        return f"{stmt.name}: {stmt.dtype} = sorted {what}"
    assert kind is Local
    return f"local {stmt.name}: {stmt.dtype}[{stmt.size}]"


def _operand(value: Any) -> str:
    return value if type(value) is str else repr(value)


def format_program(program: Program) -> str:
    """Buffers, steps and results."""
    lines = [f"program {program.name}"]
    for b in program.buffers.values():
        where = f"@ {b.offset}" if b.storage == "workspace" else str(b.index)
        lines.append(f"  {b.name}: {b.dtype}{list(b.shape)} {b.storage} {where}")
    for step in program.steps:
        lines.append("  " + _step(step))
    results = ", ".join(f"{r.kind} {r.value}" for r in program.outputs)
    lines.append(f"  return {results}")
    return "\n".join(lines)


def _call(call: KernelCall) -> str:
    return f"{call.kernel.name}({', '.join((*call.buffers, *map(str, call.sizes)))})"


def _step(step: Any) -> str:
    if type(step) is Launch:
        return "launch " + " | ".join(map(_call, step.parts))
    if type(step) is Gemm:
        text = f"gemm {_view(step.out)} = {_view(step.left)} @ {_view(step.right)}"
        return text + (f" then {_call(step.epilogue)}" if step.epilogue else "")
    if type(step) is Convolution:
        text = f"convolution {_view(step.out)} = {_view(step.input)} * {_view(step.weight)}"
        return text + (f" then {_call(step.epilogue)}" if step.epilogue else "")
    if type(step) is Attention:
        return f"attention {_view(step.out)} = {_attention_operands(step)}"
    if type(step) is AttentionBackward:
        gradients = ", ".join(_view(o) for o in (step.grad_query, step.grad_key, step.grad_value) if o is not None)
        return f"attention_backward {gradients} = {_view(step.grad_out)}, {_attention_operands(step)}"
    if type(step) is CopyBuffer:
        return f"copy {_view(step.target)} = {_view(step.source)}"
    assert type(step) is HostCall
    outs = ", ".join(_view(o) for o in step.outs if o is not None)
    return f"host {step.operator} -> {outs}"


def _attention_operands(step: Attention | AttentionBackward) -> str:
    operands = [_view(o) for o in (step.query, step.key, step.value, step.mask) if o is not None]
    return ", ".join(operands) + (" causal" if step.causal else "") + (f" dropout {step.dropout}" if step.state else "")


def _view(operand: Operand) -> str:
    return f"{operand.buffer}+{operand.offset}{list(operand.shape)}@{list(operand.strides)}"
