"""Short-time Fourier transforms: windows of a signal, each transformed, and back by overlap-add.

Source: Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984.
"""

from __future__ import annotations

from typing import Any

from lamina_fx import float32, float64

from ..arrays import element_type
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .windows import padded

__all__: list[str] = []


def _window(window: Any, n_fft: int, win_length: int, like: Tensor, dtype: Any) -> Tensor:
    """The window centred in ``n_fft`` samples; ones when there is none."""
    if window is None:
        window = ops.ones((win_length,), dtype=dtype, device=like.device)
    elif tuple(window.shape) != (win_length,):
        raise RuntimeError(
            f"stft: expected a 1D window tensor of size equal to win_length={win_length}, but got {list(window.shape)}"
        )
    before = (n_fft - win_length) // 2
    return window if win_length == n_fft else padded(window, (before, n_fft - win_length - before))


def _lengths(n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if hop <= 0 or not 0 < win <= n_fft:
        raise RuntimeError(
            f"stft: expected hop_length > 0 and 0 < win_length <= n_fft, but got {hop}, {win} and {n_fft}"
        )
    return hop, win


@composite(
    names=both("stft"),
    samples=calls(
        call(tensor(20), 8, window=tensor(8, low=0.1, high=1), return_complex=True),
        call(tensor(2, 21), 8, 3, 6, return_complex=True, normalized=True),
        call(tensor(2, 20), 8, 4, center=False, onesided=False, return_complex=True),
        call(tensor(20), 6, return_complex=False),
    ),
    errors=[
        error(RuntimeError, "window", tensor(20), 8, window=tensor(5), return_complex=True),
        error(RuntimeError, "hop_length", tensor(20), 8, 0, return_complex=True),
        error(RuntimeError, "1D or 2D", tensor(1, 1, 20), 8, return_complex=True),
    ],
)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Spectra of windows ``hop_length`` apart: (*, L) -> complex (*, frequencies, frames), or pairs of real numbers."""
    if len(input.shape) not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {list(input.shape)}")
    hop, win = _lengths(n_fft, hop_length, win_length)
    is_complex = element_type(input).kind == "complex"
    signal = input if len(input.shape) == 2 else ops.unsqueeze(input, 0)
    if center:
        signal = ops.nn_pad(signal, (n_fft // 2, n_fft // 2), pad_mode)
    weights = _window(window, n_fft, win, input, element_type(input))
    frames = ops.mul(ops.sliding_window(signal, (1,), (n_fft,), (hop,), (1,)), weights)
    half = not is_complex if onesided is None else onesided
    norm = "ortho" if normalized else None
    spectra = ops.rfft(frames, n_fft, -1, norm) if half else ops.fft(frames, n_fft, -1, norm)
    spectra = ops.mT(spectra)
    result = spectra if len(input.shape) == 2 else ops.squeeze(spectra, 0)
    return result if return_complex or is_complex else ops.view_as_real(result)


@composite(
    names=both("istft"),
    samples=calls(
        call(tensor(5, 11, dtype="complex64"), 8, window=tensor(8, low=0.5, high=1)),
        call(tensor(2, 5, 8, dtype="complex64"), 8, 3, 6, tensor(6, low=0.5, high=1), normalized=True, length=20),
    ),
    errors=[error(RuntimeError, "frequencies", tensor(4, 11, dtype="complex64"), 8)],
)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose short-time spectra are nearest: complex (*, frequencies, frames) -> (*, L)."""
    hop, win = _lengths(n_fft, hop_length, win_length)
    half = not return_complex if onesided is None else onesided
    if input.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise RuntimeError(f"istft: expected {n_fft // 2 + 1 if half else n_fft} frequencies, got {list(input.shape)}")
    spectra = ops.mT(input if len(input.shape) == 3 else ops.unsqueeze(input, 0))
    norm = "ortho" if normalized else None
    frames = ops.irfft(spectra, n_fft, -1, norm) if half else ops.ifft(spectra, n_fft, -1, norm)
    if half is False and not return_complex:
        frames = ops.real(frames)
    weights = _window(window, n_fft, win, input, _real_dtype(frames))
    count = frames.shape[1]
    total = n_fft + hop * (count - 1)
    signal = ops.overlap_add(ops.mul(frames, weights), (1,), (total,), (hop,), (1,))
    squares = ops.expand(ops.mul(weights, weights), (count, n_fft))
    envelope = ops.overlap_add(squares, (0,), (total,), (hop,), (1,))
    start = n_fft // 2 if center else 0
    end = total - (n_fft // 2 if center else 0) if length is None else min(start + length, total)
    result = ops.div(ops.slice(signal, 1, start, end), ops.slice(envelope, 0, start, end))
    if length is not None and end - start < length:
        result = padded(result, (0, length - (end - start)))
    return result if len(input.shape) == 3 else ops.squeeze(result, 0)


def _real_dtype(value: Tensor) -> Any:
    dtype = element_type(value)
    return dtype if dtype.kind == "float" else float32 if dtype.itemsize == 8 else float64
