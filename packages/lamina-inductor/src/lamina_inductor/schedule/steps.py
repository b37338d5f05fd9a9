"""Steps for values that no kernel computes: matrix products, convolutions, references on the host."""

from __future__ import annotations

from typing import Any

from lamina_fx import TensorSpec

from ..ir.loops import Value
from ..ir.program import Attention, AttentionBackward, Convolution, CopyBuffer, Gemm, HostCall, Operand
from ..lower.attention import LEAD, AttentionPlan
from ..lower.externs import CatPlan, ConvolutionPlan, GemmPlan, strided_view
from ..lower.table import sizes_of
from .kernels import Target

__all__ = ["extern_step", "whole"]


def whole(target: Target, value: Value) -> Operand:
    """All of a buffer that holds ``value``."""
    return Operand(target.buffer, target.dtype, 0, value.shape, target.strides)


def extern_step(value: Value, place: dict[Value, Target], targets: dict[Value, list[Target]], fusion: Any) -> list[Any]:
    """The step that computes ``value``, and copies for further places where it must be stored."""
    plan = value.attrs

    def operand(item: Value) -> Operand:
        return _operand(item, value, place, fusion)

    if type(plan) is CatPlan:
        steps: list[Any] = _copies(value, place[value], operand)
    elif type(plan) is GemmPlan:
        steps = [Gemm(operand(value.inputs[0]), operand(value.inputs[1]), _product(value, place[value]))]
    elif type(plan) is ConvolutionPlan:
        steps = [_convolution(value, whole(place[value], value), operand)]
    elif type(plan) is AttentionPlan:
        steps = [_attention(value, place, operand)]
    else:
        steps = [_host(value, place, operand)]
    for item in (value, *value.outputs):
        for target in targets.get(item, ()):
            if target.buffer != place[item].buffer:
                steps.append(CopyBuffer(whole(place[item], item), whole(target, item)))
    return steps


def _convolution(value: Value, out: Operand, operand: Any) -> Convolution:
    plan: ConvolutionPlan = value.attrs
    input, weight = map(operand, value.inputs)
    padding = tuple([(p, p) for p in plan.padding])
    return Convolution(
        *(input, weight, None, out, plan.stride, padding, plan.dilation),
        *(plan.groups, plan.transposed, plan.output_padding),
    )


def _copies(value: Value, target: Target, operand: Any) -> list[CopyBuffer]:
    """Each input to its place along the plan's dimension."""
    dim, steps = value.attrs.dim, []
    offset: Any = 0
    for item in value.inputs:
        to = Operand(target.buffer, target.dtype, offset, item.shape, target.strides)
        if not any(type(n) is int and n == 0 for n in item.shape):
            steps.append(CopyBuffer(operand(item), to))
        offset = offset + item.shape[dim] * target.strides[dim]
    return steps


def _operand(item: Value, step: Value, place: dict[Value, Target], fusion: Any) -> Operand:
    root = fusion.roots[step, item]
    target = place[root]
    if root is item:
        return whole(target, item)
    declared, root.strides = root.strides, target.strides
    found = strided_view(item, root)
    root.strides = declared
    assert found is not None, f"{item!r} is not a strided view of {root!r}"
    return Operand(target.buffer, item.dtype, found[0], item.shape, found[1])


def _product(value: Value, target: Target) -> Operand:
    left, right = value.inputs
    shape = (*left.shape[:-2], left.shape[-2], right.shape[-1])
    strides = sizes_of(TensorSpec(shape, value.dtype).strides)
    if value.attrs.single:
        strides = (*(0,) * (len(shape) - len(value.shape)), *target.strides)
    return Operand(target.buffer, target.dtype, 0, shape, strides)


def _attention(value: Value, place: dict[Value, Target], operand: Any) -> Attention | AttentionBackward:
    plan: AttentionPlan = value.attrs
    backward = value.op == "attention_backward"
    fields: dict[str, Any] = dict.fromkeys(("mask", "state", *plan.results))
    if backward:
        fields["grad_lse"] = None
    lead = ((1,) * LEAD + plan.lead)[-LEAD:]
    inputs = dict(zip(plan.names, value.inputs, strict=True))
    scores = (*lead, inputs["query"].shape[-2], inputs["key"].shape[-2])
    for name, item in inputs.items():
        sizes = scores if name == "mask" else lead
        fields["out" if name == "output" else name] = (
            operand(item) if name == "state" else _spread(operand(item), sizes)
        )
    for name, item in zip(plan.results, value.outputs, strict=True):
        if item in place:
            fields[name] = _spread(whole(place[item], item), (1,) * LEAD if backward else lead)
    rest = {"causal": plan.causal, "scale": plan.scale, "dropout": plan.dropout}
    return AttentionBackward(**fields, **rest) if backward else Attention(**fields, **rest)


def _spread(operand: Operand, sizes: tuple[Any, ...]) -> Operand:
    """With all dimensions; ``sizes`` (of the first ones, or all) where the operand has 1, which has stride 0."""
    missing = LEAD + 2 - len(operand.shape)
    shape, strides = [1] * missing + list(operand.shape), [0] * missing + list(operand.strides)
    for d, size in enumerate(shape):
        if type(size) is int and size == 1:
            shape[d], strides[d] = sizes[d] if d < len(sizes) else 1, 0
    return Operand(operand.buffer, operand.dtype, operand.offset, tuple(shape), tuple(strides))


def _host(value: Value, place: dict[Value, Target], operand: Any) -> HostCall:
    def lift(argument: Any) -> Any:
        if type(argument) is Value:
            return operand(argument)
        if type(argument) in (tuple, list):
            return tuple([lift(a) for a in argument])
        return argument

    from lamina_prims import operator

    args, kwargs = [], []
    for parameter in operator(value.op).schema.parameters:
        argument = lift(value.attrs.args[parameter.name])
        if parameter.keyword_only:
            kwargs.append((parameter.name, argument))
        else:
            args.append(argument)
    results = value.outputs or [value]
    outs = tuple([whole(place[item], item) if item in place else None for item in results])
    return HostCall(value.op, tuple(args), tuple(kwargs), outs, value.origin[2])
