"""Matrix products, convolutions, copies and calls of the host as statements of the host program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.program import Convolution, CopyBuffer, Gemm, HostCall, KernelCall, Operand
from .launch_printer import call_arguments, phase_functions
from .literals import memory_type
from .sizes import number

__all__ = ["host_operands", "print_convolution", "print_copy", "print_gemm", "print_host_call"]


def _pointer(operand: Operand) -> str:
    offset = number(operand.offset)
    return operand.buffer if offset == "0" else f"{operand.buffer} + {offset}"


def _list(values: Sequence[Any]) -> str:
    return "{" + ", ".join([number(v) for v in values]) + "}"


def _block(lines: Sequence[str]) -> list[str]:
    return ["{", *[f"    {line}" for line in lines], "}"]


def _epilogue(call: KernelCall | None, shared: dict[str, str]) -> tuple[list[str], str]:
    if call is None:
        return [], "nullptr, nullptr"
    (function,) = phase_functions(call, shared)
    return call_arguments(call), f"{function}, (void *)&call"


def print_gemm(step: Gemm, shared: dict[str, str]) -> list[str]:
    """``lm_gemm`` picks BLAS or own loops, divides blocks among threads and runs the epilogue on finished rows."""
    lines, epilogue = _epilogue(step.epilogue, shared)
    kind = memory_type(step.out.dtype)
    batch, rows, columns = step.out.shape
    for name, operand in (("a", step.left), ("b", step.right), ("c", step.out)):
        lines.append(f"const lm_matrix<{kind}> {name} = {{{_pointer(operand)}, {', '.join([number(s) for s in operand.strides])}}};")
    sizes = ", ".join([number(v) for v in (batch, rows, columns, step.left.shape[2])])
    lines.append(f"lm_gemm(h, a, b, c, {sizes}, {'true' if step.accumulate else 'false'}, {epilogue});")
    return _block(lines)


def print_convolution(step: Convolution, shared: dict[str, str]) -> list[str]:
    """``lm_convolution`` over the descriptor of the step."""
    lines, epilogue = _epilogue(step.epilogue, shared)
    kind, rank = memory_type(step.out.dtype), len(step.stride)
    for name, operand in (("x", step.input), ("w", step.weight), ("y", step.out)):
        lines.append(f"const lm_tensor<{kind}, {rank}> {name} = {{{_pointer(operand)}, {_list(operand.shape)}, {_list(operand.strides)}}};")
    bias = f"{_pointer(step.bias)}, {number(step.bias.strides[0])}" if step.bias is not None else "nullptr, 0"
    low, high = [p[0] for p in step.padding], [p[1] for p in step.padding]
    input_dilation = step.input_dilation or (1,) * rank
    lines.append(
        f"const lm_window<{rank}> window = {{{_list(step.stride)}, {_list(low)}, {_list(high)}, {_list(step.dilation)}, "
        f"{_list(input_dilation)}, {step.groups}, {'true' if step.transposed else 'false'}}};"
    )
    lines.append(f"lm_convolution(h, x, w, ({kind} *){bias}, y, window, {epilogue});")
    return _block(lines)


def print_copy(step: CopyBuffer) -> list[str]:
    """``lm_copy`` of elements, any strides."""
    kind, rank = memory_type(step.source.dtype), max(1, len(step.source.shape))
    shape = step.source.shape or (1,)
    source, target = step.source.strides or (1,), step.target.strides or (1,)
    return _block(
        [
            f"const i64 shape[] = {_list(shape)}, from[] = {_list(source)}, to[] = {_list(target)};",
            f"lm_copy<{kind}, {rank}>({_pointer(step.source)}, {_pointer(step.target)}, shape, from, to);",
        ]
    )


def host_operands(step: HostCall) -> list[Operand]:
    """The operands whose addresses a host call gets: of the arguments in order, then of the results."""
    found = list(_operands((step.args, dict(step.kwargs))))
    return found + [out for out in step.outs if out is not None]


def _operands(value: Any) -> Iterator[Operand]:
    if type(value) is Operand:
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _operands(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _operands(item)


def print_host_call(step: HostCall, index: int) -> list[str]:
    """A call back into Python with the addresses of the operands."""
    operands = host_operands(step)
    pointers = ", ".join([f"(void *)({_pointer(o)})" for o in operands]) or "nullptr"
    return _block(
        [f"void *const p[] = {{{pointers}}};", f"if (h->call(h->state, {index}, p, {len(operands)})) return -1;"]
    )
