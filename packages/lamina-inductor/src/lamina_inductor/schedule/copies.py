"""Copies between buffers as kernels, for backends whose host has no copy of its own."""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.kernel import BufferParam, Kernel, Load, Store
from ..ir.program import CopyBuffer, KernelCall
from .emitter import linear_index
from .grid_nest import axes_over, grid_nest

__all__ = ["copy_call"]


def copy_call(copy: CopyBuffer, name: str) -> KernelCall:
    """A call of a kernel of one phase that does what ``copy`` does."""
    source, target = copy.source, copy.target
    axes, index = axes_over(source.shape)
    read: Any = linear_index(index, source.strides) + source.offset
    write: Any = linear_index(index, target.strides) + target.offset
    statements = [Load("v1", source.dtype, "b0", read), Store("b1", write, "v1")]
    body, _, _ = grid_nest(statements, list(axes), axes, None)
    params = (BufferParam("b0", source.dtype, "in"), BufferParam("b1", target.dtype, "out"))
    sizes = _symbols((*source.shape, *source.strides, *target.strides, source.offset, target.offset))
    kernel = Kernel(name, params, sizes, body, (("copy", "copy", ""),), "copy")
    return KernelCall(kernel, (source.buffer, target.buffer), sizes)


def _symbols(values: tuple[Any, ...]) -> tuple[Symbol, ...]:
    found: dict[Symbol, None] = {}
    for value in values:
        found.update(dict.fromkeys(sorted(getattr(value, "free_symbols", ()), key=str)))
    return tuple(found)
