"""Conversions of dtype, device and layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import CPU, Device, DType, TensorSpec, dtype_of

from ..arrays import (
    array_namespace,
    as_device,
    converted,
    device_namespace,
    element_type,
    numpy_dtype,
    on_host,
    spec_of,
)
from ..memory_formats import in_format, order_of
from ..registry import both, composite, primitive
from ..samples import call, calls, tensor
from ..strides import elementwise_strides
from ..types import Tensor

__all__ = ["clone", "contiguous", "convert_element_type", "device_put", "to_dtype", "type_as"]


def _same_layout(input: Any) -> tuple[Any, ...] | None:
    return elementwise_strides(input.shape, (input,))


def _convert_meta(input: Any, dtype: DType) -> TensorSpec:
    if not isinstance(dtype, DType):
        raise TypeError(f"convert_element_type: dtype must be a dtype, not {type(dtype).__name__}")
    return TensorSpec(input.shape, dtype, _same_layout(input), input.device)


def _convert(input: Any, dtype: DType) -> Any:
    to = numpy_dtype(dtype)
    if input.dtype.kind == "c" and to.kind != "c" and dtype.kind != "bool":
        input = input.real
    with np.errstate(all="ignore"):
        return converted(input, to)


@primitive(
    meta=_convert_meta,
    reference=_convert,
    samples=calls(
        call(tensor(2, 3), dtype_of("float64")),
        call(tensor(2, 3, low=-9, high=9), dtype_of("int32")),
        call(tensor(2, 3, dtype="int64", low=0, high=3), dtype_of("bool")),
        call(tensor(3, 2, kind="transposed"), dtype_of("bfloat16"), gradient=False),
    ),
)
def convert_element_type(input: Tensor, dtype: DType) -> Tensor:
    """The elements as ``dtype``. Floats to ints truncate, complex to real drops the imaginary part, float8_e4m3fn takes
    its largest number for all beyond it.
    """
    ...


@convert_element_type.vjp
def _(ct, input_spec):
    return (convert_element_type(ct, input_spec.dtype) if input_spec.dtype.kind in ("float", "complex") else None,)


@convert_element_type.normalize
def _(input, dtype):
    return input if element_type(input) is dtype else NotImplemented


@composite(id="to.dtype", names=("Tensor.to", "Tensor.type"), samples=calls(call(tensor(2, 3), dtype_of("float64"))))
def to_dtype(
    input: Tensor, dtype: DType, non_blocking: bool = False, copy: bool = False, *, memory_format: Any = None
) -> Tensor:
    """``input`` converted to ``dtype``; the same tensor when it has it already, unless ``copy``."""
    changed = input if element_type(input) is dtype else convert_element_type(input, dtype)
    return in_format(clone(input) if copy and changed is input else changed, memory_format)


def _put(input: Any, device: Any) -> Any:
    target = as_device(device)
    if target.type == "cuda":
        return device_namespace(target).asarray(input)
    return input if on_host(input) else array_namespace(input).asnumpy(input)


@primitive(
    meta=lambda input, device: TensorSpec(input.shape, input.dtype, _same_layout(input), as_device(device)),
    reference=_put,
    samples=calls(call(tensor(2, 3), CPU)),
)
def device_put(input: Tensor, device: Device) -> Tensor:
    """A copy of ``input`` on ``device``."""
    ...


@device_put.vjp
def _(ct, input_spec):
    return (device_put(ct, input_spec.device),)


@composite(
    id="to.device",
    names=("Tensor.to",),
    samples=calls(call(tensor(2, 3), "cpu"), call(tensor(2, 3), None, dtype_of("float64"))),
)
def to_device(
    input: Tensor,
    device: Device | None = None,
    dtype: DType | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: Any = None,
) -> Tensor:
    """``input`` on ``device`` with ``dtype``; the same tensor when nothing changes, unless ``copy``."""
    changed = input
    if device is not None and as_device(device) != as_device(input.device):
        changed = device_put(input, as_device(device))
    if dtype is not None and element_type(input) is not dtype:
        changed = convert_element_type(changed, dtype)
    return in_format(clone(input) if copy and changed is input else changed, memory_format)


@composite(id="to.other", names=("Tensor.to",), samples=calls(call(tensor(2, 3), tensor(1, dtype="float64"))))
def to_other(input: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False) -> Tensor:
    """``input`` with the dtype and on the device of ``other``."""
    return to_device(input, other.device, element_type(other), non_blocking, copy)


@composite(names=("Tensor.type_as",), samples=calls(call(tensor(2, 3), tensor(1, dtype="float64"))))
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """``input`` with the dtype of ``other``, on its device."""
    return to_device(input, other.device, element_type(other))


def _declare(method: str, dtype: DType) -> None:
    def convert(input: Tensor) -> Tensor:
        return to_dtype(input, dtype)

    convert.__doc__ = f"``input`` as {dtype}; the same tensor when it is that already."
    convert.__name__ = f"to_{dtype.name}"
    composite(names=(f"Tensor.{method}",), samples=calls(call(tensor(2, 3, low=0, high=4))))(convert)


for _method, _name in {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32",
    "long": "int64", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
    "cfloat": "complex64", "cdouble": "complex128",
}.items():  # fmt: skip
    _declare(_method, dtype_of(_name))


def _row_major(memory_format: Any) -> bool:
    return memory_format is not None and str(memory_format).endswith("contiguous_format")


def _clone_meta(input: Any, *, memory_format: Any = None) -> TensorSpec:
    strides = None if _row_major(memory_format) else _same_layout(input)
    return TensorSpec(input.shape, input.dtype, strides, input.device)


@primitive(
    names=both("clone"),
    meta=_clone_meta,
    reference=lambda input, *, memory_format=None: input.copy(order="C" if _row_major(memory_format) else "K"),
    samples=calls(call(tensor(2, 3)), call(tensor(2, 3, kind="transposed"), memory_format="contiguous_format")),
)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in memory of its own, in the same order of dimensions or (``"contiguous_format"``) row-major."""
    ...


@clone.vjp
def _(ct):
    return (ct,)


@composite(names=("Tensor.contiguous",), samples=calls(call(tensor(2, 3)), call(tensor(2, 3, kind="transposed"))))
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """``input`` itself when it is row-major (or has its channels last, as told) already, otherwise a copy that is."""
    if order_of(memory_format) is not None:
        return in_format(input, memory_format)
    return input if spec_of(input).is_contiguous() else clone(input, memory_format="contiguous_format")
