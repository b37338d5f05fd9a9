"""Tensors made from nothing: constants, ramps, identities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lamina_fx import Device, DType, TensorSpec, float64, int64

from ..arrays import array_dtype, as_device, converted, device_namespace, element_type, numpy_dtype
from ..dims import as_shape
from ..promotion import get_default_dtype, scalar_dtype
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Scalar, Shape, Size, Tensor

__all__ = ["arange", "empty", "eye", "full", "full_like", "iota", "linspace", "ones", "zeros"]


def _dtype(dtype: Any, default: DType) -> DType:
    return default if dtype is None else dtype if type(dtype) is DType else array_dtype(dtype)


def _namespace(device: Any) -> Any:
    return device_namespace(as_device(device))


def _sizes(name: str, size: Any) -> tuple[Size, ...]:
    shape = as_shape(name, size)
    for s in shape:
        if type(s) is int and s < 0:
            raise RuntimeError(f"{name}: negative size in {list(shape)}")
    return shape


def _full_meta(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> TensorSpec:
    if isinstance(fill_value, (tuple, list, str)) or (type(fill_value) is TensorSpec and fill_value.shape):
        raise TypeError(f"full: fill_value must be a number, not {type(fill_value).__name__}")
    kind = scalar_dtype(getattr(fill_value, "kind", type(fill_value)))
    return TensorSpec(_sizes("full", size), _dtype(dtype, kind), None, as_device(device))


def _full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    spec = _full_meta(size, fill_value, dtype=dtype, device=device)
    xp = _namespace(device)
    value = converted(np.asarray(fill_value), numpy_dtype(spec.dtype))[()]
    return xp.full(tuple(map(int, spec.shape)), value, dtype=numpy_dtype(spec.dtype))


@primitive(
    names=("full",),
    meta=_full_meta,
    reference=_full,
    samples=calls(call((2, 3), 1.5), call((2,), 7), call((), True), call((0, 2), 1, dtype=int64)),
    errors=[error(RuntimeError, "negative size", (-1,), 0.0), error(TypeError, "number", (2,), "a")],
)
def full(size: Shape, fill_value: Scalar, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """All elements ``fill_value``; the dtype follows from it unless given."""
    ...


@full.normalize
def _(size, fill_value, *, dtype=None, device=None):
    target = _dtype(dtype, scalar_dtype(getattr(fill_value, "kind", type(fill_value))))
    if type(size) is tuple and type(dtype) is DType and (device is None or type(device) is Device):
        return NotImplemented
    return ops.full(_sizes("full", size), fill_value, dtype=target, device=as_device(device))


@composite(names=("zeros",), variadic="size", samples=calls(call((2, 3)), call((), dtype=int64)))
def zeros(size: Shape, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """All elements 0, of the default dtype unless given."""
    return ops.full(size, 0, dtype=_dtype(dtype, get_default_dtype()), device=device)


@composite(names=("ones",), variadic="size", samples=calls(call((2, 3)), call((), dtype=int64)))
def ones(size: Shape, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """All elements 1, of the default dtype unless given."""
    return ops.full(size, 1, dtype=_dtype(dtype, get_default_dtype()), device=device)


def _empty_meta(size: Any, *, dtype: Any = None, device: Any = None) -> TensorSpec:
    return TensorSpec(_sizes("empty", size), _dtype(dtype, get_default_dtype()), None, as_device(device))


def _empty(size: Any, *, dtype: Any = None, device: Any = None) -> Any:
    spec = _empty_meta(size, dtype=dtype, device=device)
    return _namespace(device).empty(tuple(map(int, spec.shape)), numpy_dtype(spec.dtype))


@primitive(names=("empty",), meta=_empty_meta, reference=_empty, variadic="size", tags=frozenset({"nondeterministic"}))
def empty(size: Shape, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """Memory that nobody has written: any values. At the primitive level it is a ``full`` of 0."""
    ...


@empty.normalize
def _(size, *, dtype=None, device=None):
    return ops.full(_sizes("empty", size), 0, dtype=_dtype(dtype, get_default_dtype()), device=as_device(device))


@composite(names=("empty_strided",), tags=frozenset({"nondeterministic"}))
def empty_strided(size: Shape, stride: Shape, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """Unwritten memory with these strides."""
    extent = 1
    for n, s in zip(size, stride, strict=True):
        extent = extent + (n - 1) * s
    return ops.as_strided(ops.empty((extent,), dtype=dtype, device=device), size, stride)


def _like(id: str, make: Any, words: str) -> None:
    def like(input: Tensor, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
        return make(tuple(input.shape), dtype=dtype or element_type(input), device=_on(input, device))

    like.__name__ = f"{id}_like"
    like.__doc__ = f"{words} in the shape of ``input``, with its dtype and device unless given."
    quiet: Any = {"tags": frozenset({"nondeterministic"})} if id == "empty" else {"samples": calls(call(tensor(2, 3)))}
    composite(names=(f"{id}_like",), **quiet)(like)

    def new(input: Tensor, size: Shape, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
        return make(size, dtype=dtype or element_type(input), device=_on(input, device))

    new.__name__ = f"new_{id}"
    new.__doc__ = f"{words} in the shape ``size``, with the dtype and device of ``input`` unless given."
    quiet = {"tags": frozenset({"nondeterministic"})} if id == "empty" else {"samples": calls(call(tensor(2), (3,)))}
    composite(names=(f"Tensor.new_{id}",), variadic="size", **quiet)(new)


def _on(input: Any, device: Any) -> Device:
    return as_device(input.device if device is None else device)


_like("zeros", zeros, "Zeros")
_like("ones", ones, "Ones")
_like("empty", empty, "Unwritten memory")


@composite(names=("full_like",), samples=calls(call(tensor(2, 3), 2), call(tensor(2, 3), 2, dtype=int64)))
def full_like(input: Tensor, fill_value: Scalar, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """All elements ``fill_value``, with the shape of ``input``, its dtype and device unless given."""
    return ops.full(tuple(input.shape), fill_value, dtype=dtype or element_type(input), device=_on(input, device))


@composite(names=("Tensor.new_full",), samples=calls(call(tensor(2), (3,), 2.0)))
def new_full(
    input: Tensor, size: Shape, fill_value: Scalar, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """All elements ``fill_value`` in the shape ``size``, with the dtype and device of ``input`` unless given."""
    return ops.full(size, fill_value, dtype=dtype or element_type(input), device=_on(input, device))


# -- ramps -----------------------------------------------------------------------------------------------


def _iota_meta(length: Any, *, start: Any = 0, step: Any = 1, dtype: Any = None, device: Any = None) -> TensorSpec:
    return TensorSpec((length,), _dtype(dtype, int64), None, as_device(device))


def _iota(length: Any, *, start: Any = 0, step: Any = 1, dtype: Any = None, device: Any = None) -> Any:
    to = numpy_dtype(_dtype(dtype, int64))
    whole = _namespace(device).arange(int(length))
    return (int(start) + whole * int(step)).astype(to)


@primitive(meta=_iota_meta, reference=_iota, samples=calls(call(5), call(4, start=3, step=-2), call(0)))
def iota(
    length: Size, *, start: Size = 0, step: Size = 1, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """start, start + step, ...: ``length`` integers (int64 unless given), computed as integers, then converted."""
    ...


@iota.normalize
def _(length, *, start=0, step=1, dtype=None, device=None):
    if type(dtype) is DType and type(device) is Device:
        return NotImplemented
    return ops.iota(length, start=start, step=step, dtype=_dtype(dtype, int64), device=as_device(device))


def _whole(*values: Any) -> bool:
    return all(isinstance(v, int) or type(v).__name__ == "SymInt" for v in values)


def _arange(start: Any, end: Any, step: Any, dtype: Any, device: Any) -> Any:
    if isinstance(step, (int, float)) and step == 0:
        raise RuntimeError("arange: step must be nonzero")
    if isinstance(end, (int, float)) and isinstance(start, (int, float)) and (end - start) * step < 0:
        raise RuntimeError(f"arange: upper bound and lower bound inconsistent with step sign ({start}, {end}, {step})")
    if _whole(start, end, step):
        span = end - start
        length = span if type(step) is int and step == 1 else -(-span // step)
        return ops.iota(length, start=start, step=step, dtype=_dtype(dtype, int64), device=device)
    target = _dtype(dtype, get_default_dtype())
    length = math.ceil((end - start) / step)
    ramp = ops.convert_element_type(ops.iota(length, device=device), _wide(target))
    return ops.convert_element_type(ops.add(ops.mul(ramp, float(step)), float(start)), target)


def _wide(dtype: DType) -> DType:
    """Where ramps of ``dtype`` are computed: float64, so that the last bit does not depend on the length."""
    return float64


@composite(
    names=("arange",),
    samples=calls(call(5), call(2.5), call(0)),
)
def arange(end: Scalar, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """0, 1, ... below ``end``: int64 for integers, otherwise the default dtype."""
    return _arange(0, end, 1, dtype, device)


@composite(
    id="arange.start",
    names=("arange",),
    samples=calls(call(1, 6), call(1, 6, 2), call(5, 0, -2), call(0.0, 1.0, 0.25)),
    errors=[error(RuntimeError, "nonzero", 0, 5, 0), error(RuntimeError, "inconsistent", 5, 0, 1)],
)
def arange_start(
    start: Scalar, end: Scalar, step: Scalar = 1, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """start, start + step, ... before ``end``: int64 when all three are integers, otherwise the default dtype."""
    return _arange(start, end, step, dtype, device)


@composite(names=("linspace",), samples=calls(call(0.0, 1.0, 5), call(3, -3, 4), call(2.0, 9.0, 1)))
def linspace(
    start: Scalar, end: Scalar, steps: Size, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, evenly spaced."""
    target = _dtype(dtype, get_default_dtype())
    ramp = ops.convert_element_type(ops.iota(steps, device=device), _wide(target))
    if type(steps) is int and steps == 1:
        return ops.convert_element_type(ops.add(ramp, float(start)), target)
    width = (end - start) / (steps - 1)
    up = ops.add(ops.mul(ramp, width), float(start))
    down = ops.sub(float(end), ops.mul(ops.sub(float(steps - 1), ramp), width))
    return ops.convert_element_type(ops.where(ops.lt(ramp, steps // 2), up, down), target)


@composite(names=("logspace",), samples=calls(call(0.0, 2.0, 5)))
def logspace(
    start: Scalar, end: Scalar, steps: Size, base: float = 10.0, *, dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:  # fmt: skip
    """base ** linspace(start, end, steps)."""
    powers = ops.pow(base, linspace(start, end, steps, dtype=float64, device=device))
    return ops.convert_element_type(powers, _dtype(dtype, get_default_dtype()))


@composite(names=("eye",), samples=calls(call(3), call(2, 4), call(4, 2, dtype=int64)))
def eye(n: Size, m: Size | None = None, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """``n`` rows and ``m`` (or n) columns, 1 on the main diagonal, 0 elsewhere."""
    rows = ops.reshape(ops.iota(n, device=device), (n, 1))
    columns = ops.iota(n if m is None else m, device=device)
    return ops.convert_element_type(ops.eq(rows, columns), _dtype(dtype, get_default_dtype()))


@composite(names=("scalar_tensor",), samples=calls(call(1.5)))
def scalar_tensor(s: Scalar, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """A number as a tensor without dimensions, of the default dtype unless given."""
    return ops.full((), s, dtype=_dtype(dtype, get_default_dtype()), device=device)


@composite(names=both("fill"), in_place=True, samples=calls(call(tensor(2, 3), 2.5)))
def fill(input: Tensor, value: Tensor | Scalar) -> Tensor:
    """All elements ``value`` (a number or a tensor without dimensions); dtype and shape of ``input``."""
    if not hasattr(value, "dtype"):
        return ops.full(tuple(input.shape), value, dtype=element_type(input), device=_on(input, None))
    return ops.broadcast_in_dim(ops.convert_element_type(value, element_type(input)), tuple(input.shape), ())


@composite(names=("zero",), in_place=True, samples=calls(call(tensor(2, 3))))
def zero(input: Tensor) -> Tensor:
    """All elements 0; dtype and shape of ``input`` (in place: ``zero_``)."""
    return ops.full(tuple(input.shape), 0, dtype=element_type(input), device=_on(input, None))
