"""How arrays come to a stub device from other libraries and from other devices: functions of its namespace."""

from __future__ import annotations

from typing import Any

import numpy as np

from .stub_array import StubArray, StubNamespace, lift, raw_array
from .stub_memory import StubMemory

__all__ = ["add_exchange"]


def add_exchange(space: StubNamespace, provider: Any) -> StubNamespace:
    """Give the namespace ``from_dlpack``, and let ``asarray`` and ``array`` take what CuPy's take beside its arrays."""
    convert, copy = space.asarray, space.array

    def asarray(value: Any, *args: Any, **kwargs: Any) -> Any:
        face = getattr(value, "__cuda_array_interface__", None)
        return convert(value, *args, **kwargs) if face is None else _over_interface(provider, face, value)

    def array(value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(value) is StubArray and value.device != StubNamespace.current():  # the one way to another device
            return lift(raw_array(value).copy(*args, **kwargs))
        return copy(value, *args, **kwargs)

    space.asarray, space.array, space.from_dlpack = asarray, array, _from_dlpack
    return space


def _from_dlpack(value: Any) -> StubArray:
    """From what another stub tensor gave."""
    host, memory = np.from_dlpack(_OnHost(value)), StubMemory(StubNamespace.current(), 0)
    memory.owner = (host, value)
    return StubArray(host, memory)


def _over_interface(provider: Any, face: dict[str, Any], owner: Any) -> StubArray:
    """Over the host's memory at the address given."""
    dtype, shape = np.dtype(face["typestr"]), face["shape"]
    steps = face.get("strides") or np.empty(shape, dtype).strides
    strides = tuple(s // dtype.itemsize for s in steps)
    return provider.from_memory(face["data"][0], shape, strides, dtype, provider.current_device(), owner)


class _OnHost:
    """A DLPack exporter that says that it is on the CPU."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self.value.__dlpack__(max_version=options.get("max_version"))
