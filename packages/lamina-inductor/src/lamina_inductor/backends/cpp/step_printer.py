"""Matrix products, convolutions, attention, copies and calls of the host as statements of the host program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.program import Attention, AttentionBackward, Convolution, CopyBuffer, Gemm, HostCall, KernelCall, Operand
from .launch_printer import call_arguments, phase_functions
from .literals import memory_type
from .sizes import number

__all__ = ["host_operands", "print_attention", "print_convolution", "print_copy", "print_gemm", "print_host_call"]


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


_UNSIGNED = {"uint8": 5, "uint16": 6, "uint32": 7, "uint64": 8}
"""Unsigned products are the signed ones of the same width: both wrap."""


def _code(operand: Operand) -> int:
    return _UNSIGNED.get(operand.dtype.name, operand.dtype.code)


def print_gemm(step: Gemm, shared: dict[str, str]) -> list[str]:
    """The host picks BLAS or own loops, divides blocks among threads and runs the epilogue on finished rows."""
    lines, epilogue = _epilogue(step.epilogue, shared)
    operands = (step.left, step.right, step.out)
    pointers = ", ".join([f"(void *)({_pointer(o)})" for o in operands])
    strides = _list([s for o in operands for s in ((0,) * (4 - len(o.strides)) + tuple(o.strides))])
    *batch, rows, columns = step.out.shape
    total = batch[0] * batch[1] if len(batch) == 2 else batch[0]
    sizes = ", ".join([number(v) for v in (total, batch[-1], rows, columns, step.left.shape[-1])])
    flags = f"{_code(step.out)}, {int(step.accumulate)}"
    lines.append(f"const lm_gemm_call g = {{{pointers}, {strides}, {sizes}, {flags}, {epilogue}}};")
    return _block([*lines, "h->gemm(h, &g);"])


def _three(values: Sequence[Any], fill: Any) -> str:
    return _list([*(fill,) * (3 - len(values)), *values])


def _five(strides: Sequence[Any]) -> str:
    return _list([*strides[:2], *(0,) * (5 - len(strides)), *strides[2:]])


def print_convolution(step: Convolution, shared: dict[str, str]) -> list[str]:
    """The host's convolution over the step's sizes, padded to three spatial dimensions."""
    lines, epilogue = _epilogue(step.epilogue, shared)
    x, w, y, bias = step.input, step.weight, step.out, step.bias
    rank = len(step.stride)
    place = ("nullptr", "0") if bias is None else (f"(void *)({_pointer(bias)})", number(bias.strides[0]))
    pointers = ", ".join([f"(void *)({_pointer(o)})" for o in (x, w, y)])
    scalars = (*(place), _code(y), x.shape[0], x.shape[1], y.shape[1], step.groups, int(step.transposed))
    fields = [pointers, ", ".join([s if type(s) is str else number(s) for s in scalars])]
    fields += [_three(o.shape[2:], 1) for o in (x, y, w)]
    windows = (step.stride, [p[0] for p in step.padding], step.dilation, step.input_dilation or (1,) * rank)
    fields += [_three(v, fill) for v, fill in zip(windows, (1, 0, 1, 1), strict=True)]
    fields += [_five(o.strides) for o in (x, w, y)]
    lines.append(f"const lm_convolution_call v = {{{', '.join([*fields, epilogue])}}};")
    return _block([*lines, "h->convolution(h, &v);"])


def _attention_operand(operand: Operand | None) -> str:
    if operand is None:
        return "{}"
    return f"{{(void *)({_pointer(operand)}), {_list(operand.shape[:3])}, {_list(operand.strides)}}}"


_ATTENTION_OPERANDS = (
    "query", "key", "value", "mask", "out", "lse", "grad_out", "grad_lse", "grad_query", "grad_key", "grad_value",
)  # fmt: skip


def print_attention(step: Attention | AttentionBackward) -> list[str]:
    """The host's attention, or its gradients."""
    operands = ", ".join([_attention_operand(getattr(step, name, None)) for name in _ATTENTION_OPERANDS])
    out, key, mask = step.out, step.key, step.mask
    sizes = (out.shape[-2], key.shape[-2], key.shape[-1], out.shape[-1], _code(out))
    kind = 0 if mask is None else 1 if mask.dtype.kind == "bool" else 2
    numbers = ", ".join([_list(out.shape[:3]), *map(number, sizes), str(kind), str(int(step.causal))])
    state = "nullptr" if step.state is None else f"(const i64 *)({_pointer(step.state)})"
    fields = f"{operands}, {numbers}, {step.scale!r}, {step.dropout!r}, {state}"
    function = "attention" if type(step) is Attention else "attention_backward"
    return _block([f"const lm_attention_call a = {{{fields}}};", f"h->{function}(h, &a);"])


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
