"""Attention forward for one GPU generation (sm_90): a program walks the tiles of many query blocks as one stream.

Written in Gluon, Triton's lower language, because it says when a product is waited for: the scores of a tile and the
last tile's product with the values are on their way together, and the probabilities are made beside the second. The
stream goes on from one block of queries to the next, so neither loads nor products stop where a block ends: the first
scores of a block are computed beside the last product of the block before. Keys are walked from the diagonal backwards;
each step loads a tile of keys and the values of the tile before.

Source: Shah et al. 2024 (FlashAttention-3), section 3.2, without its specialised warps: the multiprocessor runs several
programs, which fill each other's gaps.
"""

from __future__ import annotations

import functools
import math

from ....ir.program import Attention, Operand
from ....tune.candidates import AttentionCandidate
from ..literals import language_type
from ..program import TritonLaunch
from ..tiles import constant
from .attention_text import LOG2E, Scores, can_describe_heads, lead_lines, offset_of
from .kernel_text import KernelText

__all__ = ["can_stream", "stream_launch"]

ORIGIN = (("", "attention_with_lse", ""),)

WIDTHS = (64, 128)

SHARED = 3
"""Programs that read the keys of a head at a time, so that these come from the second-level cache."""

BLOCK_COST = 0.6
"""What a block of queries costs beside its tiles of keys, in tiles."""


def can_stream(step: Attention) -> bool:
    """Is it attention of half types, whole tiles and known sizes, without a mask or dropout?"""
    sizes = [constant(n) for o in (step.query, step.key, step.value, step.out) for n in (*o.shape, *o.strides)]
    if None in sizes or step.mask is not None or step.dropout or step.query.dtype.itemsize != 2 or step.scale <= 0:
        return False
    queries, keys, width = (int(n) for n in (step.query.shape[3], step.key.shape[3], step.query.shape[4]))
    whole = queries % 64 == 0 and keys % 128 == 0 and width in WIDTHS and int(step.value.shape[4]) == width
    short = step.causal and queries > keys
    return whole and not short and all(can_describe_heads(o) for o in (step.query, step.key, step.value))


def stream_launch(step: Attention, config: AttentionCandidate, programs: int) -> TritonLaunch:
    """The launch; ``programs``: that the device runs at a time."""
    text = KernelText(language="gluon")
    scores = Scores(step, text, config.block_m, config.block_n, described=frozenset(("query", "key", "value")))
    for name in ("query", "key", "value", "out", "lse"):
        operand = getattr(step, name)
        if operand is not None and name in scores.described:
            described, tile = scores.description(name)
            text.descriptor(name, described, tile, layout=_layout(len(tile)))
        elif operand is not None:
            text.pointer(name, operand.dtype, operand)
    stream = _Stream(scores, programs)
    text.block(
        BLOCK_M=config.block_m, BLOCK_N=config.block_n, WIDTH=scores.width, STAGES=config.stages, WARPS=config.warps,
        PROGRAMS=stream.programs,
    )  # fmt: skip
    stream.write()
    kernel, buffers, sizes = text.finish(warps=config.warps, registers=config.registers, origins=ORIGIN)
    return TritonLaunch(kernel, buffers, sizes, (stream.programs,))


