"""Calls that a step of their own computes as a whole: matrix products, convolutions, and any operator's reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamina_fx import TensorSpec, float32
from lamina_fx.symbolic import Symbol

from ..ir.dtypes import compute_dtype
from ..ir.loops import Size, Value
from .pointwise import convert_value
from .table import Call, lowers, sizes_of
from .views import map_value, reshape_map

__all__ = ["CatPlan", "ConvolutionPlan", "GemmPlan", "HostPlan", "host_call", "strided_view"]


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """Inputs are ``[b, m, k]`` and ``[b, k, n]``, or have two dimensions of batch.

    ``single``: each dimension of the product stands for one of the result's (so the result may have any strides).
    """

    single: bool = False

    def takes_view(self, item: Value, root: Value) -> bool:
        """Can the step read this operand where ``root`` lies, through strides?"""
        found = strided_view(item, root)
        return found is not None and any(
            _is_one(s) or _is_one(n) for s, n in zip(found[1][-2:], item.shape[-2:], strict=True)
        )


@dataclass(frozen=True, slots=True)
class ConvolutionPlan:
    """Parameters of a convolution. Inputs are the input and the weight."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int

    def takes_view(self, item: Value, root: Value) -> bool:
        """Any strides will do."""
        return strided_view(item, root) is not None


@dataclass(frozen=True, slots=True)
class CatPlan:
    """Many tensors one behind the other along ``dim``: each is copied to its place."""

    dim: int

    def takes_view(self, item: Value, root: Value) -> bool:
        """A copy reads any strides."""
        return strided_view(item, root) is not None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A call of an operator's reference: arguments by name, tensors as values."""

    args: dict[str, Any]

    def takes_view(self, item: Value, root: Value) -> bool:
        """NumPy reads any strides."""
        return strided_view(item, root) is not None


def _is_one(size: Size) -> bool:
    return type(size) is int and size == 1


def strided_view(value: Value, root: Value) -> tuple[Size, tuple[Size, ...]] | None:
    """(offset, strides) of ``value`` in the memory of ``root``, a value below it.

    None when its elements do not lie at constant strides there.
    """
    from ..schedule.flat import affine  # the schedule package imports this one

    axes = tuple([Symbol(f"d{k}", 0, size - 1) for k, size in enumerate(value.shape)])
    index: Any = tuple([0 if _is_one(size) else axis for axis, size in zip(axes, value.shape, strict=True)])
    base = value
    while base is not root:
        index = base.forward(index)  # type: ignore[misc]
        base = base.inputs[0]
    number: Any = 0
    for i, stride in zip(index, dense_strides(base), strict=True):
        number = number + i * stride
    steps = affine(number, frozenset(axes))
    if steps is None:
        return None
    offset = number if type(number) is int else number.substitute(dict.fromkeys(axes, 0))
    return _plain(offset), tuple([_plain(steps.get(axis, 0)) for axis in axes])


def _plain(size: Any) -> Size:
    return size if type(size) is int else size.value if size.is_constant else size


def dense_strides(value: Value) -> tuple[Size, ...]:
    """Strides of a value's memory: a buffer's own, row-major for everything that the program makes."""
    return value.strides if value.strides is not None else sizes_of(TensorSpec(value.shape, value.dtype).strides)


# -- matrix products -------------------------------------------------------------------------------------

_GEMM_DTYPES = frozenset(
    (
        *("float32", "float64", "float16", "bfloat16", "complex64", "complex128"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
)


@lowers("dot_general")
def _dot_general(call: Call) -> Value | None:
    lhs, rhs = call["lhs"], call["rhs"]
    (lc, rc), (lb, rb) = call["contract"], call["batch"]
    if lhs.dtype.name not in _GEMM_DTYPES:
        return None
    left = tuple([d for d in range(len(lhs.shape)) if d not in lc and d not in lb])
    right = tuple([d for d in range(len(rhs.shape)) if d not in rc and d not in rb])
    single = len(lb) <= 2 and len(left) == 1 and len(right) == 1
    if len(lb) == 2:
        batches = ((lb[0],), (lb[1],)), ((rb[0],), (rb[1],))
    else:
        batches = ((tuple(lb),), (tuple(rb),))
    a = _collapsed(lhs, (*batches[0], left, tuple(lc)))
    b = _collapsed(rhs, (*batches[1], tuple(rc), right))
    value = call.value("extern", (a, b))
    value.attrs = GemmPlan(single)
    return value


def _collapsed(value: Value, groups: tuple[tuple[int, ...], ...]) -> Value:
    """``value`` with its dimensions brought to this order and each group made one."""
    order = tuple([d for group in groups for d in group])
    shape = []
    for group in groups:
        size: Any = 1
        for d in group:
            size = size * value.shape[d]
        shape.append(size)
    ordered = tuple([value.shape[d] for d in order])
    inverse = tuple(sorted(range(len(order)), key=order.__getitem__))
    permuted = map_value(
        value, ordered, lambda index: tuple([index[k] for k in inverse]), lambda index: tuple([index[d] for d in order])
    )
    target = sizes_of(shape)
    return map_value(permuted, target, reshape_map(ordered, target), reshape_map(target, ordered))


# -- convolution -----------------------------------------------------------------------------------------


@lowers("convolution")
def _convolution(call: Call) -> Value | None:
    input, weight = call["input"], call["weight"]
    if call["bias"] is not None or input.dtype.kind != "float":
        return None
    # Half types are widened, unless the backend has a kernel that adds up in float32 by itself.
    turned = call["transposed"] and (call["groups"] != 1 or any(s != 1 for s in call["stride"]))
    direct = compute_dtype(input.dtype) is input.dtype or (not turned and call.supports("convolution", input.dtype))
    if not direct:
        input, weight = convert_value(input, float32), convert_value(weight, float32)
    value = call.value("extern", (input, weight), input.dtype)
    value.attrs = ConvolutionPlan(
        tuple(call["stride"]),
        tuple(call["padding"]),
        tuple(call["dilation"]),
        call["transposed"],
        tuple(call["output_padding"]),
        call["groups"],
    )
    return value if direct else convert_value(value, call.spec.dtype)


# -- anything --------------------------------------------------------------------------------------------


def host_call(call: Call) -> Value:
    """A step that runs the operator's reference on the host."""
    tensors: dict[Value, None] = {}
    _tensors(call.args, tensors)
    inputs = tuple(tensors)
    if isinstance(call.spec, TensorSpec):
        value = call.value("extern", inputs)
    else:
        value = Value("extern", call.op, call.name, inputs, (), call.spec[0].dtype)
        for number, spec in enumerate(call.spec):
            item = Value("item", call.op, f"{call.name}_{number}", (value,), sizes_of(spec.shape), spec.dtype)
            item.attrs = number
            value.outputs.append(item)
    value.attrs = HostPlan(call.args)
    return value


def _tensors(argument: Any, found: dict[Value, None]) -> None:
    if type(argument) is Value:
        found[argument] = None
    elif type(argument) is tuple or type(argument) is list:
        for item in argument:
            _tensors(item, found)
    elif type(argument) is dict:
        for item in argument.values():
            _tensors(item, found)
