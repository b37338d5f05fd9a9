"""What templates for long rows share: the indices of a row in an operand, and elements and places of words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lamina_fx import DType, int32, int64

from ....ir.program import Operand
from ..sort_words import element_text
from ..tiles import constant
from .kernel_text import KernelText
from .offsets import scaled

__all__ = ["RowWords", "behind", "declare_results", "row_lines", "row_offset", "rows_of_operand", "store_results"]


class RowWords(ABC):
    """What a template makes of rows whose elements are words of key and place."""

    __slots__ = ()

    @property
    @abstractmethod
    def narrow(self) -> bool:
        """Have words 32 bits?"""

    @property
    def word(self) -> DType:
        """The type of words."""
        return int32 if self.narrow else int64

    @property
    def most(self) -> int:
        """A word behind all others."""
        return (1 << (self.word.itemsize * 8 - 1)) - 1


def rows_of_operand(operand: Operand, dim: int) -> Any:
    """How many rows along ``dim`` it has."""
    rows: Any = 1
    for d, size in enumerate(operand.shape):
        rows = rows * size if d != dim else rows
    return rows


def row_lines(text: KernelText, operand: Operand, dim: int) -> list[str]:
    """Lines that define the indices of the other dimensions from the number of a row, ``row``."""
    kept = [(d, n) for d, n in enumerate(operand.shape) if d != dim and constant(n) != 1]
    lines, rest = [], "row"
    for number, (d, size) in enumerate(reversed(kept)):
        last = number == len(kept) - 1
        lines.append(f"i{d} = {rest if last else f'{rest} % {text.atom(size)}'}")
        rest = f"({rest} // {text.atom(size)})"
    return lines


def row_offset(text: KernelText, operand: Operand, dim: int) -> str:
    """`` + `` the offset of the row in the operand."""
    found = ""
    for d, (size, stride) in enumerate(zip(operand.shape, operand.strides, strict=True)):
        if d != dim and constant(size) != 1 and constant(stride) != 0:
            found += f" + {scaled(text, f'i{d}', stride)}"
    return found


def behind(bytes: Any, offset: Any = 0) -> Any:
    """Where memory behind a part of scratch memory begins."""
    return (offset + bytes + 255) // 256 * 256


def declare_results(text: KernelText, outs: tuple[Operand | None, ...]) -> None:
    """Pointers to the elements and places, those that are wanted."""
    for name, operand in zip(("values", "places"), outs, strict=True):
        if operand is not None:
            text.pointer(name, operand.dtype, operand)


def store_results(
    text: KernelText,
    outs: tuple[Operand | None, ...],
    dim: int,
    at: str,
    mask: str,
    descending: bool,
    dtype: Any,
    narrow: bool,
) -> None:
    """Store the elements of ``word`` and their places at the indices ``at`` of the row."""
    element = element_text("word", "word", dtype, descending, 16 if narrow else 32)
    place = "((word & 65535) >> 1).to(tl.int64)" if narrow else "((word & 4294967295) >> 1)"
    for name, operand, value in zip(("values", "places"), outs, (element, place), strict=True):
        if operand is not None:
            start = f"{name}{row_offset(text, operand, dim)} + {scaled(text, at, operand.strides[dim])}"
            text.add(f"tl.store({start}, {value}{mask})")
