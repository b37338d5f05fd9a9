"""NumPy's functions on a device: the library's own, and answers where it has none.

The operators' references use NumPy's functions by name. CuPy has most; what it lacks stands here, written with what it
has. Two things go through the host's memory, as nothing parallel does them: ``HOST_FUNCTIONS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..switches import are_deterministic_algorithms_enabled
from .ordered_sums import add_in_order

__all__ = ["HOST_FUNCTIONS", "DeviceNamespace", "running"]

HOST_FUNCTIONS = frozenset({"multiply.at"})
"""Functions that copy their arrays to the host and the result back."""

_AT_DIRECT = frozenset(map(np.dtype, ("int32", "uint32", "uint64", "float32", "float64")))
_SCANNED = ("maximum", "minimum", "logaddexp", "fmax", "fmin", "logical_or", "logical_and")


class DeviceNamespace:
    """The array namespace of a device over the library's module."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.capturing = False
        self.__name__ = library.__name__
        self.linalg = Linalg(library)
        for name in (*_SCANNED, "add", "multiply"):
            setattr(self, name, _Ufunc(self, name))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._library, name)
        setattr(self, name, found)
        return found

    def floor_divide(self, a: Any, b: Any) -> Any:
        """As NumPy: the quotient of an infinity is NaN (CuPy's is an infinity)."""
        value = self._library.floor_divide(a, b)
        if value.dtype.kind in "biu":
            return value
        return self._library.where(self._library.isinf(a), value.dtype.type(np.nan), value)

    def searchsorted(self, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """As NumPy; bfloat16 as float32, in which its order is the same."""
        if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
            a, v = a.astype(np.float32), v.astype(np.float32)
        return self._library.searchsorted(a, v, side=side, sorter=sorter)

    def nextafter(self, a: Any, b: Any) -> Any:
        """As C's, by the order of bits: CuPy's has no neighbour of an infinite float16, and none of tiny float32."""
        xp, dtype = self._library, a.dtype
        whole = np.dtype(f"i{dtype.itemsize}")
        least, zero = whole.type(np.iinfo(whole).min), whole.type(0)
        bits = a.view(whole)
        x, y = (xp.where(n < 0, least - n, n) for n in (bits, b.view(whole)))  # in the order of the numbers
        to = x + (y > x).astype(whole) - (y < x).astype(whole)
        negative = (to < 0) | ((to == 0) & (xp.where(x == y, b.view(whole), bits) < 0))
        value = xp.where(negative, least - xp.minimum(to, zero), to).astype(whole).view(dtype)
        return xp.where(xp.isnan(a) | xp.isnan(b), dtype.type(np.nan), value)

    def extremes(self, index: Any) -> tuple[int, int]:
        """The least and the largest of an array of integers, for a check: one copy to the host.

        While a graph is captured nothing can be looked at: (0, -1), in which no index is out of bounds.
        """
        if self.capturing:
            return 0, -1
        least, most = self._library.stack([index.min(), index.max()]).tolist()
        return int(least), int(most)

    def memory_room(self, array: Any) -> tuple[int, int]:
        """How many elements of memory there are before the array's first, and from it on."""
        return self._library.memory_room(array)

    def ndindex(self, *shape: int) -> Any:
        """Positions in a small shape: numbers of the host."""
        return np.ndindex(*shape)


class Linalg:
    """The library's ``linalg``; ``solve`` broadcasts stacks of matrices, as NumPy's does and CuPy's does not."""

    def __init__(self, library: Any) -> None:
        self._library, self._module = library, library.linalg

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def solve(self, a: Any, b: Any) -> Any:
        """x in ``a @ x = b``. (*, m, m) (*, m, n) -> (*, m, n)."""
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        stacks = [self._library.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b)]
        return self._solved(*stacks)

    def _solved(self, a: Any, b: Any) -> Any:
        return self._module.solve(a, b)


