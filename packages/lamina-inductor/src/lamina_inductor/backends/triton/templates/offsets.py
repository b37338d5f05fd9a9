"""Texts of numbers in templates: blocks that cover a size, offsets by strides, matrices of a batch."""

from __future__ import annotations

from typing import Any

from ..tiles import constant
from .kernel_text import KernelText

__all__ = ["batch_offset", "ceil_div", "matrix_index", "places", "scaled"]


def ceil_div(size: Any, block: int) -> Any:
    """Blocks that cover ``size`` elements."""
    known = constant(size)
    return (size + (block - 1)) // block if known is None else -(-known // block)


def places(text: KernelText, *indices: str) -> str:
    """Where a descriptor's block begins: indices of 32 bits, also where sizes have 64."""
    return ", ".join([f"tl.cast({i}, tl.int32)" if text.wide else i for i in indices])


def scaled(text: KernelText, index: str, stride: Any) -> str:
    """``index * stride``."""
    return index if constant(stride) == 1 else f"{index} * {text.atom(stride)}"


def batch_offset(text: KernelText, batch: tuple[Any, ...], strides: tuple[Any, ...]) -> str:
    """`` + `` the offset of matrix number ``matrix``."""
    found = ""
    for k, (size, stride) in enumerate(zip(batch, strides, strict=True)):
        if constant(size) != 1 and constant(stride) != 0:
            found += f" + {matrix_index(text, batch, k)} * {text.atom(stride)}"
    return found


def matrix_index(text: KernelText, batch: tuple[Any, ...], dim: int) -> str:
    """The index along one dimension of the batch."""
    if len(batch) == 2 and constant(batch[1 - dim]) != 1:
        return f"(matrix // {text.atom(batch[1])})" if dim == 0 else f"(matrix % {text.atom(batch[1])})"
    return "matrix"
