"""Joins compiled GPU programs to eager tensors: their memory, streams and arrays, and when errors are looked for."""

from __future__ import annotations

from functools import cache
from typing import Any

from lamina_fx import DType
from lamina_tensor import Tensor, as_tensor, cuda, empty_strided
from lamina_tensor.cuda.activation import active_provider, stored_dtype
from lamina_tensor.cuda.memory import shortage

__all__ = ["join_gpu"]


@cache
def join_gpu() -> None:
    """Let GPU programs run on eager tensors. Called before the first one is compiled; uses no device itself."""
    from lamina_inductor.host.gpu import FrontEnd, gpu_launcher, set_front_end  # only where there is a GPU graph

    set_front_end(FrontEnd(Tensor, _array, _convert, cuda.empty_cache, shortage))
    cuda.at_synchronize(gpu_launcher().check_errors)
    cuda.at_empty_cache(gpu_launcher().release_workspaces)


def _array(address: int, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...], index: int) -> Any:
    return active_provider().from_memory(address, sizes, strides, stored_dtype(dtype), index, None)


def _convert(value: Any, sizes: Any, strides: Any) -> Any:
    if sizes is None:
        return as_tensor(value)
    result = empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
    result.copy_(value)
    return result
