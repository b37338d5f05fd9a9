"""Which device library is used, and its joining to the C part: nothing of it is imported before a device is used.

``LAMINA_CUDA_PROVIDER=stub`` or ``use_provider(provider)`` chooses; otherwise it is CuPy.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from lamina_fx import DTYPES, Device, DType
from lamina_fx.cuda_messages import FORKED
from lamina_prims.arrays import numpy_dtype, register_arrays

from .. import _C
from ..kernels import UFUNCS
from .provider import Provider

__all__ = ["activate", "active_provider", "device_index", "namespace_on", "use_provider"]

_MAX_DEVICES = 64
_DEVICES = tuple(Device("cuda", i) for i in range(_MAX_DEVICES))
_FLOAT8 = tuple(d.code for d in DTYPES if d.kind == "float" and d.itemsize == 1)
_CODES = {numpy_dtype(d): d.code for d in DTYPES if d.code not in _FLOAT8}
_STORED = tuple(np.dtype(np.uint8) if d.code in _FLOAT8 else numpy_dtype(d) for d in DTYPES)
"""By code: the dtype of arrays on the device. It has no float8 types: their bytes are kept."""


class _Active:
    provider: Provider | None = None
    chosen: Provider | None = None
    forked = False


def _after_fork() -> None:
    """In a child of a process that used a device: its memory and contexts are the parent's alone."""
    if _Active.provider is not None:
        _Active.provider, _Active.forked = None, True
        _C.leave_device()


os.register_at_fork(after_in_child=_after_fork)


def use_provider(provider: Provider | None) -> Provider | None:
    """Use this device library from now on (None: the usual one); returns what was chosen before.

    Tensors that an earlier one made cannot be used with it.
    """
    before = _Active.chosen
    _Active.chosen, _Active.provider, _Active.forked = provider, None, False
    _C.leave_device()
    return before


def is_active() -> bool:
    """Has a device been used."""
    return _Active.provider is not None


def is_forked() -> bool:
    """Is this a child of a process that used a device before it forked: it cannot use any."""
    return _Active.forked


def active_provider() -> Provider:
    """The device library, joined to the C part.

    Raises:
        RuntimeError: none can be used; says what to install. Or this process was forked from one that used a device.
    """
    found = _Active.provider
    return _join() if found is None else found


def _join() -> Provider:
    if _Active.forked:
        raise RuntimeError(FORKED)
    provider = _Active.chosen
    if provider is None:
        provider = _named(os.environ.get("LAMINA_CUDA_PROVIDER", "cupy"))
    register_arrays(provider.array_type, provider.namespace)

    def empty(sizes: tuple[int, ...], strides: tuple[int, ...] | None, code: int, index: int) -> tuple[Any, int]:
        try:  # of each new tensor: a context manager would cost more than the memory
            made = provider.empty(sizes, strides, _STORED[code], index)
            return made, made.data.ptr
        except provider.out_of_memory as error:
            from .memory import out_of_memory, release_held

            if release_held():
                return empty(sizes, strides, code, index)
            raise out_of_memory(index, error) from None

    def from_memory(
        address: int, sizes: tuple[int, ...], strides: tuple[int, ...] | None, code: int, index: int, owner: Any
    ) -> Any:
        return provider.from_memory(address, sizes, strides or row_major(sizes), _STORED[code], index, owner)

    ufuncs = {u.function: getattr(provider.namespace, u.function.__name__) for u in UFUNCS.values()}
    _C.use_device(provider.array_type, _describe, empty, from_memory, _DEVICES[: provider.device_count()], ufuncs)
    _Active.provider = provider
    return provider


def _named(name: str) -> Provider:
    if name == "stub":
        from .stub_provider import StubProvider

        return StubProvider()
    if name == "cupy":
        from .availability import broken, require

        require()
        try:
            from .cupy_provider import CupyProvider

            return CupyProvider()
        except (ImportError, OSError) as error:
            raise broken(error) from error
    raise RuntimeError(f"LAMINA_CUDA_PROVIDER={name!r}: the providers are 'cupy' and 'stub'")


def activate() -> None:
    """Join the device library; called from C at the first request for memory of a device."""
    active_provider()


