"""Fast kernels on NumPy arrays for the operators that programs call most.

An operator without an entry runs its reference from lamina_prims. An entry is either a ufunc, which is right as it is
for the listed kinds of dtype (operands of one dtype, result of that dtype or bool), or a function of arrays that may
return ``NotImplemented`` for what only the reference knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from lamina_fx import DTYPES

__all__ = ["KERNELS", "Ufunc", "UFUNCS", "dtype_mask"]


@dataclass(frozen=True, slots=True)
class Ufunc:
    """A ufunc, its number of operands, the kinds of dtype for which it is right, whether the result is bool."""

    function: np.ufunc
    arity: int
    kinds: str = "int float complex"
    bool_result: bool = False


def dtype_mask(kinds: str) -> int:
    """Bit mask of the dtype codes of these kinds. float16, bfloat16 and float8 round as the reference says."""
    wanted = kinds.split()
    return sum(1 << d.code for d in DTYPES if d.kind in wanted and not (d.kind == "float" and d.itemsize < 4))


UFUNCS: dict[str, Ufunc] = {
    "add": Ufunc(np.add, 2),
    "sub": Ufunc(np.subtract, 2),
    "mul": Ufunc(np.multiply, 2),
    "div": Ufunc(np.true_divide, 2, "float complex"),
    "maximum": Ufunc(np.maximum, 2, "int float"),
    "minimum": Ufunc(np.minimum, 2, "int float"),
    "neg": Ufunc(np.negative, 1, "float complex"),
    "exp": Ufunc(np.exp, 1, "float"),
    "log": Ufunc(np.log, 1, "float"),
    "sqrt": Ufunc(np.sqrt, 1, "float"),
    "sin": Ufunc(np.sin, 1, "float"),
    "cos": Ufunc(np.cos, 1, "float"),
    "tanh": Ufunc(np.tanh, 1, "float"),
    "abs": Ufunc(np.absolute, 1, "int float"),
    "eq": Ufunc(np.equal, 2, "bool int float complex", True),
    "ne": Ufunc(np.not_equal, 2, "bool int float complex", True),
    "lt": Ufunc(np.less, 2, "bool int float", True),
    "le": Ufunc(np.less_equal, 2, "bool int float", True),
    "gt": Ufunc(np.greater, 2, "bool int float", True),
    "ge": Ufunc(np.greater_equal, 2, "bool int float", True),
    "logical_and": Ufunc(np.logical_and, 2, "bool", True),
    "logical_or": Ufunc(np.logical_or, 2, "bool", True),
    "logical_not": Ufunc(np.logical_not, 1, "bool", True),
}

_add_reduce = np.add.reduce
_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def _axis(dim: Any) -> Any:
    if dim is None or type(dim) is int:
        return dim
    if type(dim) in (tuple, list):
        return tuple(dim) or None
    return NotImplemented


def _sum(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    axis = _axis(dim)
    if dtype is not None or input.dtype not in _FLOATS or axis is NotImplemented or not input.ndim:
        return NotImplemented
    return _add_reduce(input, axis, None, None, keepdim)


def _matmul(input: Any, other: Any) -> Any:
    if input.dtype not in _FLOATS or other.dtype != input.dtype or input.ndim != 2 or other.ndim != 2:
        return NotImplemented
    return np.matmul(input, other)


KERNELS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "matmul": _matmul,
}
