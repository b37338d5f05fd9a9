"""What the user says about sizes: `mark_dynamic`, `mark_static`, `maybe_mark_dynamic`.

A mark belongs to one array object and lives as long as it.

>>> import numpy as np
>>> x = np.zeros((4, 3))
>>> mark_dynamic(x, 0, lower=2)
>>> mark_of(x, 0)
SizeMark(policy='dynamic', lower=2, upper=None)
>>> mark_of(x, 1) is None
True
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

__all__ = ["SizeMark", "mark_dynamic", "mark_of", "mark_static", "maybe_mark_dynamic"]


@dataclass(frozen=True, slots=True)
class SizeMark:
    """How a size is treated: ``"dynamic"`` (symbolic from the first call; an error where the program pins it),
    ``"maybe"`` (symbolic unless the program pins it) or ``"static"`` (never symbolic), with the range the user
    promises."""

    policy: str
    lower: int | None = None
    upper: int | None = None


_MARKS: dict[int, dict[int, SizeMark]] = {}


def _mark(array: object, dim: int | None, mark: SizeMark) -> None:
    shape = _checked_shape(array, dim)
    key = id(array)
    if key not in _MARKS:
        _MARKS[key] = {}
        weakref.finalize(array, _MARKS.pop, key, None).atexit = False
    for d in range(len(shape)) if dim is None else (dim % len(shape),):
        _MARKS[key][d] = mark


def _checked_shape(array: object, dim: int | None) -> tuple[int, ...]:
    shape = getattr(array, "shape", None)
    if shape is None:
        raise TypeError(
            f"expected an array or tensor, whose size in a dimension is marked; got {type(array).__name__} {array!r} "
            "(numbers need no mark: one that changes becomes symbolic by itself)"
        )
    if dim is not None and type(dim) is not int:
        raise TypeError(f"dim must be an int, got {type(dim).__name__} {dim!r}")
    if dim is not None and not -len(shape) <= dim < len(shape):
        raise IndexError(f"dim {dim} is out of range for an array with {len(shape)} dimensions")
    return shape


def mark_dynamic(array: object, dim: int, *, lower: int | None = None, upper: int | None = None) -> None:
    """Compile for any size of `dim` (from `lower` to `upper`) from the first call on.

    Without ``lower`` sizes 0 and 1 get programs of their own: how results are laid out depends on them.

    Raises:
        TypeError: `array` has no shape. IndexError: no such dimension. ValueError: the range is empty or excludes
            the size.
    """
    size = _checked_shape(array, dim)[dim]
    if (lower is not None and size < lower) or (upper is not None and size > upper):
        raise ValueError(f"dim {dim} has size {size}, outside the range {lower} to {upper}")
    _mark(array, dim, SizeMark("dynamic", lower, upper))


def maybe_mark_dynamic(array: object, dim: int) -> None:
    """As `mark_dynamic`, but a program that needs the size as a constant may pin it."""
    _mark(array, dim, SizeMark("maybe"))


def mark_static(array: object, dim: int | None = None) -> None:
    """Compile for exactly this size of `dim`, or of every dimension, also after other sizes were seen."""
    _mark(array, dim, SizeMark("static"))


def mark_of(array: object, dim: int) -> SizeMark | None:
    """The mark of a dimension, if any."""
    marks = _MARKS.get(id(array))
    return marks.get(dim) if marks is not None else None
