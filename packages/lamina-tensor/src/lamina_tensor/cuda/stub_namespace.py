"""The namespace of stub devices, and how arrays come to one from other libraries and from other devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .stub_array import StubArray, StubNamespace, lift, raw_array, run
from .stub_memory import StubMemory
from .stub_names import FUNCTIONS

__all__ = ["make_namespace"]


def memory_room(array: StubArray) -> tuple[int, int]:
    """How many elements there are before the array's first, and from it on, in the memory that it is a view of."""
    owner = raw_array(array)
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low, high = np.lib.array_utils.byte_bounds(owner)
    return (array.pointer - low) // array.itemsize, (high - array.pointer) // array.itemsize


def _solve(a: StubArray, b: StubArray) -> Any:
    """Without broadcasting, as CuPy's."""
    if a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"CuPy's solve does not broadcast {a.shape} and {b.shape}")
    return run(np.linalg.solve, (a, b), {})


def make_namespace(provider: Any) -> StubNamespace:
    """The array namespace of a provider's stub devices."""
    space = StubNamespace(np, FUNCTIONS)
    space.ndarray = StubArray
    space.asnumpy = lambda array: array.get() if type(array) is StubArray else np.asarray(array)
    space.memory_room = memory_room
    space.linalg.solve = _solve
    add_exchange(space, provider)
    return space


def add_exchange(space: StubNamespace, provider: Any) -> None:
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
