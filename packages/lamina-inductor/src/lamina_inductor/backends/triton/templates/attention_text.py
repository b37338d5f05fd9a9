"""What the attention kernels share: which matrices a program works on, loads of rows, and scores with their masks.

Probabilities are powers of two. Of half types the products of queries and keys are multiplied by ``scale * log2(e)``
and reduced by the row's maximum, which is in the base of 2, in one operation (``Scores.fused``); elsewhere the maximum
is subtracted first, which is exact beside large scores. Names in the text: ``m``, ``n``: queries and keys of a tile;
``d``, ``e``: places in a head of queries and keys, and of values; ``b``, ``h``, ``g``: batch, head, group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from lamina_fx import bool_, float32

from ....ir.program import Attention, AttentionBackward, Operand
from ..tiles import constant
from .kernel_text import KernelText, is_multiple, is_stride
from .offsets import places

__all__ = [
    "HELD", "LOG2E", "Scores", "can_describe_heads", "edge_tiles", "held", "lead_lines", "offset_of",
    "padded", "rows_at",
]  # fmt: skip

LOG2E = 1.0 / math.log(2.0)

HELD = ".to(tl.int32, bitcast=True)"
"""What lets a sum go from one turn of a loop to the next as bits: the compiler then waits for the product that made it
within the turn. Otherwise that product is left on its way, and the assembler, which cannot tell that nothing touches
its registers meanwhile, makes all products of a kernel with several of them wait for each other (notice C7515)."""


def held(name: str) -> str:
    """The sum that ``HELD`` let go."""
    return f"{name}.to(tl.float32, bitcast=True)"


_LEAD = ("b", "h", "g")


def padded(width: int) -> int:
    """Elements of a tile that holds a head."""
    return max(16, 1 << (width - 1).bit_length())


# -- matrices --------------------------------------------------------------------------------------------


def lead_lines(text: KernelText, lead: tuple[Any, ...], program: str, names: tuple[str, ...] = _LEAD) -> list[str]:
    """Lines that define ``names``, the indices in dimensions ``lead``, from the number ``program``; 1 has none."""
    lines: list[str] = []
    rest = program
    kept = [(name, size) for name, size in zip(names, lead, strict=True) if constant(size) != 1]
    for place, (name, size) in enumerate(reversed(kept)):
        last = place == len(kept) - 1
        lines.append(f"{name} = {rest if last else f'{rest} % {text.atom(size)}'}")
        rest = f"({rest} // {text.atom(size)})"
    return lines


def offset_of(text: KernelText, operand: Operand) -> str:
    """`` + `` the offset of the matrix at ``b``, ``h``, ``g``."""
    found = ""
    for name, size, stride in zip(_LEAD, operand.shape, operand.strides, strict=False):
        if constant(size) != 1 and constant(stride) != 0:
            found += f" + {name} * {text.atom(stride)}"
    return found


def rows_at(text: KernelText, operand: Operand, name: str, rows: str, columns: str) -> str:
    """Addresses of a tile: ``rows`` and ``columns`` are names of index vectors."""
    row, column = operand.strides[-2:]
    across = f"{columns}[None, :]" if constant(column) == 1 else f"{columns}[None, :] * {text.atom(column)}"
    return f"{name}{offset_of(text, operand)} + ({rows}[:, None] * {text.atom(row)} + {across})"


_OF_VALUES = ("value", "grad_out", "out")
"""Operands whose rows are as wide as values."""


def _kept(operand: Operand) -> list[bool]:
    """Which dimensions in front of the matrices a descriptor has: those that are not broadcast."""
    return [constant(n) != 1 and constant(s) != 0 for n, s in zip(operand.shape[:3], operand.strides[:3], strict=True)]


def can_describe_heads(operand: Operand) -> bool:
    """May the host make a descriptor of these matrices: rows of elements that lie together, steps of 16 bytes?"""
    size = operand.dtype.itemsize
    steps = [s for s, kept in zip(operand.strides[:3], _kept(operand), strict=True) if kept] + [operand.strides[-2]]
    fine = all(constant(s) != 0 and is_stride(s * size, 16) for s in steps)
    return fine and size == 2 and constant(operand.strides[-1]) == 1 and is_multiple(operand.offset * size, 16)


def _as_described(operand: Operand, tile: tuple[int, int]) -> tuple[Operand, tuple[int, ...]]:
    """The operand with the dimensions that its descriptor has, and the block of one load."""
    kept = [*_kept(operand), True, True]
    shape, strides = (
        tuple([n for n, k in zip(all_, kept, strict=True) if k]) for all_ in (operand.shape, operand.strides)
    )
    return replace(operand, shape=shape, strides=strides), (*(1,) * (len(shape) - 2), *tile)


# -- scores ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one step, as text.

    turned: tiles are [n, m], for kernels that keep keys: their products then read them from registers as they are.
    described: names of the operands that are read through tensor descriptors. arithmetic: of products of float32.
    """

    step: Attention | AttentionBackward
    text: KernelText
    block_m: int
    block_n: int
    turned: bool = False
    described: frozenset[str] = frozenset()
    arithmetic: str = "ieee"

    @property
    def m(self) -> str:
        """Numbers of the queries over a tile of scores."""
        return "m[None, :]" if self.turned else "m[:, None]"

    @property
    def n(self) -> str:
        """Numbers of the keys over a tile of scores."""
        return "n[:, None]" if self.turned else "n[None, :]"

    def of_queries(self, name: str) -> str:
        """A value of each query over a tile of scores."""
        return f"{name}{self.m[1:]}"

    @property
    def lead(self) -> tuple[Any, ...]:
        """Sizes in front of the matrices."""
        return self.step.out.shape[:3]

    @property
    def queries(self) -> Any:
        """L."""
        return self.step.query.shape[-2]

    @property
    def keys(self) -> Any:
        """S."""
        return self.step.key.shape[-2]

    @property
    def width(self) -> int:
        """E."""
        return int(constant(self.step.query.shape[-1]) or 0)

    @property
    def value_width(self) -> int:
        """Ev."""
        return int(constant(self.step.value.shape[-1]) or 0)

    @property
    def whole_m(self) -> bool:
        """Do tiles of queries end where the queries do?"""
        return is_multiple(self.queries, self.block_m)

    @property
    def whole_n(self) -> bool:
        """Do tiles of keys end where the keys do?"""
        return is_multiple(self.keys, self.block_n)

    @property
    def precision(self) -> str:
        """How ``tl.dot`` multiplies."""
        return f', input_precision="{self.arithmetic}"' if self.step.query.dtype is float32 else ""

    @property
    def fused(self) -> bool:
        """Are ``s`` plain products, which are scaled together with the subtraction of the maximum in the base of 2?

        Not where something was added to them or where scaling would turn -inf around; nor of float32, whose scores may
        be so large that what the scaling rounds off is more than 1.
        """
        mask = self.step.mask
        half = self.step.query.dtype.itemsize == 2
        return half and self.step.scale > 0 and (mask is None or mask.dtype is bool_)

    @property
    def largest(self) -> str:
        """The largest score of each row of ``s``, in the base of the maxima."""
        return f"tl.max(s, 1){f' * {self.step.scale * LOG2E!r}' if self.fused else ''}"

    def power(self, level: str) -> str:
        """``s`` less ``level`` (a maximum, over the tile) as an exponent of 2."""
        if self.fused:
            return f"s * {self.step.scale * LOG2E!r} - {level}"
        return f"(s - {level}) * {LOG2E!r}"

    def difference(self, left: str, right: str) -> str:
        """Of two maxima, as an exponent of 2."""
        return f"{left} - {right}" if self.fused else f"({left} - {right}) * {LOG2E!r}"

    def mask(self, *parts: str) -> str:
        """The arguments of a load that is masked by those parts that are not empty."""
        found = [p for p in parts if p]
        return f", {' & '.join(found)}, other=0.0" if found else ""

    def row_mask(self) -> str:
        """Of a tile of queries."""
        return "" if self.whole_m else f"(m[:, None] < {self.text.size(self.queries)})"

    def key_mask(self, tail: bool) -> str:
        """Of a tile of keys; ``tail``: it may stand behind the last key."""
        return f"(n[:, None] < {self.text.size(self.keys)})" if tail and not self.whole_n else ""

    def width_mask(self, name: str) -> str:
        """Of a head's elements, ``d`` or ``e``."""
        width = self.width if name == "d" else self.value_width
        return "" if padded(width) == width else f"({name}[None, :] < {width})"

    def declare(self, *names: str) -> None:
        """Parameters for these operands of the step, those that it has."""
        for name in names:
            operand = getattr(self.step, name)
            if operand is not None and name in self.described:
                self.text.descriptor(name, *self.description(name))
            elif operand is not None:
                self.text.pointer(name, operand.dtype, operand)

    def description(self, name: str) -> tuple[Operand, tuple[int, ...]]:
        """(operand, tile) of the descriptor that reads operand ``name``: without dimensions that are broadcast."""
        return _as_described(getattr(self.step, name), self._tile(name))

    def rows(self, name: str, rows: str, start: str, row_mask: str) -> str:
        """A load of a tile of operand ``name``: its ``rows`` (an index vector) begin at ``start``; zeros outside."""
        operand = getattr(self.step, name)
        columns = "e" if name in _OF_VALUES else "d"
        if name not in self.described:
            place = rows_at(self.text, operand, name, rows, columns)
            return f"tl.load({place}{self.mask(row_mask, self.width_mask(columns))})"
        lead = [index for index, kept in zip(_LEAD, _kept(operand), strict=True) if kept]
        block, width = self._tile(name)
        return f"{name}.load([{places(self.text, *lead, start)}, 0]).reshape({block}, {width})"

    def _tile(self, name: str) -> tuple[int, int]:
        width = self.value_width if name in _OF_VALUES else self.width
        return self.block_n if name in ("key", "value") else self.block_m, padded(width)

    def declare_mask(self) -> None:
        """The pointer to the mask, and the random state."""
        if self.step.mask is not None:
            self.text.pointer("mask", self.step.mask.dtype, self.step.mask)
        if self.step.dropout:
            assert self.step.state is not None
            self.text.pointer("state", self.step.state.dtype, self.step.state)

    def lines(self, left: str, right: str, diagonal: bool, tail: bool, masked: bool = True) -> list[str]:
        """``s``: scores of queries ``m`` and keys ``n``, -inf where one takes no part; plain products if ``fused``.

        diagonal: the diagonal may cut the tile; tail: the last key may; masked: the mask may.
        """
        step, text = self.step, self.text
        times = "" if self.fused else f" * ({step.scale!r})"
        lines = [f"s = tl.dot({left}, {right}{self.precision}){times}"]
        if diagonal and step.causal:
            lines.append(f's = tl.where({self.m} >= {self.n}, s, float("-inf"))')
        if step.mask is not None and masked:
            lines.extend(self._masked(step.mask, tail))
        if tail and not self.whole_n:
            lines.append(f's = tl.where({self.n} < {text.size(self.keys)}, s, float("-inf"))')
        return lines

    def _masked(self, mask: Operand, tail: bool) -> list[str]:
        row, column = (0 if constant(n) == 1 else s for n, s in zip(mask.shape[-2:], mask.strides[-2:], strict=True))
        place = f"mask{offset_of(self.text, mask)} + ({self.m} * {self.text.atom(row)}"
        place += f" + {self.n} * {self.text.atom(column)})"
        inside = [] if self.whole_m else [f"({self.m} < {self.text.size(self.queries)})"]
        if tail and not self.whole_n:
            inside.append(f"({self.n} < {self.text.size(self.keys)})")
        where = " & ".join(inside)
        load = f"tl.load({place}{f', {where}, other=0' if where else ''})"
        if mask.dtype is bool_:
            return [f's = tl.where({load} != 0, s, float("-inf"))']
        return [f"s += {load}"]

    def kept_lines(self) -> list[str]:
        """``kept``: what dropout leaves, over m and n; the numbers are those of ``dropout_mask``."""
        limit = round(self.step.dropout * 2**32)
        if limit >= 2**32:
            return [f"kept = ({self.m} < 0) & ({self.n} < 0)"]
        text, lead = self.text, self.lead
        head = "0"
        for name, size in zip(_LEAD, lead, strict=True):
            if constant(size) != 1:
                head = name if head == "0" else f"({head} * {text.atom(size)} + {name})"
        row = f"({head} * {text.atom(self.queries)} + {self.m}).to(tl.int64)"
        return [
            f"number = {row} * {text.atom(self.keys)} + {self.n}",
            f"kept = lm_philox(seed, counter, number) >= tl.full([], {limit}, tl.uint32)",
        ]


MOST_EDGES = 4
"""Tiles that are written out, one behind the other."""


def edge_tiles(scores: Scores) -> tuple[str, int] | None:
    """Tiles of keys that the diagonal or the end cuts, for a tile of queries at ``start``: (where the first begins, how
    many there are). They come before the loop over the others. None: they need a loop of their own.
    """
    text, keys, block_m, block_n = scores.text, scores.keys, scores.block_m, scores.block_n
    if not scores.step.causal:
        return text.size(keys // block_n * block_n), 0 if scores.whole_n else 1
    if block_m <= block_n:
        last = text.size((keys - 1) // block_n * block_n)
        return f"min(start // BLOCK_N * BLOCK_N, {last})", 1
    if block_m > MOST_EDGES * block_n or not is_multiple(keys, block_m):
        return None
    return f"min(start, {text.size(keys)} - BLOCK_M)", block_m // block_n