def _describe(array: Any, code: int) -> tuple[Any, int, tuple[int, ...], tuple[int, ...], int, int]:
    """(array to hold, address, sizes, strides in elements, dtype code, device) of an array."""
    if code < 0:
        try:
            code = _CODES[array.dtype]
        except KeyError:
            raise TypeError(f"no tensor's element type is {array.dtype}") from None
    item, sizes, steps = array.itemsize, array.shape, array.strides
    if any(s < 0 or s % item for s in steps):
        array = array.copy(order="C")
        steps = array.strides
    strides = [s // item for s in steps]
    for i in range(len(sizes) - 1, -1, -1):  # a new axis: the stride that continues, as on the CPU
        if sizes[i] == 1 and strides[i] == 0:
            strides[i] = strides[i + 1] * max(sizes[i + 1], 1) if i + 1 < len(sizes) else 1
    place = array.data
    return array, place.ptr, tuple(sizes), tuple(strides), code, place.device_id


def stored_dtype(dtype: DType) -> np.dtype[Any]:
    """The dtype of arrays on the device that hold tensors of ``dtype``."""
    return _STORED[dtype.code]


def is_float8(dtype: DType) -> bool:
    """Are its elements kept as bytes on the device."""
    return dtype.code in _FLOAT8


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous array."""
    strides, step = [], 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def dense_order(array: Any) -> tuple[int, ...] | None:
    """The dimensions from the widest stride to the narrowest; None when that is their order, or there are gaps."""
    if array.flags.c_contiguous or array.ndim < 2:
        return None
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    step = array.itemsize
    for d in reversed(order):
        if array.shape[d] > 1 and array.strides[d] != step:
            return None
        step *= max(array.shape[d], 1)
    return tuple(order)


def window(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """(where the lowest element lies, seen from the first one; how many elements lie from there to the highest).

    >>> window((3, 2), (-2, 1))
    (-4, 6)
    """
    if 0 in sizes:
        return 0, 0
    reaches = [(n - 1) * s for n, s in zip(sizes, strides)]
    low = sum([r for r in reaches if r < 0])
    return low, 1 + sum([r for r in reaches if r > 0]) - low


def device_index(device: Any = None) -> int:
    """The number of a device: of ``"cuda:1"``, ``Device``, 1; the current one for None and ``"cuda"``.

    Raises:
        ValueError: no CUDA device. RuntimeError: there is none of this number.
    """
    if device is None or (isinstance(device, int) and not isinstance(device, bool) and device < 0):
        return active_provider().current_device()
    if isinstance(device, int):
        index: int | None = device
    else:
        where = device if isinstance(device, Device) else Device(str(device))
        if where.type != "cuda":
            raise ValueError(f"expected a CUDA device, got {where}")
        index = where.index
    provider = active_provider()
    if index is None:
        return provider.current_device()
    if index >= provider.device_count():
        raise RuntimeError(f"there is no device cuda:{index}: {provider.device_count()} found")
    return index


def cuda_device(index: int) -> Device:
    """The ``Device`` of a number."""
    return _DEVICES[index]


class _Bound:
    """The namespace with creating functions bound to a device that is not the current one."""

    def __init__(self, provider: Provider, index: int) -> None:
        self._provider, self._index = provider, index
        self.__name__ = provider.namespace.__name__

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._provider.namespace, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            with on_device(self._provider, self._index):
                return found(*args, **kwargs)

        return call


class on_device:
    """Inside, the device is the thread's."""

    __slots__ = ("before", "index", "provider")

    def __init__(self, provider: Provider, index: int) -> None:
        self.provider, self.index = provider, index

    def __enter__(self) -> None:
        self.before = self.provider.current_device()
        if self.before != self.index:
            self.provider.set_device(self.index)

    def __exit__(self, *error: Any) -> None:
        if self.before != self.index:
            self.provider.set_device(self.before)


def namespace_on(index: int | None) -> Any:
    """The array namespace whose creating functions make arrays on this device (None: the current one)."""
    provider = active_provider()
    number = device_index(None if index is None else index)
    return provider.namespace if number == provider.current_device() else _Bound(provider, number)
