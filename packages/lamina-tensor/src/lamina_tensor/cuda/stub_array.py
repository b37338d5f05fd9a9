"""Arrays of the stub device: NumPy's, behind a wall like CuPy's.

An array of the host does not pass for one of the device, nor the other way round; results without dimensions stay
arrays; functions and parameters that CuPy lacks are missing. What is computed is what NumPy computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .stub_memory import StubMemory, StubOutOfMemory
from .stub_names import FFT, LINALG, METHODS, UFUNCS

__all__ = ["StubArray", "StubNamespace", "lift", "lower", "raw_array"]

_NOWHERE = 0x7B7B_0000_0000
_REFUSED = ("float8_e4m3fn", "float8_e5m2")


class Place(NamedTuple):
    """The address of an array's first element, and the number of its device."""

    ptr: int
    device_id: int


class StubArray:
    """An array in the stub device's memory. ``memory`` is what its bytes are accounted in, ``device`` where."""

    __slots__ = ("__weakref__", "_host", "device", "memory")

    __array_ufunc__ = None  # NumPy's functions and operators leave it alone

    def __init__(self, host: np.ndarray[Any, Any], memory: StubMemory) -> None:
        if host.dtype.name in _REFUSED:
            raise TypeError(f"CuPy has no dtype {host.dtype}")
        self._host = host
        self.memory = memory
        self.device = memory.device

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()` to do it explicitly.")

    shape = property(lambda self: self._host.shape)
    strides = property(lambda self: self._host.strides)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)
    T = property(lambda self: StubArray(self._host.T, self.memory))
    real = property(lambda self: lift(self._host.real, self), lambda self, value: self._set_part("real", value))
    imag = property(lambda self: lift(self._host.imag, self), lambda self, value: self._set_part("imag", value))

    def _set_part(self, part: str, value: Any) -> None:
        run(lambda host, given: setattr(host, part, given), (self, value), {})

    @property
    def base(self) -> Any:
        """Something when it is a view, otherwise None."""
        return self._host.base

    @property
    def pointer(self) -> int:
        """The address; of an empty array one that lies nowhere, as CuPy's may."""
        if not self._host.size:
            return _NOWHERE
        return self._host.__array_interface__["data"][0]

    @property
    def data(self) -> Place:
        """Where it lies."""
        return Place(self.pointer, self.device.id)

    def get(self, out: np.ndarray[Any, Any] | None = None, blocking: bool = True) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        self.memory.device.statistics.copies_to_host += 1
        if out is None:
            return self._host.copy(order="K")
        np.copyto(out, self._host)
        return out

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """A capsule that says CPU: NumPy can make no other."""
        return self._host.__dlpack__(max_version=max_version)

    def item(self) -> Any:
        """The only element as a Python number: a copy to the host."""
        return self.get().item()

    def tolist(self) -> Any:
        """Nested lists: a copy to the host."""
        return self.get().tolist()

    def view(self, dtype: Any = None) -> StubArray:
        """The same memory as another dtype."""
        return StubArray(self._host.view(dtype), self.memory)

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self._host))])

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return self.item().__index__()

    def __getitem__(self, index: Any) -> StubArray:
        return run(_item, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        where, given = lower(index), lower(value)
        host = self._host

        def write() -> None:
            with np.errstate(all="ignore"):
                host[where] = given

        write()
        self.memory.device.note(write)

    __hash__ = object.__hash__


def _item(host: np.ndarray[Any, Any], where: Any) -> Any:
    found = host[where]
    if isinstance(found, np.generic):  # CuPy gives a view, also where nothing is left of the dimensions
        found = host[(*(where if type(where) is tuple else (where,)), Ellipsis)]
    return found


def lower(value: Any) -> Any:
    """Nested arguments with the host's arrays in place of the device's.

    Raises:
        TypeError: an array of the host is among them.
    """
    kind = type(value)
    if kind is StubArray:
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"Unsupported type {np.ndarray}: an array of the host was given where one of the device belongs"
        )
    if kind is tuple or kind is list:
        return kind([lower(v) for v in value])
    if kind is slice:
        return slice(lower(value.start), lower(value.stop), lower(value.step))
    return value


def lift(value: Any, *near: Any) -> Any:
    """Arrays of the host that were computed from ``near`` as arrays of the device: views of it, or accounted anew."""
    if isinstance(value, np.ndarray):
        arrays = list(_arrays(near))
        for array in arrays:
            if value is array._host:
                return array
        if value.base is not None:
            for array in arrays:
                if np.may_share_memory(value, array._host):
                    return StubArray(value, array.memory)
        device = arrays[0].device if arrays else StubNamespace.current()
        memory = device.allocate(value.nbytes)
        memory.owner = value
        return StubArray(value, memory)
    if isinstance(value, np.generic):
        return lift(np.asarray(value), *near)
    if isinstance(value, tuple):
        parts = [lift(v, *near) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is list:
        return [lift(v, *near) for v in value]
    return value


def raw_array(array: StubArray) -> np.ndarray[Any, Any]:
    """The memory itself, for the provider's copies."""
    return array._host


def _arrays(values: Any) -> Any:
    for value in values:
        if type(value) is StubArray:
            yield value
        elif type(value) in (tuple, list):
            yield from _arrays(value)


def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call on the host's arrays; results are the device's. Noted by a device whose stream is being captured."""
    given, named = lower(args), {k: lower(v) for k, v in kwargs.items()}
    with np.errstate(all="ignore"):
        try:
            value = function(*given, **named)
        except MemoryError as error:  # more than the host has
            shape, dtype = getattr(error, "shape", (0,)), np.dtype(getattr(error, "dtype", np.uint8))
            raise StubOutOfMemory(math.prod(shape) * dtype.itemsize) from None
    if isinstance(value, np.generic):
        value = np.asarray(value)
    out = lift(value, *args, *kwargs.values())
    device = next((a.device for a in _arrays(args)), None) or StubNamespace.current()
    if device.recording is not None:
        device.note(lambda: _again(value, function(*given, **named)))
    return out


def _again(value: Any, new: Any) -> None:
    if isinstance(value, np.ndarray):
        if value is not new and value.flags.writeable and not np.may_share_memory(value, new):
            np.copyto(value, new)
    elif isinstance(value, (tuple, list)):
        for part, fresh in zip(value, new):
            _again(part, fresh)


def _method(name: str) -> Callable[..., Any]:
    def method(self: StubArray, *args: Any, **kwargs: Any) -> Any:
        return run(lambda host, *a, **k: getattr(host, name)(*a, **k), (self, *args), kwargs)

    method.__name__ = name
    return method


_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul",
)  # fmt: skip
for _name in METHODS:
    setattr(StubArray, _name, _method(_name))
for _name in (*_BINARY, *(f"r{n}" for n in _BINARY), *(f"i{n}" for n in _BINARY), "eq", "ne", "lt", "le", "gt", "ge",
              "neg", "pos", "abs", "invert", "divmod"):  # fmt: skip
    setattr(StubArray, f"__{_name}__", _method(f"__{_name}__"))


class _Ufunc:
    """One of NumPy's ufuncs with what CuPy's have."""

    def __init__(self, function: np.ufunc) -> None:
        self.function = function
        self.__name__ = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return run(self.function, args, kwargs)

    def at(self, array: StubArray, index: Any, values: Any) -> None:
        """Unbuffered writes; CuPy has them for these only."""
        if self.__name__ not in ("add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"):
            raise TypeError(f"CuPy has no {self.__name__}.at")
        run(lambda a, i, v: self.function.at(a, i, v), (array, index, values), {})

    def accumulate(self, array: StubArray, axis: int = 0, dtype: Any = None) -> Any:
        """Running results; CuPy has them for these only."""
        if self.__name__ not in ("add", "multiply"):
            raise TypeError(f"CuPy has no {self.__name__}.accumulate")
        return run(self.function.accumulate, (array, axis, dtype), {})

    def outer(self, a: Any, b: Any) -> Any:
        """All pairs."""
        return run(self.function.outer, (a, b), {})


class StubNamespace:
    """The functions of one of NumPy's modules that CuPy has, on the stub's arrays."""

    current: Callable[[], Any]  # set by the provider: the device on which arrays are made

    def __init__(self, module: Any, known: dict[str, tuple[str, ...]], name: str = "stub") -> None:
        self._module, self._known = module, known
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._find(name)
        setattr(self, name, found)
        return found

    def _find(self, name: str) -> Any:
        if self._module is np:
            if name in ("linalg", "fft"):
                return StubNamespace(getattr(np, name), LINALG if name == "linalg" else FFT, f"stub.{name}")
            if name == "lib":
                return StubNamespace(np.lib, {}, "stub.lib")
            if name in UFUNCS and isinstance(getattr(np, name), np.ufunc):
                return _Ufunc(getattr(np, name))
            if name in UFUNCS:
                return _function(getattr(np, name), ("*", "**"))
        if name == "stride_tricks":
            return StubNamespace(
                np.lib.stride_tricks, {"as_strided": ("x", "shape", "strides")}, "stub.lib.stride_tricks"
            )
        if name in self._known:
            return _function(getattr(self._module, name), self._known[name])
        found = getattr(self._module, name)
        if callable(found) and not isinstance(found, type):
            raise AttributeError(f"CuPy has no {self._module.__name__}.{name}")
        return found


def _function(function: Callable[..., Any], parameters: tuple[str, ...]) -> Callable[..., Any]:
    names = {p.lstrip("*") for p in parameters}
    open_ended = any(p.startswith("**") for p in parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        for word in kwargs:
            if word not in names and not open_ended:
                raise TypeError(f"CuPy's {function.__name__}() has no parameter {word!r}")
        if function in (np.asarray, np.array, np.ascontiguousarray) and isinstance(args[0], np.ndarray):
            StubNamespace.current().statistics.copies_to_device += 1  # the one way in, as CuPy's
            return lift(np.array(args[0], *args[1:], **{k: v for k, v in kwargs.items() if k != "copy"}, copy=True))
        kwargs.pop("blocking", None)
        return run(function, args, kwargs)

    call.__name__ = function.__name__
    return call
