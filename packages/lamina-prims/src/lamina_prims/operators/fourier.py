"""Discrete Fourier transforms: three unnormalised primitives, and the ``fft`` namespace on top of them.

Cooley and Tukey 1965 is what the external libraries do; here only lengths, norms and gradients are decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lamina_fx import DType, TensorSpec, complex64, complex128, float32, float64

from ..arrays import array_dtype, array_namespace
from ..dims import canonical_dim
from ..registry import composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .pointwise import conjugate
from .windows import padded

__all__ = ["fft_c2c", "fft_c2r", "fft_r2c"]

_COMPLEX = {float32: complex64, float64: complex128, complex64: complex64, complex128: complex128}
_REAL = {complex64: float32, complex128: float64, float32: float32, float64: float64}


def _dims(name: str, input: Tensor, dim: Sequence[int]) -> tuple[int, ...]:
    result = tuple(canonical_dim(name, d, len(input.shape)) for d in dim)
    if len(set(result)) != len(result):
        raise RuntimeError(f"{name}: FFT dims must be unique, got {tuple(dim)}")
    return result


def _meta_c2c(input: Tensor, dim: Sequence[int], forward: bool = True) -> TensorSpec:
    _dims("fft", input, dim)
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
    dims = _dims("rfft", input, dim)
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"fft_r2c: the input must be float32 or float64, got {input.dtype}")
    shape = list(input.shape)
    if onesided:
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    return TensorSpec(tuple(shape), _COMPLEX[input.dtype], None, input.device)


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
        ct = _resize(ct, dim[-1], input.shape[dim[-1]])
    return (ops.real(fft_c2c(ct, dim, False)),)


def _meta_c2r(input: Tensor, dim: Sequence[int], last_dim_size: Any) -> TensorSpec:
    dims = _dims("irfft", input, dim)
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
    shape = [1] * len(input.shape)
    count = input.shape[place]
    shape[place] = count
    index = ops.reshape(ops.arange(count, device=input.device), shape)
    # every frequency but 0 (and n / 2 of an even n) stands for two of the whole spectrum
    paired = _real_like(spectrum, ops.where((index > 0) & (index * 2 < last_dim_size), 2.0, 1.0))
    return (ops.mul(spectrum, paired),)


def _dtype(value: Tensor) -> DType:
    return value.dtype if type(value.dtype) is DType else array_dtype(value.dtype)


def _real_like(value: Tensor, factor: Tensor) -> Tensor:
    return ops.convert_element_type(factor, _REAL[_dtype(value)])


def _resize(input: Tensor, dim: int, size: Any) -> Tensor:
    """Cut or fill with zeros at the end of ``dim``."""
    have = input.shape[dim]
    if have == size:
        return input
    if size < have:
        return ops.slice(input, dim, 0, size)
    place = canonical_dim("fft", dim, len(input.shape))
    widths = [0, 0] * (len(input.shape) - 1 - place) + [0, size - have]
    return padded(input, widths)


def _scale(value: Tensor, norm: str | None, count: Any, forward: bool) -> Tensor:
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f"fft: invalid normalization mode {norm!r}; use 'backward', 'forward' or 'ortho'")
    if norm == "ortho":
        return ops.mul(value, 1.0 / math.sqrt(count))
    if (norm == "forward") == forward:
        return ops.mul(value, 1.0 / count)
    return value


def _as(input: Tensor, kind: str) -> Tensor:
    have = _dtype(input)
    base = have if have in _COMPLEX else float32
    want = _COMPLEX[base] if kind == "complex" else base
    if kind == "float" and have.kind == "complex":
        raise RuntimeError(f"rfft expects a real input tensor, but got {have}")
    return input if have is want else ops.convert_element_type(input, want)


def _lengths(
    name: str, input: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None
) -> tuple[tuple[int, ...], list[Any]]:
    rank = len(input.shape)
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(s), rank)
    dims = _dims(name, input, tuple(dim))
    sizes = [input.shape[d] for d in dims] if s is None else list(s)
    if len(sizes) != len(dims):
        raise RuntimeError(f"{name}: s and dim must have the same length, got {s} and {dim}")
    sizes = [input.shape[d] if type(n) is int and n == -1 else n for n, d in zip(sizes, dims, strict=True)]
    for n in sizes:
        if type(n) is int and n < 1:
            raise RuntimeError(f"{name}: invalid number of data points ({n}) specified")
    return dims, sizes


def _transform(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    dims, sizes = _lengths(name, input, s, dim)
    value = _as(input, "complex")
    for d, n in zip(dims, sizes, strict=True):
        value = _resize(value, d, n)
    return _scale(fft_c2c(value, dims, forward), norm, math.prod(sizes), forward)


def _real_forward(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool = True) -> Tensor:
    dims, sizes = _lengths(name, input, s, dim)
    value = _as(input, "float")
    for d, n in zip(dims, sizes, strict=True):
        value = _resize(value, d, n)
    return _scale(fft_r2c(value, dims, True), norm, math.prod(sizes), forward)


def _real_backward(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool = False) -> Tensor:
    dims, sizes = _lengths(name, input, s, dim)
    if s is None or (type(s[-1]) is int and s[-1] == -1):
        sizes[-1] = 2 * (input.shape[dims[-1]] - 1)
    value = _as(input, "complex")
    for d, n in zip(dims, [*sizes[:-1], sizes[-1] // 2 + 1], strict=True):
        value = _resize(value, d, n)
    return _scale(fft_c2r(value, dims, sizes[-1]), norm, math.prod(sizes), forward)


def _one(n: int | None) -> tuple[int] | None:
    return None if n is None else (n,)


_C = tensor(3, 4, dtype="complex64")
_R = tensor(3, 4)
_ONE = calls(call(_R), call(_C, 6), call(_C, 2, 0, "ortho"), call(_C, norm="forward"))
_RONE = calls(
    call(_R), call(_R, 6), call(tensor(5, 2), None, 0, "ortho"), call(tensor(4, dtype="int64"), norm="forward")
)
_ND = calls(call(_R), call(_C, (2, 6)), call(_C, None, (0,), "ortho"))
_RND = calls(call(_R), call(_R, (2, 5)), call(_R, None, (0,), "ortho"))
_BADNORM = [error(RuntimeError, "normalization", tensor(4, 4), norm="half")]


@composite(names=("fft.fft",), samples=_ONE, errors=_BADNORM)
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Discrete Fourier transform along ``dim``, cut or zero-filled to ``n``. Complex result."""
    return _transform("fft", input, _one(n), (dim,), norm, True)


