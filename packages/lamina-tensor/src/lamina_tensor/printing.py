"""``repr`` of tensors, laid out as PyTorch does."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lamina_fx import bool_, complex64, float64, int64
from lamina_prims.promotion import get_default_dtype

from .storage import on_device

__all__ = ["PrintOptions", "set_printoptions", "tensor_text"]


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """How tensors are printed; see ``set_printoptions``."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = PrintOptions()
_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed: digits, when to summarise, items at each edge, width, scientific notation.

    Raises:
        ValueError: no such profile.
    """
    global _options
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"no profile {profile!r}; known: {', '.join(_PROFILES)}")
        _options = _PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options = replace(_options, **{k: v for k, v in given.items() if v is not None}, sci_mode=sci_mode)


class _Formatter:
    """Turns the elements of one array into texts of one width."""

    def __init__(self, shown: np.ndarray[Any, Any]) -> None:
        self.kind = shown.dtype.kind
        self.width = 1
        self.scientific, self.whole = False, True
        flat = shown.reshape(-1)
        if self.kind in "biu":
            self.width = max([len(str(v)) for v in flat.tolist()], default=1)
            return
        values = np.abs(flat[np.isfinite(flat) & (flat != 0)].astype(np.float64))
        if values.size:
            largest, smallest = float(values.max()), float(values.min())
            self.whole = bool(np.all(values == np.ceil(values)))
            wide = largest / smallest > 1000.0 or largest > 1.0e8
            self.scientific = wide if self.whole else wide or smallest < 1.0e-4
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
        counted = flat[(flat != 0) & np.isfinite(flat)]
        texts = [self._number(float(v)) for v in counted.tolist()]
        self.width = max([len(t) for t in texts], default=1)

    def _number(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{_options.precision}e}"
        if self.whole:
            text = f"{value:.0f}"
            return f"{text}." if math.isfinite(value) else text
        return f"{value:.{_options.precision}f}"

    def text(self, value: Any) -> str:
        """One element, padded."""
        return (str(value) if self.kind in "biu" else self._number(float(value))).rjust(self.width)


class _ComplexFormatter:
    """Real and imaginary parts, each with its own formatter."""

    def __init__(self, shown: np.ndarray[Any, Any]) -> None:
        self.real, self.imaginary = _Formatter(shown.real), _Formatter(shown.imag)
        self.imaginary.scientific = self.real.scientific = self.real.scientific or self.imaginary.scientific
        self.width = self.real.width + self.imaginary.width + 1

    def text(self, value: complex) -> str:
        """One element."""
        imaginary = self.imaginary.text(value.imag).lstrip()
        sign = "" if imaginary[0] in "+-" else "+"
        return f"{self.real.text(value.real)}{sign}{imaginary}j"


def _summarised(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements that a summary shows."""
    edge = _options.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = np.concatenate([array.take(range(edge), axis), array.take(range(size - edge, size), axis)], axis)
    return array


def _vector(array: Any, indent: int, summary: bool, formatter: Any) -> str:
    edge = _options.edgeitems
    per_line = max(1, (_options.linewidth - indent) // (formatter.width + 2))
    if summary and array.size > 2 * edge:
        texts = [formatter.text(v) for v in array[:edge].tolist()]
        texts += [" ..."] + [formatter.text(v) for v in array[-edge:].tolist()]
    else:
        texts = [formatter.text(v) for v in array.tolist()]
    lines = [texts[i : i + per_line] for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _nested(array: Any, indent: int, summary: bool, formatter: Any) -> str:
    if array.ndim == 0:
        return formatter.text(array.item())
    if array.ndim == 1:
        return _vector(array, indent, summary, formatter)
    edge = _options.edgeitems
    if summary and len(array) > 2 * edge:
        parts = [_nested(a, indent + 1, summary, formatter) for a in array[:edge]]
        parts += ["..."] + [_nested(a, indent + 1, summary, formatter) for a in array[-edge:]]
    else:
        parts = [_nested(a, indent + 1, summary, formatter) for a in array]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _elements(array: np.ndarray[Any, Any], indent: int) -> str:
    if array.dtype.num >= 256 or array.dtype == np.float16:  # bfloat16 and float8
        array = array.astype(np.float32)
    summary = array.size > _options.threshold
    shown = _summarised(array) if summary else array
    formatter = _ComplexFormatter(shown) if array.dtype.kind == "c" else _Formatter(shown)
    return _nested(array, indent, summary, formatter)


def tensor_text(tensor: Any) -> str:
    """The text of a tensor: values, and what they do not show (dtype, gradient history, empty shape)."""
    from .tensor import Tensor

    name = type(tensor).__name__
    opening = "tensor(" if type(tensor) is Tensor else f"{name}("
    suffixes = []
    array, dtype = tensor._values("print") if on_device(tensor) else tensor._array, tensor.dtype
    default = get_default_dtype()
    implied = dtype is default or dtype in (bool_, int64) or (dtype is complex64 and default is not float64)
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if array is None:
        contents = "..."
        suffixes += [f"size={tuple(tensor.shape)}", f"dtype={dtype!r}"]
        opening = f"{type(tensor.storage).__name__.removesuffix('Storage')}Tensor("
    elif array.size == 0:
        contents = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        if dtype is not default:
            suffixes.append(f"dtype={dtype!r}")
    else:
        contents = _elements(array, len(opening))
        if not implied:
            suffixes.append(f"dtype={dtype!r}")
    node = tensor.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif tensor._requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(opening + contents, suffixes, len(opening))


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    last = len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in suffixes:
        if last + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    return "".join(parts) + ")"