class _Stream:
    """The kernel's text.

    Blocks of queries are numbered so that those with most keys come first in each group of ``together`` heads. In round
    k program i walks number ``k * PROGRAMS + i``, in the next one i from the other end, so that all walk as many keys.
    """

    def __init__(self, scores: Scores, programs: int) -> None:
        self.scores, self.text, self.step = scores, scores.text, scores.step
        self.heads = math.prod(int(n) for n in scores.lead)
        self.tiles = int(scores.queries) // scores.block_m
        self.blocks = self.heads * self.tiles
        lengths = tuple([self._keys(t) for t in reversed(range(self.tiles))])
        self.programs, self.together = _order(lengths, self.heads, min(programs, self.blocks))
        self.rounds = -(-self.blocks // self.programs)

    def _keys(self, tile: int) -> int:
        """Tiles of keys of the queries' tile."""
        block_m, block_n = self.scores.block_m, self.scores.block_n
        end = (tile + 1) * block_m if self.step.causal else int(self.scores.keys)
        return -(-end // block_n)

    def write(self) -> None:
        """All lines."""
        self._layouts()
        self._memory()
        self._begin()
        text = self.text
        text.add("for round in range(0, rounds):")
        text.depth += 1
        self._block("round")
        text.add("gl_mbarrier.wait(arrived.index(STAGES), turn)", "turn ^= 1")
        self._step(first=True)
        text.add("for tile in range(1, tiles):")
        text.depth += 1
        self._step(first=False)
        text.depth = 0
        text.add(
            f"sum = gl_mma(p, values.index(slot){self._flat('value')}, acc, is_async=True)",
            "acc = gl_mma_wait(0, deps=[sum])",
        )
        self._store(where="")

    # -- parts ---------------------------------------------------------------------------------------------

    def _layouts(self) -> None:
        mma = "gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, {}, 16])"
        self.text.add(
            f"over_keys: gl.constexpr = {mma.format('BLOCK_N')}",
            f"over_width: gl.constexpr = {mma.format('WIDTH')}",
            "operand: gl.constexpr = gl.DotOperandLayout(0, over_width, k_width=2)",
            "row: gl.constexpr = gl.SliceLayout(1, over_keys)",
            "out_row: gl.constexpr = gl.SliceLayout(1, over_width)",
            "m = gl.arange(0, BLOCK_M, layout=row)",
            "n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, over_keys))",
            "out_m = gl.arange(0, BLOCK_M, layout=out_row)",
            "e = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, over_width))",
        )

    def _memory(self) -> None:
        kind = {"float16": "gl.float16", "bfloat16": "gl.bfloat16"}[self.step.query.dtype.name]
        shapes = {name: ", ".join(map(str, self.scores.description(name)[1])) for name in ("query", "key", "value")}
        self.text.add(
            f"queries = gl.allocate_shared_memory({kind}, [{shapes['query']}], query.layout)",
            f"keys = gl.allocate_shared_memory({kind}, [STAGES, {shapes['key']}], key.layout)",
            f"values = gl.allocate_shared_memory({kind}, [STAGES, {shapes['value']}], value.layout)",
            "arrived = gl.allocate_shared_memory(gl.int64, [STAGES + 1, 1], gl_mbarrier.MBarrierLayout())",
            "for number in gl.static_range(STAGES + 1):",
            "    gl_mbarrier.init(arrived.index(number), count=1)",
            "gl_fence()",
            "first = gl.program_id(0)",
        )
        last = f"({_number(str(self.rounds - 1))} < {self.blocks})"
        self.text.add(f"rounds = {self.rounds - 1} + {last}.to(gl.int32)")

    def _begin(self) -> None:
        """The loads run ahead: tile ``next_tile`` of round ``next`` is next, with the values of the tile before it."""
        text = self.text
        text.add("next = first * 0")
        self._block("next", "next_")
        text.add("next_tile = 0", "values_follow = True", "values_at = 0")
        for name in self._leads("value"):
            text.add(f"values_{name} = next_{name}")
        self._load_queries("next_", "True")
        text.add("for number in gl.static_range(STAGES):")
        text.depth += 1
        self._load("number")
        text.depth -= 1
        text.add(
            "zeros = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, over_keys)",
            "acc = gl.zeros([BLOCK_M, WIDTH], gl.float32, over_width)",
            "best = gl.zeros([BLOCK_M], gl.float32, row)",
            "total = gl.full([BLOCK_M], 1.0, gl.float32, row)",
            f"p = gl.convert_layout(zeros.to({self._half}), operand)",
            "slot = 0",
            "phase = 0",
            "turn = 0",
            "out_at = 0",
            "lse_at = 0",
            "gl_mbarrier.wait(arrived.index(0), 0)",
        )

    def _block(self, number: str, prefix: str = "") -> None:
        """What block of queries round ``number`` is: its first query, head and tiles of keys."""
        text, scores = self.text, self.scores
        group = self.tiles * self.together
        text.add(
            f"{prefix}block = gl.minimum({_number(number)}, {self.blocks - 1})",
            f"{prefix}place = {prefix}block % {group}",
            f"{prefix}start = ({self.tiles - 1} - {prefix}place // {self.together}) * BLOCK_M",
            f"{prefix}head = {prefix}block // {group} * {self.together} + {prefix}place % {self.together}",
            *lead_lines(text, scores.lead, f"{prefix}head", tuple([prefix + n for n in "bhg"])),
        )
        if self.step.causal:
            text.add(f"{prefix}tiles = ({prefix}start + BLOCK_M + BLOCK_N - 1) // BLOCK_N")
        else:
            text.add(f"{prefix}tiles = {prefix}start * 0 + {self._keys(0)}")

    def _load(self, slot: str) -> None:
        """Loads of the next tile into a slot, unless the stream has ended; then, what comes next."""
        text = self.text
        bytes_ = "4 * BLOCK_N * WIDTH"
        text.add(
            f"gl_mbarrier.expect(arrived.index({slot}), {bytes_}, pred=values_follow)",
            "keys_at = (next_tiles - 1 - next_tile) * BLOCK_N",
            f"gl_tma.async_copy_global_to_shared(key, {self._at('key', 'next_', 'keys_at')}, arrived.index({slot}), "
            f"keys.index({slot}), pred=values_follow)",
            f"gl_tma.async_copy_global_to_shared(value, {self._at('value', 'values_', 'values_at')}, "
            f"arrived.index({slot}), values.index({slot}), pred=values_follow)",
            "values_follow = next < rounds",
            "values_at = keys_at",
            *[f"values_{name} = next_{name}" for name in self._leads("value")],
            "next_tile += 1",
            "if next_tile == next_tiles:",
        )
        text.depth += 1
        text.add("next += 1", "next_tile = 0")
        self._block("next", "next_")
        text.depth -= 1

    def _load_queries(self, prefix: str, pred: str) -> None:
        self.text.add(
            f"gl_mbarrier.expect(arrived.index(STAGES), 2 * BLOCK_M * WIDTH, pred={pred})",
            f"gl_tma.async_copy_global_to_shared(query, {self._at('query', prefix, f'{prefix}start')}, "
            f"arrived.index(STAGES), queries, pred={pred})",
        )

    def _step(self, first: bool) -> None:
        """One tile of keys; ``first``: of a block, beside the last values of the block before, which is stored then."""
        text, factor = self.text, repr(self.step.scale * LOG2E)
        text.add(
            f"product = gl_mma(queries{self._flat('query')}, keys.index(slot){self._flat('key')}.permute((1, 0)), "
            "zeros, use_acc=False, is_async=True)",
            f"sum = gl_mma(p, values.index(slot){self._flat('value')}, acc, is_async=True)",
            "s = gl_mma_wait(1, deps=[product])",
            f"if {'tiles == 1' if first else 'tile == tiles - 1'}:",
        )
        text.depth += 1
        text.add("gl.thread_barrier()")
        self._block("round + 1", "later_")
        self._load_queries("later_", "round + 1 < rounds")
        text.depth -= 1
        if first and self.step.causal:
            text.add(
                "seen = gl.expand_dims(start + m, 1) >= gl.expand_dims((tiles - 1) * BLOCK_N + n, 0)",
                's = gl.where(seen, s, float("-inf"))',
            )
        largest = f"gl.max(s, 1) * {factor}"
        text.add(
            f"top = {largest}" if first else f"top = gl.maximum(best, {largest})",
            f"weight = gl.exp2(s * {factor} - gl.expand_dims(top, 1))",
        )
        if not first:
            text.add("shrink = gl.exp2(best - top)", "total = total * shrink + gl.sum(weight, 1)", "best = top")
        else:
            text.add("fresh = gl.sum(weight, 1)")
        text.add(
            f"p = gl.convert_layout(weight.to({self._half}), operand)",
            "used = slot",
            "slot += 1",
            "if slot == STAGES:",
            "    slot = 0",
            "    phase ^= 1",
            # waiting here for the next tile also keeps the assembler from waiting for the product any earlier
            "gl_mbarrier.wait(arrived.index(slot), phase)",
            "acc = gl_mma_wait(0, deps=[sum])",
            "gl.thread_barrier()",
        )
        self._load("used")
        if not first:
            text.add("acc = acc * gl.expand_dims(gl.convert_layout(shrink, out_row), 1)")
            return
        self._store(where="round > 0")
        text.add(
            f"out_at = {self._matrix(self.step.out)} + start * {self.step.out.strides[3]}",
            "best = top",
            "total = fresh",
            "acc = gl.zeros([BLOCK_M, WIDTH], gl.float32, over_width)",
        )
        if self.step.lse is not None:
            text.add(f"lse_at = {self._matrix(self.step.lse)} + start * {self.step.lse.strides[3]}")

    def _store(self, where: str) -> None:
        """The results of the block that ends, where the condition holds."""
        text, step = self.text, self.step
        rows, columns = step.out.strides[3:]
        mask = f", mask=(gl.expand_dims(out_m, 1) + gl.expand_dims(e, 0) >= 0) & ({where})" if where else ""
        text.add(
            "acc = acc * gl.expand_dims(gl.convert_layout(1.0 / total, out_row), 1)",
            f"place = out + out_at + (gl.expand_dims(out_m, 1) * {rows} + gl.expand_dims(e, 0) * {columns})",
            f"gl.store(place, acc.to({language_type(step.out.dtype).replace('tl.', 'gl.')}){mask})",
        )
        if step.lse is not None:
            mask = f", mask=(m >= 0) & ({where})" if where else ""
            level = f"best * {math.log(2.0)!r} + gl.log(total)"
            text.add(f"gl.store(lse + lse_at + m * {step.lse.strides[3]}, {level}{mask})")

    # -- words ---------------------------------------------------------------------------------------------

    @property
    def _half(self) -> str:
        return language_type(self.step.query.dtype).replace("tl.", "gl.")

    def _leads(self, name: str) -> list[str]:
        """Names of the dimensions in front of an operand's matrices that its descriptor has."""
        operand: Operand = getattr(self.step, name)
        pairs = zip("bhg", operand.shape[:3], operand.strides[:3], strict=True)
        return [n for n, size, stride in pairs if constant(size) != 1 and constant(stride) != 0]

    def _at(self, name: str, prefix: str, row: str) -> str:
        """Where a tile is, for its descriptor."""
        return f"[{''.join(f'{prefix}{n}, ' for n in self._leads(name))}{row}, 0]"

    def _flat(self, name: str) -> str:
        """What makes a matrix of a tile in shared memory."""
        rows = "BLOCK_M" if name == "query" else "BLOCK_N"
        return f".reshape([{rows}, WIDTH])" if self._leads(name) else ""

    def _matrix(self, operand: Operand) -> str:
        """The offset of the matrix at ``b``, ``h``, ``g``."""
        return offset_of(self.text, operand).removeprefix(" + ") or "0"


def _layout(rank: int) -> str:
    """Tiles in shared memory as the matrix units read them."""
    return (
        f"NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank={rank}, transposed=False, "
        "fp4_padded=False, cga_layout=[])"
    )


def _number(round_: str) -> str:
    """Of the block that a program walks in a round."""
    return f"(({round_}) * PROGRAMS + first + ({round_}) % 2 * (PROGRAMS - 1 - 2 * first))"


@functools.lru_cache(maxsize=64)
def _order(lengths: tuple[int, ...], heads: int, most: int) -> tuple[int, int]:
    """(programs, heads of a group) with which the busiest program has least to do, among ``most`` programs.

    ``lengths``: tiles of keys of each tile of queries. Several programs at a time should read the keys of a head.
    """
    shared = max(1, most // SHARED)
    groups = [n for n in range(1, heads + 1) if heads % n == 0 and (n <= shared or n == 1)][-6:]
    counts = {most, *[n for n in (most // 8 * 8, most // 32 * 32, most // 128 * 128) if n > most * 7 // 8]}
    return min(
        ((p, g) for p in sorted(counts, reverse=True) for g in groups), key=lambda c: _busiest(lengths, heads, *c)
    )


def _busiest(lengths: tuple[int, ...], heads: int, programs: int, group: int) -> float:
    """Tiles that the busiest of the programs walks; a block costs a part of a tile itself."""
    sums = [0.0] * programs
    order = [lengths[t] + BLOCK_COST for _ in range(heads // group) for t in range(len(lengths)) for _ in range(group)]
    for number, cost in enumerate(order):
        turn, place = divmod(number, programs)
        sums[programs - 1 - place if turn % 2 else place] += cost
    return max(sums)