class _Ufunc:
    """A ufunc of the library that also has ``accumulate`` and ``at`` for all dtypes."""

    def __init__(self, space: DeviceNamespace, name: str) -> None:
        self._space, self.__name__ = space, name
        self._function = getattr(space._library, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None) -> Any:
        """Running results along ``axis``."""
        if self.__name__ in ("add", "multiply"):
            return self._function.accumulate(array, axis=axis, dtype=dtype)
        return running(self._space, self._function, array if dtype is None else array.astype(dtype), axis)

    def at(self, array: Any, index: Any, values: Any) -> None:
        """``array[index] = f(array[index], values)``, once for each of equal indices."""
        space, name = self._space, self.__name__
        if name == "add" and array.dtype.kind not in "biu" and are_deterministic_algorithms_enabled():
            self._in_order(array, index, values)
        elif name == "multiply":
            _on_host(space, array, index, values)
        elif name in ("logical_or", "logical_and"):
            work = array.astype(np.int32)
            extremum = space._library.maximum if name == "logical_or" else space._library.minimum
            extremum.at(work, index, _cast(values, np.int32))
            array[...] = work != 0
        elif array.dtype.kind == "c":
            self._at_complex(array, index, values)
        else:
            self._at_real(array, index, values)

    def _in_order(self, array: Any, index: Any, values: Any) -> None:
        if self._space.capturing:
            raise RuntimeError("sums by index wait for the device in deterministic mode; a graph cannot capture them")
        wide = array.dtype if array.dtype.kind == "c" else _accumulator(array.dtype, "add")
        work = array.astype(wide)
        add_in_order(self._space._library, work, index, _cast(values, wide))
        array[...] = work.astype(array.dtype)

    def _at_real(self, array: Any, index: Any, values: Any) -> None:
        wide = _accumulator(array.dtype, self.__name__)
        values = _cast(values, array.dtype)
        if wide == array.dtype:
            self._function.at(array, index, values)
        elif self.__name__ == "add" and array.dtype == np.int64:  # the same bits
            self._function.at(array.view(np.uint64), index, _cast(values, np.int64).astype(np.uint64))
            return
        elif array.dtype == np.int64:  # in an order that unsigned numbers have
            work = _flip(array)
            self._function.at(work, index, _flip(_cast(values, np.int64)))
            array[...] = _flip(work).astype(np.int64)
            return
        else:
            work = array.astype(wide)
            self._function.at(work, index, _cast(values, wide))
            array[...] = work.astype(array.dtype)
        if self.__name__ != "add" and array.dtype.kind not in "biu":
            self._keep_nan(array, index, values)

    def _keep_nan(self, array: Any, index: Any, values: Any) -> None:
        """A NaN among the values stays: comparisons of the atomics would lose it."""
        library = self._space._library
        hit = library.zeros(array.shape, np.int32)
        library.add.at(hit, index, library.isnan(_cast(values, np.float64)).astype(np.int32))
        array[...] = library.where(hit > 0, array.dtype.type(np.nan), array)

    def _at_complex(self, array: Any, index: Any, values: Any) -> None:
        real, imag = array.real.copy(), array.imag.copy()
        self._function.at(real, index, values.real.astype(real.dtype))
        self._function.at(imag, index, values.imag.astype(imag.dtype))
        array[...] = (real + 1j * imag).astype(array.dtype)


def _accumulator(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Where atomics of the library compute for arrays of this dtype."""
    if dtype in _AT_DIRECT:
        return dtype
    if dtype.kind in "biu":
        return np.dtype(np.int64 if dtype.itemsize == 8 else np.int32)
    return np.dtype(np.float32)


def _flip(value: Any) -> Any:
    return value.astype(np.uint64) ^ np.uint64(1 << 63)


def _cast(value: Any, dtype: Any) -> Any:
    if hasattr(value, "astype"):
        return value.astype(dtype)
    return np.asarray(value).astype(dtype)[()]


def _on_host(space: DeviceNamespace, array: Any, index: Any, values: Any) -> None:
    def home(value: Any) -> Any:
        if type(value) in (tuple, list):
            return type(value)(home(v) for v in value)
        return space._library.asnumpy(value) if isinstance(value, space._library.ndarray) else value

    host = home(array)
    np.multiply.at(host, home(index), home(values))
    array[...] = space._library.asarray(host)


def running(space: Any, function: Callable[..., Any], array: Any, axis: int) -> Any:
    """Running results of an associative function: log2(n) passes, each of which doubles what an element has seen."""
    value = space.moveaxis(array, axis, -1)
    length, reach = value.shape[-1], 1
    while reach < length:
        value = space.concatenate([value[..., :reach], function(value[..., reach:], value[..., :-reach])], axis=-1)
        reach *= 2
    return space.ascontiguousarray(space.moveaxis(value, -1, axis)) if value is not array else array.copy()
