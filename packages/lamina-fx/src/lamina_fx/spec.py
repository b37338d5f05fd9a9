"""What is known of a value without computing it: shape, dtype, strides and device.

>>> from lamina_fx import float32
>>> TensorSpec((2, 3), float32)
float32[2, 3]
>>> TensorSpec((2, 3), float32, (1, 2)).strides
(1, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from .device import CPU, Device
from .dtype import DType
from .expect import wrong_kind

if TYPE_CHECKING:
    from .symbolic import SymInt

__all__ = ["ScalarSpec", "Size", "Spec", "TensorSpec", "contiguous_strides", "same_sizes"]

Size = Union[int, "SymInt"]
"""A dimension: an integer, or a symbolic one."""


def contiguous_strides(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Row-major strides, in elements. A dimension of size 0 counts as 1, as in PyTorch."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * (size if type(size) is not int or size > 1 else 1)
    strides.reverse()
    return tuple(strides)


def same_sizes(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Are the sizes equal as expressions? Never guards, unlike ``==`` of symbolic sizes."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):  # noqa: SIM110  (a loop is faster than all() of a generator here)
        if x is not y and not _same(x, y):
            return False
    return True


def _same(x: Size, y: Size) -> bool:
    if type(x) is int and type(y) is int:
        return x == y
    return getattr(x, "expr", x) == getattr(y, "expr", y)  # expressions are interned


class TensorSpec:
    """Shape, dtype, strides (in elements) and device of a tensor. Immutable and hashable.

    ``strides=None`` means contiguous. Two specs are equal when all four agree; symbolic sizes agree when their
    expressions do, and comparing adds no guard.
    """

    __slots__ = ("device", "dtype", "shape", "strides")

    shape: tuple[Size, ...]
    dtype: DType
    strides: tuple[Size, ...]
    device: Device

    def __init__(
        self,
        shape: Sequence[Size],
        dtype: DType,
        strides: Sequence[Size] | None = None,
        device: Device = CPU,
    ) -> None:
        try:
            self.shape = tuple(shape)
            self.strides = contiguous_strides(self.shape) if strides is None else tuple(strides)
        except TypeError:
            words = "a shape and strides that are sequences of sizes"
            raise wrong_kind("TensorSpec", (shape, strides), words) from None
        if type(dtype) is not DType:
            raise wrong_kind("TensorSpec", dtype, "a dtype of lamina_fx, such as float32")
        self.dtype = dtype
        if type(device) is not Device:
            raise wrong_kind("TensorSpec", device, "a Device, such as Device('cpu')")
        self.device = device

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def numel(self) -> Size:
        """Number of elements."""
        count: Size = 1
        for size in self.shape:
            count = count * size
        return count

    def is_contiguous(self) -> bool:
        """True when the strides are row-major (dimensions of size 1 do not matter), or there are no elements."""
        if 0 in [size for size in self.shape if type(size) is int]:
            return True
        step: Size = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if stride is not step and not _same(stride, step) and not (type(size) is int and size == 1):
                return False
            step = step * (size if type(size) is not int or size > 1 else 1)
        return True

    def replace(self, **changes: object) -> TensorSpec:
        """A copy with some fields changed. A new shape without new strides is contiguous."""
        shape = changes.pop("shape", None)
        strides = changes.pop("strides", None if shape is not None else self.strides)
        dtype = changes.pop("dtype", self.dtype)
        device = changes.pop("device", self.device)
        if changes:
            raise TypeError(f"TensorSpec has no field {', '.join(changes)}")
        return TensorSpec(self.shape if shape is None else shape, dtype, strides, device)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (
            self.dtype is other.dtype
            and len(self.shape) == len(other.shape)
            and same_sizes(self.shape, other.shape)
            and same_sizes(self.strides, other.strides)
            and self.device == other.device
        )

    def __hash__(self) -> int:
        return hash((len(self.shape), self.dtype, tuple([s for s in self.shape if type(s) is int])))

    def __repr__(self) -> str:
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if not same_sizes(self.strides, contiguous_strides(self.shape)):
            text += f"@({', '.join(map(str, self.strides))})"
        return text if self.device == CPU else f"{text} {self.device}"


class ScalarSpec:
    """A Python number in a graph: ``kind`` is bool, int, float or complex (the type itself)."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: type, value: object = None) -> None:
        if not isinstance(kind, type):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise wrong_kind("ScalarSpec", kind, "bool, int, float or complex (the type)")
        self.kind = kind
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScalarSpec) and (self.kind, self.value) == (other.kind, other.value)

    def __hash__(self) -> int:
        return hash((self.kind, self.value))

    def __repr__(self) -> str:
        return self.kind.__name__ if self.value is None else f"{self.kind.__name__}={self.value}"


Spec = Union[TensorSpec, ScalarSpec, tuple["Spec", ...], None]
"""Spec of a node: a tensor, a scalar, a tuple of specs (several outputs), or unknown."""
