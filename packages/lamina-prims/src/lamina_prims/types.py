"""Names for annotations in operator declarations. The schema of an operator is read from these words.

``Tensor`` stands for a value of any of the kinds an operator can be called on: an eager tensor, a proxy, a NumPy
or CuPy array, or (in ``meta`` functions) a ``TensorSpec``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from lamina_fx import Device, DType

__all__ = ["Scalar", "Shape", "Size", "Tensor"]


@runtime_checkable
class Tensor(Protocol):
    """What operator bodies may ask of a tensor; everything else is done by calling operators on it."""

    @property
    def shape(self) -> tuple[Size, ...]:
        """Sizes."""
        ...

    @property
    def dtype(self) -> DType:
        """Element type."""
        ...

    @property
    def device(self) -> Device:
        """Where it lives."""
        ...

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        ...

    def __add__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __neg__(self) -> Tensor: ...


Scalar = Any
"""A Python number, perhaps symbolic. For a type checker it is anything: bodies do arithmetic on it."""
Size = Any
"""One size: an int or a symbolic one."""
Shape = Sequence[Any]
"""Sizes."""
