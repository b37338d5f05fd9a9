"""The ``fft`` namespace: lengths, norms and several dimensions on top of the primitives of ``fourier``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lamina_fx import Device, DType, float32

from ..arrays import element_type
from ..promotion import get_default_dtype
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .fourier import COMPLEX, checked_dims, fft_c2c, fft_c2r, fft_r2c, resize
from .pointwise import conjugate

__all__: list[str] = []


def _scale(value: Tensor, norm: str | None, count: Any, forward: bool) -> Tensor:
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f"fft: invalid normalization mode {norm!r}; use 'backward', 'forward' or 'ortho'")
    if norm == "ortho":
        return ops.mul(value, 1.0 / math.sqrt(count))
    if (norm == "forward") == forward:
        return ops.mul(value, 1.0 / count)
    return value


def _as(input: Tensor, kind: str) -> Tensor:
    have = element_type(input)
    base = have if have in COMPLEX else float32
    want = COMPLEX[base] if kind == "complex" else base
    if kind == "float" and have.kind == "complex":
        raise RuntimeError(f"rfft expects a real input tensor, but got {have}")
    return input if have is want else ops.convert_element_type(input, want)


def _lengths(
    name: str, input: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None
) -> tuple[tuple[int, ...], list[Any]]:
    rank = len(input.shape)
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(s), rank)
    dims = checked_dims(name, input, tuple(dim))
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
        value = resize(value, d, n)
    return _scale(fft_c2c(value, dims, forward), norm, math.prod(sizes), forward)


def _real_forward(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool = True) -> Tensor:
    dims, sizes = _lengths(name, input, s, dim)
    value = _as(input, "float")
    for d, n in zip(dims, sizes, strict=True):
        value = resize(value, d, n)
    return _scale(fft_r2c(value, dims, True), norm, math.prod(sizes), forward)


def _real_backward(name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool = False) -> Tensor:
    dims, sizes = _lengths(name, input, s, dim)
    if s is None or (type(s[-1]) is int and s[-1] == -1):
        sizes[-1] = 2 * (input.shape[dims[-1]] - 1)
    value = _as(input, "complex")
    for d, n in zip(dims, [*sizes[:-1], sizes[-1] // 2 + 1], strict=True):
        value = resize(value, d, n)
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


@composite(names=("fft.hfft2",), samples=_ND)
def hfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform of a signal that is Hermitian in the last of two dimensions: real result."""
    return hfftn(input, s, dim, norm)


@composite(names=("fft.hfftn",), samples=_ND)
def hfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """Transform of a signal that is Hermitian in the last dimension: real result."""
    return _real_backward("hfftn", conjugate(_as(input, "complex")), s, dim, norm, True)


@composite(names=("fft.ihfft2",), samples=_RND)
def ihfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Inverse of ``hfft2``."""
    return ihfftn(input, s, dim, norm)


@composite(names=("fft.ihfftn",), samples=_RND)
def ihfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """Inverse of ``hfftn``."""
    return conjugate(_real_forward("ihfftn", input, s, dim, norm, False))


@composite(names=("fft.fftfreq",), samples=calls(call(5), call(6, 0.5)))
def fftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """The frequencies of ``fft``'s results: 0, 1, ..., then the negative ones, over n d."""
    index = ops.arange(n, device=device)
    wrapped = ops.where(ops.ge(index, (n + 1) // 2), ops.sub(index, n), index)
    return ops.mul(ops.convert_element_type(wrapped, dtype or get_default_dtype()), 1.0 / (n * d))


@composite(names=("fft.rfftfreq",), samples=calls(call(5), call(6, 0.5)))
def rfftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """The frequencies of ``rfft``'s results: 0 to n // 2, over n d."""
    index = ops.arange(n // 2 + 1, device=device)
    return ops.mul(ops.convert_element_type(index, dtype or get_default_dtype()), 1.0 / (n * d))
