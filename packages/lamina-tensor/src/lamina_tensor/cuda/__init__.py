"""CUDA devices: what is there, memory, streams, events, graphs, random numbers, and the device library behind them.

Nothing of a device library is imported before a device is used. On a machine without a GPU:

>>> from lamina_tensor import cuda
>>> cuda.is_initialized(), cuda.memory_allocated()
(False, 0)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import nvtx
from .activation import use_provider as _use_provider
from .devices import (
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
)
from .generators import (
    default_generators,
    forget,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (
    OutOfMemoryError,
    at_empty_cache,
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)
from .provider import DeviceProperties, MemoryState, Provider
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from .synchronization import at_synchronize, synchronize

__all__ = [
    "CUDAGraph",
    "DeviceProperties",
    "Event",
    "ExternalStream",
    "MemoryState",
    "OutOfMemoryError",
    "Provider",
    "Stream",
    "StreamContext",
    "at_empty_cache",
    "at_synchronize",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "nvtx",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "use_provider",
]


def __getattr__(name: str) -> Any:
    if name == "amp":  # it stands on the tensor
        return import_module(".amp", __name__)
    found = import_module("..legacy", __name__).of_cuda(name) if name.endswith("Tensor") else None
    if found is not None:
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def use_provider(provider: Provider | None) -> Provider | None:
    """Use this device library from now on (None: the usual one); returns what was chosen before.

    Tensors that an earlier one made cannot be used with it.
    """
    forget()
    return _use_provider(provider)
