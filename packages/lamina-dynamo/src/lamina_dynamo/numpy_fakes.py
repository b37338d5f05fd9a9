"""Stand-ins for NumPy's arrays, and the shapes of results in the sizes of the arguments, which may be symbolic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina_fx.symbolic import SymInt

__all__ = ["FakeArray", "broadcast_shape", "known_shape"]

_REDUCTIONS = frozenset(
    f"{where}.{name}"
    for where in ("numpy", "ndarray")
    for name in ("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin", "std", "var")
)
_PRODUCTS = frozenset(["operator.matmul", "numpy.matmul", "numpy.dot", "ndarray.dot"])


class FakeArray:
    """Shape and dtype of an array; ``scalar`` for NumPy's scalars, which are immutable."""

    __slots__ = ("dtype", "scalar", "shape")

    def __init__(self, shape: Sequence[Any], dtype: np.dtype[Any], scalar: bool = False) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.scalar = scalar

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def ones(self) -> Any:
        """Real data of this shape (sizes by their hints), without memory for it."""
        one = np.ones((), self.dtype)
        if self.scalar:
            return one[()]
        return np.broadcast_to(one, [s.hint if isinstance(s, SymInt) else s for s in self.shape])

    def __repr__(self) -> str:
        return f"FakeArray({self.shape}, {self.dtype})"


def broadcast_shape(shapes: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The broadcast shape; comparing symbolic sizes guards them."""
    result: list[Any] = []
    for shape in shapes:
        missing = len(shape) - len(result)
        if missing > 0:
            result = [1] * missing + result
        for position in range(1, len(shape) + 1):
            size, have = shape[-position], result[-position]
            if have is not size and (
                (type(have) is int and have == 1) or (not (type(size) is int and size == 1) and bool(have == 1))
            ):
                result[-position] = size
            elif have is not size and not (type(size) is int and size == 1):
                bool(size == have)
    return tuple(result)


def known_shape(id: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """The result's shape in the sizes of the arguments, which stay symbolic; None where only the sizes' values tell."""
    first = args[0] if args else None
    if type(first) is not FakeArray:
        return None
    if id == "attribute.T":
        return first.shape[::-1]
    if id in _REDUCTIONS and len(args) <= 2:
        return _reduced(first.shape, kwargs.get("axis", args[1] if len(args) == 2 else None), kwargs.get("keepdims"))
    if id in _PRODUCTS and len(args) == 2 and type(args[1]) is FakeArray and first.ndim == args[1].ndim == 2:
        bool(first.shape[1] == args[1].shape[0])  # a guard where they are symbolic: of ones they agree
        return first.shape[0], args[1].shape[1]
    return None


def _reduced(shape: tuple[Any, ...], axis: Any, keepdims: Any) -> tuple[Any, ...] | None:
    axes = range(len(shape)) if axis is None else axis if type(axis) is tuple else (axis,)
    if any(type(a) is not int for a in axes):
        return None
    gone = {a % len(shape) for a in axes}
    if keepdims:
        return tuple(1 if d in gone else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in gone)
