"""Parts of complex numbers, and complex numbers from parts."""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import TensorSpec, complex64, complex128, float64

from ..arrays import array_namespace, element_type, numpy_dtype
from ..dims import surely_same
from ..elementwise import Elementwise
from ..promotion import real_dtype
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, tensor
from ..types import Tensor

__all__: list[str] = []


# -- parts of complex numbers ----------------------------------------------------------------------------


def _part(name: str) -> Any:
    def meta(input: Any) -> TensorSpec:
        return TensorSpec(input.shape, real_dtype(input.dtype), None, input.device)

    def reference(input: Any) -> Any:
        return getattr(input, name).copy() if input.dtype.kind == "c" else input * (name == "real")

    return {"meta": meta, "reference": reference}


_COMPLEX = calls(call(tensor(2, 3, dtype="complex64"), gradient=False))


@primitive(names=both("real"), **_part("real"), samples=_COMPLEX)
def real(input: Tensor) -> Tensor:
    """The real part."""
    ...


@real.vjp
def _(ct):
    return (ct,)


@primitive(names=both("imag"), **_part("imag"), samples=_COMPLEX)
def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
    ...


@imag.vjp
def _(ct):
    return (ops.mul(ct, 1j),)


@primitive(
    names=both("conj_physical", "conj"),
    meta=Elementwise("conj", tensors=1),
    reference="conjugate",
    samples=_COMPLEX,
)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate (a new tensor)."""
    ...


@conj_physical.vjp
def _(ct):
    return (ops.conj_physical(ct),)


@composite(names=both("resolve_conj", "resolve_neg"), samples=_COMPLEX)
def resolve_conj(input: Tensor) -> Tensor:
    """``input`` itself: conjugates are never put off."""
    return input


def _complex_meta(real: Any, imag: Any) -> TensorSpec:
    rule = Elementwise("complex", allowed="float")
    spec: Any = rule(real, imag)
    return spec.replace(dtype=complex128 if spec.dtype is float64 else complex64)


def _complex(real: Any, imag: Any) -> Any:
    xp = array_namespace(real, imag)
    shape = xp.broadcast_shapes(real.shape, imag.shape)
    wide = complex128 if real.dtype.itemsize == 8 else complex64
    out = xp.empty(shape, numpy_dtype(wide))
    out.real, out.imag = real, imag
    return out


@primitive(
    id="complex",
    names=("complex",),
    meta=_complex_meta,
    reference=_complex,
    samples=calls(call(tensor(2, 3), tensor(2, 3), gradient=False)),
)
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """real + i imag."""
    ...


@complex_.vjp
def _(ct):
    return ops.real(ct), ops.imag(ct)


@complex_.normalize
def _(real, imag):
    shape = ops.add.elementwise(*(TensorSpec(t.shape, t.dtype) for t in (real, imag))).shape
    if surely_same(real.shape, shape) and surely_same(imag.shape, shape):
        return NotImplemented
    wide = [ops.broadcast_in_dim(t, shape, tuple(range(len(shape) - len(t.shape), len(shape)))) for t in (real, imag)]
    return ops.complex(*wide)


@composite(names=("polar",), samples=calls(call(tensor(2, 3, low=0.0), tensor(2, 3), gradient=False)))
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """abs * (cos(angle) + i sin(angle))."""
    return ops.complex(ops.mul(abs, ops.cos(angle)), ops.mul(abs, ops.sin(angle)))


@composite(
    names=both("angle"), samples=calls(call(tensor(2, 3, dtype="complex64"), gradient=False), call(tensor(2, 3)))
)
def angle(input: Tensor) -> Tensor:
    """The angle of a complex number; 0 or pi of a real one (nan stays nan)."""
    if element_type(input).kind == "complex":
        return ops.atan2(ops.imag(input), ops.real(input))
    if element_type(input).kind != "float":
        return ops.where(ops.lt(input, 0), math.pi, 0.0)
    return ops.where(ops.isnan(input), input, ops.where(ops.lt(input, 0), math.pi, 0.0))