@composite(names=("fft.ifft",), samples=_ONE, errors=_BADNORM)
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of ``fft``."""
    return _transform("ifft", input, _one(n), (dim,), norm, False)


@composite(names=("fft.rfft",), samples=_RONE, errors=[*_BADNORM, error(RuntimeError, "real", _C)])
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The n // 2 + 1 first frequencies of a real signal."""
    return _real_forward("rfft", input, _one(n), (dim,), norm)


@composite(names=("fft.irfft",), samples=_ONE, errors=_BADNORM)
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of ``rfft``: ``n`` real values (2 (m - 1) when not given)."""
    return _real_backward("irfft", input, _one(n), (dim,), norm)


@composite(names=("fft.hfft",), samples=_ONE)
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Transform of a Hermitian half signal: real result."""
    return _real_backward("hfft", conjugate(_as(input, "complex")), _one(n), (dim,), norm, True)


@composite(names=("fft.ihfft",), samples=_RONE)
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of ``hfft``."""
    return conjugate(_real_forward("ihfft", input, _one(n), (dim,), norm, False))


@composite(names=("fft.fft2",), samples=_ND)
def fft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform along two dimensions."""
    return _transform("fft2", input, s, dim, norm, True)


@composite(names=("fft.ifft2",), samples=_ND)
def ifft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Inverse of ``fft2``."""
    return _transform("ifft2", input, s, dim, norm, False)


@composite(names=("fft.fftn",), samples=_ND)
def fftn(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """Transform along several dimensions (all by default)."""
    return _transform("fftn", input, s, dim, norm, True)


@composite(names=("fft.ifftn",), samples=_ND)
def ifftn(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """Inverse of ``fftn``."""
    return _transform("ifftn", input, s, dim, norm, False)


@composite(names=("fft.rfft2",), samples=_RND)
def rfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform of real values along two dimensions, half of the last."""
    return _real_forward("rfft2", input, s, dim, norm)


@composite(names=("fft.irfft2",), samples=_ND)
def irfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Inverse of ``rfft2``."""
    return _real_backward("irfft2", input, s, dim, norm)


@composite(names=("fft.rfftn",), samples=_RND)
def rfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """Transform of real values along several dimensions, half of the last."""
    return _real_forward("rfftn", input, s, dim, norm)


@composite(names=("fft.irfftn",), samples=_ND)
def irfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """Inverse of ``rfftn``."""
    return _real_backward("irfftn", input, s, dim, norm)


def _shifts(input: Tensor, dim: Any, back: bool) -> tuple[list[Any], list[int]]:
    rank = len(input.shape)
    dims = list(range(rank)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return [(input.shape[d] + 1) // 2 if back else input.shape[d] // 2 for d in dims], dims


@composite(names=("fft.fftshift",), samples=calls(call(tensor(4, 5)), call(tensor(4, 5), 1)))
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move frequency 0 to the middle."""
    return ops.roll(input, *_shifts(input, dim, False))


@composite(names=("fft.ifftshift",), samples=calls(call(tensor(4, 5)), call(tensor(4, 5), 1)))
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Inverse of ``fftshift``."""
    return ops.roll(input, *_shifts(input, dim, True))
