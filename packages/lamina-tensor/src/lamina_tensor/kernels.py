"""Fast kernels on NumPy arrays for the operators that programs call most.

An operator without an entry runs its reference from lamina_prims, or its body. ``UFUNCS`` are right as they are for
the listed kinds of dtype (operands of one dtype, result of that dtype or bool). ``KERNELS`` are functions of arrays
and ``VIEWS`` give views of their first argument; both may return ``NotImplemented`` for what they do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamina_fx import DTYPES

__all__ = ["KERNELS", "UFUNCS", "VIEWS", "Ufunc", "dtype_mask"]


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
    "log1p": Ufunc(np.log1p, 1, "float"),
    "expm1": Ufunc(np.expm1, 1, "float"),
    "sqrt": Ufunc(np.sqrt, 1, "float"),
    "reciprocal": Ufunc(np.reciprocal, 1, "float"),
    "sin": Ufunc(np.sin, 1, "float"),
    "cos": Ufunc(np.cos, 1, "float"),
    "tanh": Ufunc(np.tanh, 1, "float"),
    "abs": Ufunc(np.absolute, 1, "int float"),
    "floor": Ufunc(np.floor, 1, "float"),
    "ceil": Ufunc(np.ceil, 1, "float"),
    "sign": Ufunc(np.sign, 1, "int"),
    "eq": Ufunc(np.equal, 2, "bool int float complex", True),
    "ne": Ufunc(np.not_equal, 2, "bool int float complex", True),
    "lt": Ufunc(np.less, 2, "bool int float", True),
    "le": Ufunc(np.less_equal, 2, "bool int float", True),
    "gt": Ufunc(np.greater, 2, "bool int float", True),
    "ge": Ufunc(np.greater_equal, 2, "bool int float", True),
    "bitwise_and": Ufunc(np.bitwise_and, 2, "bool int"),
    "bitwise_or": Ufunc(np.bitwise_or, 2, "bool int"),
    "bitwise_xor": Ufunc(np.bitwise_xor, 2, "bool int"),
    "bitwise_not": Ufunc(np.invert, 1, "bool int"),
}

_add_reduce = np.add.reduce
_max_reduce = np.maximum.reduce
_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
_BOOL = np.dtype(bool)
_ZERO = {d: d.type(0) for d in _FLOATS}


def _axis(dim: Any) -> Any:
    if dim is None or type(dim) is int:
        return dim
    if type(dim) in (tuple, list):
        return tuple(dim) or None
    return NotImplemented


def _row_major(input: Any) -> bool:
    """NumPy reduces others to arrays of their order, where the rule says row-major."""
    return input.flags.c_contiguous


def _sum(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    axis = _axis(dim)
    if input.dtype not in _FLOATS or axis is NotImplemented or not input.ndim or not _row_major(input):
        return NotImplemented
    return _add_reduce(input, axis, None, None, keepdim)


def _mean(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    axis = _axis(dim)
    if input.dtype not in _FLOATS or axis is NotImplemented or not input.size or not _row_major(input):
        return NotImplemented
    total = _add_reduce(input, axis, None, None, keepdim)
    count = input.size // total.size
    return total / total.dtype.type(count)


def _matmul(input: Any, other: Any) -> Any:
    if input.dtype not in _FLOATS or other.dtype != input.dtype or input.ndim < 2 or other.ndim < 2:
        return NotImplemented
    return np.matmul(input, other)


def _relu(input: Any) -> Any:
    if input.dtype not in _FLOATS:
        return NotImplemented
    return np.maximum(input, _ZERO[input.dtype])


def _sigmoid(input: Any) -> Any:
    if input.dtype not in _FLOATS:
        return NotImplemented
    one = input.dtype.type(1)
    return one / (one + np.exp(-input))


def _softmax(input: Any, dim: Any) -> Any:
    if input.dtype not in _FLOATS or type(dim) is not int or not input.size or not _row_major(input):
        return NotImplemented
    powers = np.exp(input - _max_reduce(input, dim, None, None, True))
    powers /= _add_reduce(powers, dim, None, None, True)
    return powers


def _log_softmax(input: Any, dim: Any) -> Any:
    if input.dtype not in _FLOATS or type(dim) is not int or not input.size or not _row_major(input) or not input.ndim:
        return NotImplemented
    shifted = input - _max_reduce(input, dim, None, None, True)
    shifted -= np.log(_add_reduce(np.exp(shifted), dim, None, None, True))
    return shifted


def _rsub(input: Any, other: Any) -> Any:
    if input.dtype not in _FLOATS or (type(other) is not float and type(other) is not int):
        return NotImplemented
    return np.subtract(other, input)


def _pow(input: Any, other: Any) -> Any:
    if type(input) is not np.ndarray or input.dtype not in _FLOATS:
        return NotImplemented
    if type(other) is float and other == -0.5:
        return _rsqrt(input)
    if type(other) is float or type(other) is int:
        return np.square(input) if other == 2 else np.power(input, other)
    same = type(other) is np.ndarray and other.dtype == input.dtype
    return np.power(input, other) if same else NotImplemented


def _rsqrt(input: Any) -> Any:
    return input.dtype.type(1) / np.sqrt(input) if input.dtype in _FLOATS else NotImplemented


def _where(condition: Any, input: Any, other: Any) -> Any:
    plain = condition.dtype == _BOOL and type(input) is np.ndarray and type(other) is np.ndarray
    return np.where(condition, input, other) if plain and input.dtype == other.dtype else NotImplemented


def _clone(input: Any) -> Any:
    return NotImplemented if 0 in input.strides else input.copy("K")  # NumPy puts such dimensions elsewhere


KERNELS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "relu": _relu,
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "rsub": _rsub,
    "pow": _pow,
    "rsqrt": _rsqrt,
    "where": _where,
    "clone": _clone,
}


def _sizes(args: tuple[Any, ...]) -> Any:
    return args[0] if len(args) == 1 else args


def _view(input: Any, *size: Any) -> Any:
    shaped = input.reshape(_sizes(size))
    return shaped if np.may_share_memory(shaped, input) or not input.size else NotImplemented


def _expand(input: Any, *size: Any) -> Any:
    wanted = _sizes(size)
    if type(wanted) is int:
        wanted = (wanted,)
    lead = len(wanted) - input.ndim
    whole = tuple([s if s >= 0 else input.shape[i - lead] for i, s in enumerate(wanted)])
    return np.broadcast_to(input, whole)


def _unsqueeze(input: Any, dim: int) -> Any:
    if not -input.ndim - 1 <= dim <= input.ndim:
        return NotImplemented
    dim = dim if dim >= 0 else dim + input.ndim + 1
    return input.reshape((*input.shape[:dim], 1, *input.shape[dim:])) if input.size else NotImplemented


def _squeeze(input: Any, dim: Any = None) -> Any:
    if type(dim) is not int:
        return NotImplemented if dim is not None else input.squeeze()
    return input.squeeze(dim) if input.ndim and input.shape[dim] == 1 else NotImplemented


def _select(input: Any, dim: int, index: int) -> Any:
    if not input.ndim or not -input.ndim <= dim < input.ndim:
        return NotImplemented
    return input[(slice(None),) * (dim % input.ndim) + (index, Ellipsis)]


def _permute(input: Any, *dims: Any) -> Any:
    order = _sizes(dims)
    return NotImplemented if type(order) is int else input.transpose(order)


VIEWS: dict[str, Callable[..., Any]] = {
    "view": _view,
    "reshape": lambda input, *shape: input.reshape(_sizes(shape)),
    "permute": _permute,
    "transpose": lambda input, dim0, dim1: input.swapaxes(dim0, dim1) if input.ndim else NotImplemented,
    "t": lambda input: input.T if input.ndim <= 2 else NotImplemented,
    "T": lambda input: input.T,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "select": _select,
}
