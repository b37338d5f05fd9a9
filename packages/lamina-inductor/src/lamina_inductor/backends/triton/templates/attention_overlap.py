"""Attention forward for one GPU generation (sm_90): products of one tile are on their way while another's probabilities
are made.

Written in Gluon, Triton's lower language, which says when a product is waited for: a turn starts the scores of a tile
and the product of the last tile's probabilities with its values, waits for the scores alone, and makes their
probabilities beside the other. Keys are walked from the diagonal backwards, so that only the first tile has a mask;
keys and values come by the copy engine, ``STAGES`` tiles ahead. Several programs share a multiprocessor and fill each
other's gaps.

Source: Shah et al. 2024 (FlashAttention-3), section 3.2, without its specialised warps. One stream of tiles through
many blocks of queries was slower (189 to 198 us beside 173 us, 8 x 16 x 2048 x 64, causal): what it saves where a block
ends goes into counting what to load next.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
import re
from typing import Any

from ....ir.program import Attention, Operand
from ....tune.candidates import AttentionCandidate
from ..program import TritonLaunch
from ..tiles import constant
from .attention_text import LOG2E, Scores, can_describe_heads, lead_lines, offset_of
from .kernel_text import KernelText

__all__ = ["OverlapKernel", "ROWS", "can_overlap", "descriptor_layout", "has_gluon", "overlap_launch", "place_lines"]

ORIGIN = (("", "attention_with_lse", ""),)

WIDTHS = (64, 128)

ROWS = 64
"""Queries of a group of four warps."""

TOGETHER = 16
"""Heads whose blocks of queries are walked side by side, the longest first: their keys stay in the cache."""

KNOWN = ((3, 6), (3, 9))
"""The first and the last triton whose Gluon the text is known to compile with; it is experimental, and changes."""

_HALF = {"float16": "gl.float16", "bfloat16": "gl.bfloat16"}


@functools.cache
def has_gluon() -> bool:
    """Is the installed triton one of those? Where none is, nothing is compiled, and it does not matter."""
    try:
        found = re.match(r"(\d+)\.(\d+)", importlib.metadata.version("triton"))
    except importlib.metadata.PackageNotFoundError:
        return True
    return found is not None and KNOWN[0] <= (int(found[1]), int(found[2])) <= KNOWN[1]


def can_overlap(step: Attention) -> bool:
    """Is it attention of half types, whole tiles and matrices of known sizes, without a mask or dropout?"""
    operands = (step.query, step.key, step.value, step.out)
    sizes = [constant(n) for o in operands for n in (*o.shape[3:], *o.strides[3:])]
    if None in sizes or step.mask is not None or step.dropout or step.query.dtype.itemsize != 2 or step.scale <= 0:
        return False
    queries, keys, width = (int(n) for n in (step.query.shape[3], step.key.shape[3], step.query.shape[4]))
    whole = queries % 64 == 0 and keys % 128 == 0 and width in WIDTHS and int(step.value.shape[4]) == width
    short = step.causal and queries > keys
    return whole and not short and all(can_describe_heads(o) for o in (step.query, step.key, step.value))


def place_lines(text: KernelText, heads: Any, tiles: int) -> tuple[int | str, list[str]]:
    """How many heads are walked side by side, and lines that define ``head`` and a ``place`` among their blocks, of
    which each head has ``tiles``."""
    known = constant(heads)
    if known is None:  # the last heads may be fewer
        return "together", [
            f"first = gl.program_id(0) // {tiles * TOGETHER} * {TOGETHER}",
            f"place = gl.program_id(0) - first * {tiles}",
            f"together = gl.minimum({text.atom(heads)} - first, {TOGETHER})",
            "head = first + place % together",
        ]
    together = math.gcd(known, TOGETHER)
    group = tiles * together
    return together, [
        f"place = gl.program_id(0) % {group}",
        f"head = gl.program_id(0) // {group} * {together} + place % {together}",
    ]


def overlap_launch(step: Attention, config: AttentionCandidate) -> TritonLaunch:
    """The launch. Tiles of keys are not smaller than those of queries."""
    if config.block_m > ROWS:
        from .attention_groups import groups_launch

        return groups_launch(step, config)
    text = KernelText(language="gluon")
    scores = Scores(step, text, config.block_m, config.block_n, described=frozenset(("query", "key", "value")))
    for name in ("query", "key", "value", "out", "lse"):
        operand = getattr(step, name)
        if operand is not None and name in scores.described:
            described, tile = scores.description(name)
            text.descriptor(name, described, tile, layout=descriptor_layout(len(tile)))
        elif operand is not None:
            text.pointer(name, operand.dtype, operand)
    text.block(
        BLOCK_M=config.block_m, BLOCK_N=config.block_n, WIDTH=scores.width, STAGES=config.stages, WARPS=config.warps
    )  # fmt: skip
    kernel = OverlapKernel(scores)
    kernel.write()
    made, buffers, sizes = text.finish(warps=config.warps, registers=config.registers, origins=ORIGIN)
    return TritonLaunch(made, buffers, sizes, (kernel.blocks,))


class OverlapKernel:
    """The kernel's text."""

    def __init__(self, scores: Scores) -> None:
        self.scores, self.text, self.step = scores, scores.text, scores.step
        self.heads: Any = math.prod(scores.lead)
        self.tiles = int(scores.queries) // scores.block_m
        self.blocks = self.heads * self.tiles
        self.factor = repr(self.step.scale * LOG2E)
        self.half = _HALF[self.step.query.dtype.name]

    def write(self) -> None:
        """All lines."""
        self._layouts()
        self._block()
        self._memory()
        self._first_tile()
        self.text.add("for tile in range(1, tiles):")
        self.text.depth += 1
        self._tile()
        self.text.depth -= 1
        self._end()

    def _layouts(self) -> None:
        mma = "gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, {}, 16])"
        self.text.add(
            f"over_keys: gl.constexpr = {mma.format('BLOCK_N')}",
            f"over_width: gl.constexpr = {mma.format('WIDTH')}",
            "operand: gl.constexpr = gl.DotOperandLayout(0, over_width, k_width=2)",
            "row: gl.constexpr = gl.SliceLayout(1, over_keys)",
            "out_row: gl.constexpr = gl.SliceLayout(1, over_width)",
        )

    def _block(self) -> None:
        """Which block of queries: its head, first query and tiles of keys."""
        block_n = self.scores.block_n
        tiles = "(start + BLOCK_M + BLOCK_N - 1) // BLOCK_N" if self.step.causal else int(self.scores.keys) // block_n
        together, lines = self._head()
        self.text.add(
            *lines,
            *lead_lines(self.text, self.scores.lead, "head"),
            f"start = ({self.tiles - 1} - place // {together}) * BLOCK_M",
            f"tiles = {tiles}",
        )

    def _head(self) -> tuple[int | str, list[str]]:
        return place_lines(self.text, self.heads, self.tiles)

    def _memory(self) -> None:
        """Tiles in shared memory, and the loads of the first ones. Barriers: of keys, of values, of the queries."""
        text = self.text
        shapes = {name: ", ".join(map(str, self.scores.description(name)[1])) for name in ("query", "key", "value")}
        text.add(
            f"queries = gl.allocate_shared_memory({self.half}, [{shapes['query']}], query.layout)",
            f"keys = gl.allocate_shared_memory({self.half}, [STAGES, {shapes['key']}], key.layout)",
            f"values = gl.allocate_shared_memory({self.half}, [STAGES, {shapes['value']}], value.layout)",
            "arrived = gl.allocate_shared_memory(gl.int64, [2 * STAGES + 1, 1], gl_mbarrier.MBarrierLayout())",
            "for number in gl.static_range(2 * STAGES + 1):",
            "    gl_mbarrier.init(arrived.index(number), count=1)",
            "gl_fence()",
            "gl_mbarrier.expect(arrived.index(2 * STAGES), 2 * BLOCK_M * WIDTH)",
            f"gl_load(query, {self._at('query', 'start')}, arrived.index(2 * STAGES), queries)",
            "for ahead in gl.static_range(STAGES):",
        )
        text.depth += 1
        self._load("key", "ahead", "ahead")
        self._load("value", "ahead", "ahead")
        text.depth -= 1

    def _load(self, name: str, slot: str, tile: str) -> None:
        """A tile of keys or values, if there is one of this number, counted from the last."""
        bar = f"arrived.index({slot if name == 'key' else f'STAGES + {slot}'})"
        self.text.add(
            f"gl_mbarrier.expect({bar}, 2 * BLOCK_N * WIDTH, pred={tile} < tiles)",
            f"gl_load({name}, {self._at(name, f'(tiles - 1 - ({tile})) * BLOCK_N')}, {bar}, "
            f"{name}s.index({slot}), pred={tile} < tiles)",
        )

    def _scores(self) -> str:
        return (
            f"gl_mma(queries{self._flat('query')}, keys.index(slot){self._flat('key')}.permute((1, 0)), zeros, "
            "use_acc=False, is_async=True)"
        )

    def _first_tile(self) -> None:
        text = self.text
        text.add(
            "zeros = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, over_keys)",
            "slot = 0",
            "phase = 0",
            "gl_mbarrier.wait(arrived.index(2 * STAGES), 0)",
            "gl_mbarrier.wait(arrived.index(0), 0)",
            f"s = {self._scores()}",
            "s = gl_mma_wait(0, deps=[s])",
            "m = gl.arange(0, BLOCK_M, layout=row)",
        )
        text.add(*self._diagonal(), *self._first_weights(), "gl_barrier()")
        self._load("key", "0", "STAGES")

    def _diagonal(self) -> tuple[str, ...]:
        """The mask of the first tile, which the diagonal cuts."""
        if not self.step.causal:
            return ()
        return (
            "n = (tiles - 1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, over_keys))",
            's = gl.where(gl.expand_dims(start + m, 1) >= gl.expand_dims(n, 0), s, float("-inf"))',
        )

    def _first_weights(self) -> tuple[str, ...]:
        """The first tile's probabilities, and nothing added up."""
        return (
            f"best = gl.max(s, 1) * {self.factor}",
            f"weight = gl.exp2(s * {self.factor} - gl.expand_dims(best, 1))",
            "total = gl.sum(weight, 1)",
            f"p = gl.convert_layout(weight.to({self.half}), operand)",
            "acc = gl.zeros([BLOCK_M, WIDTH], gl.float32, over_width)",
        )

    def _weights(self) -> tuple[str, ...]:
        """A further tile's probabilities."""
        return (
            f"top = gl.maximum(best, gl.max(s, 1) * {self.factor})",
            f"weight = gl.exp2(s * {self.factor} - gl.expand_dims(top, 1))",
            "shrink = gl.exp2(best - top)",
            "total = total * shrink + gl.sum(weight, 1)",
            "best = top",
            f"p = gl.convert_layout(weight.to({self.half}), operand)",
        )

    def _tile(self) -> None:
        """A tile of keys, beside the values of the tile before."""
        text = self.text
        text.add(
            "used = slot",
            "turn = phase",
            "slot += 1",
            "if slot == STAGES:",
            "    slot = 0",
            "    phase ^= 1",
            "gl_mbarrier.wait(arrived.index(slot), phase)",
            f"product = {self._scores()}",
            "gl_mbarrier.wait(arrived.index(STAGES + used), turn)",
            f"sum = gl_mma(p, values.index(used){self._flat('value')}, acc, is_async=True)",
            "s = gl_mma_wait(1, deps=[product])",
            *self._weights(),
            "acc = gl_mma_wait(0, deps=[sum])",
            "gl_barrier()",
        )
        self._load("key", "slot", "tile + STAGES")
        self._load("value", "used", "tile - 1 + STAGES")
        text.add("acc = acc * gl.expand_dims(gl.convert_layout(shrink, out_row), 1)")

    def _end(self) -> None:
        """The last values; the results are stored."""
        self.text.add(
            "gl_mbarrier.wait(arrived.index(STAGES + slot), phase)",
            f"sum = gl_mma(p, values.index(slot){self._flat('value')}, acc, is_async=True)",
            "acc = gl_mma_wait(0, deps=[sum])",
        )
        self._store()

    def _store(self) -> None:
        """The results."""
        text, step = self.text, self.step
        rows, columns = step.out.strides[3:]
        cells = f"(gl.expand_dims(at, 1) * {rows} + gl.expand_dims(e, 0) * {columns})"
        text.add(
            "acc = acc / gl.expand_dims(gl.convert_layout(total, out_row), 1)",
            "at = start + gl.arange(0, BLOCK_M, layout=out_row)",
            "e = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, over_width))",
            f"gl.store(out{offset_of(text, step.out)} + {cells}, acc.to({self.half}))",
        )
        if step.lse is not None:
            place = f"lse{offset_of(text, step.lse)} + (start + m) * {step.lse.strides[3]}"
            text.add(f"gl.store({place}, best * {math.log(2.0)!r} + gl.log(total))")

    def _at(self, name: str, row: str) -> str:
        """Where a tile is, for its descriptor."""
        return f"[{''.join(f'{n}, ' for n in self._leads(name))}{row}, 0]"

    def _flat(self, name: str) -> str:
        """What makes a matrix of a tile in shared memory."""
        rows = "BLOCK_M" if name == "query" else "BLOCK_N"
        return f".reshape([{rows}, WIDTH])" if self._leads(name) else ""

    def _leads(self, name: str) -> list[str]:
        """Names of the dimensions in front of an operand's matrices that its descriptor has."""
        operand: Operand = getattr(self.step, name)
        pairs = zip("bhg", operand.shape[:3], operand.strides[:3], strict=True)
        return [n for n, size, stride in pairs if constant(size) != 1 and constant(stride) != 0]


def descriptor_layout(rank: int) -> str:
    """Tiles in shared memory as the matrix units read them."""
    return (
        f"NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank={rank}, transposed=False, "
        "fp4_padded=False, cga_layout=[])"
    )
