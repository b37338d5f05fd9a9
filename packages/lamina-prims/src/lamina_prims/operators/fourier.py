"""Discrete Fourier transforms: three unnormalised primitives, which backends run as external calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import TensorSpec, complex64, complex128, float32, float64

from ..along import positions
from ..arrays import array_namespace, element_type
from ..dims import canonical_dim
from ..registry import ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .windows import padded

__all__ = ["COMPLEX", "checked_dims", "fft_c2c", "fft_c2r", "fft_r2c", "resize"]

COMPLEX = {float32: complex64, float64: complex128, complex64: complex64, complex128: complex128}
_REAL = {complex64: float32, complex128: float64, float32: float32, float64: float64}


def checked_dims(name: str, input: Tensor, dim: Sequence[int]) -> tuple[int, ...]:
    """``dim`` counted from the front, in the order given.

    Raises:
        RuntimeError: one occurs twice.
    """
    result = tuple(canonical_dim(name, d, len(input.shape)) for d in dim)
    if len(set(result)) != len(result):
        raise RuntimeError(f"{name}: FFT dims must be unique, got {tuple(dim)}")
    return result


def _meta_c2c(input: Tensor, dim: Sequence[int], forward: bool = True) -> TensorSpec:
    checked_dims("fft", input, dim)
    if input.dtype.kind != "complex":
        raise RuntimeError(f"fft_c2c: the input must be complex, got {input.dtype}")
    return TensorSpec(input.shape, input.dtype, None, input.device)


def _c2c(input: Any, dim: Sequence[int], forward: bool = True) -> Any:
    xp = array_namespace(input)
    if not dim:
        return input
    function, norm = (xp.fft.fftn, "backward") if forward else (xp.fft.ifftn, "forward")
    return function(input, axes=tuple(dim), norm=norm).astype(input.dtype, copy=False)


@primitive(
    meta=_meta_c2c,
    reference=_c2c,
    samples=calls(
        call(tensor(3, 4, dtype="complex64"), (1,)),
        call(tensor(3, 4, dtype="complex128"), (0, 1), False),
        call(tensor(5, dtype="complex64"), (-1,), True),
    ),
    errors=[
        error(RuntimeError, "unique", tensor(3, dtype="complex64"), (0, -1)),
        error(RuntimeError, "complex", tensor(3), (0,)),
    ],
)
def fft_c2c(input: Tensor, dim: Sequence[int], forward: bool = True) -> Tensor:
    """Complex transform along ``dim``, no factor in either direction. Same shape."""
    ...


@fft_c2c.vjp
def _(ct, dim, forward):
    return (fft_c2c(ct, dim, not forward),)


def _meta_r2c(input: Tensor, dim: Sequence[int], onesided: bool = True) -> TensorSpec:
    dims = checked_dims("rfft", input, dim)
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"fft_r2c: the input must be float32 or float64, got {input.dtype}")
    shape = list(input.shape)
    if onesided:
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    return TensorSpec(tuple(shape), COMPLEX[input.dtype], None, input.device)


def _r2c(input: Any, dim: Sequence[int], onesided: bool = True) -> Any:
    xp = array_namespace(input)
    out = (xp.fft.rfftn if onesided else xp.fft.fftn)(input, axes=tuple(dim))
    return out.astype(xp.complex64 if input.dtype == xp.float32 else xp.complex128, copy=False)


@primitive(
    meta=_meta_r2c,
    reference=_r2c,
    samples=calls(
        call(tensor(3, 4), (1,)), call(tensor(3, 5, dtype="float64"), (0, 1)), call(tensor(4, 3), (0,), False)
    ),
    errors=[error(RuntimeError, "float32", tensor(3, dtype="int64"), (0,))],
)
def fft_r2c(input: Tensor, dim: Sequence[int], onesided: bool = True) -> Tensor:
    """Transform of real values, no factor. ``onesided``: the last of ``dim`` keeps its n // 2 + 1 first frequencies."""
    ...


@fft_r2c.vjp
def _(ct, input, dim, onesided):
    if onesided:
        ct = resize(ct, dim[-1], input.shape[dim[-1]])
    return (ops.real(fft_c2c(ct, dim, False)),)


def _meta_c2r(input: Tensor, dim: Sequence[int], last_dim_size: Any) -> TensorSpec:
    dims = checked_dims("irfft", input, dim)
    if input.dtype.kind != "complex":
        raise RuntimeError(f"fft_c2r: the input must be complex, got {input.dtype}")
    shape = list(input.shape)
    shape[dims[-1]] = last_dim_size
    return TensorSpec(tuple(shape), _REAL[input.dtype], None, input.device)


def _c2r(input: Any, dim: Sequence[int], last_dim_size: Any) -> Any:
    xp = array_namespace(input)
    sizes = [input.shape[d] for d in dim[:-1]] + [last_dim_size]
    out = xp.fft.irfftn(input, sizes, axes=tuple(dim), norm="forward")
    return out.astype(xp.float32 if input.dtype == xp.complex64 else xp.float64, copy=False)


@primitive(
    meta=_meta_c2r,
    reference=_c2r,
    samples=calls(
        call(tensor(3, 4, dtype="complex64"), (1,), 6),
        call(tensor(3, 4, dtype="complex128"), (0, 1), 7),
    ),
    errors=[error(RuntimeError, "complex", tensor(3), (0,), 4)],
)
def fft_c2r(input: Tensor, dim: Sequence[int], last_dim_size: int) -> Tensor:
    """Backward transform of a half spectrum to ``last_dim_size`` real values along the last of ``dim``; no factor."""
    ...


@fft_c2r.vjp
def _(ct, input, dim, last_dim_size):
    spectrum = fft_r2c(ct, dim, True)
    place = canonical_dim("irfft", dim[-1], len(input.shape))
    index = positions(input, place)
    # every frequency but 0 (and n / 2 of an even n) stands for two of the whole spectrum
    inside = ops.logical_and(ops.gt(index, 0), ops.lt(ops.mul(index, 2), last_dim_size))
    paired = ops.convert_element_type(ops.where(inside, 2.0, 1.0), element_type(ct))
    return (ops.mul(spectrum, paired),)


def resize(input: Tensor, dim: int, size: Any) -> Tensor:
    """Cut or fill with zeros at the end of ``dim``."""
    have = input.shape[dim]
    if have == size:
        return input
    if size < have:
        return ops.slice(input, dim, 0, size)
    place = canonical_dim("fft", dim, len(input.shape))
    widths = [0, 0] * (len(input.shape) - 1 - place) + [0, size - have]
    return padded(input, widths)
