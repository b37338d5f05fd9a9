"""Attention's gradients for one GPU generation (sm_90): products are on their way while probabilities are made.

Written in Gluon, Triton's lower language, which says when a product is waited for. A turn starts a tile's scores and
the product of values with the outputs' gradients; probabilities are made beside the second, their gradients beside the
sum that the probabilities enter, and that sum's and the next one's ends are waited for in the next turn, together with
its scores. The kernels are those of ``attention_backward``: what is summed is summed by the program that stores it.

Source: Shah et al. 2024 (FlashAttention-3), section 3.2, for the order; Dao et al. 2022, algorithm 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from lamina_fx import float32

from ....ir.program import AttentionBackward, Operand
from ....tune.candidates import AttentionCandidate
from ..literals import language_type
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .attention_overlap import descriptor_layout, place_lines
from .attention_sums import ROW_VALUES, row_sums, rows_of_head, scratch_for
from .attention_text import Scores, can_describe_heads, lead_lines, offset_of
from .kernel_text import KernelText

__all__ = ["can_overlap_backward", "overlapped_backward"]

WIDTHS = (64, 128)

SCAN = 1024
"""Weights of queries that are looked at together."""


def can_overlap_backward(step: AttentionBackward) -> bool:
    """Is it attention of half types, whole tiles and matrices of known sizes, without a mask or dropout, whose
    gradients are all wanted?"""
    operands = (step.query, step.key, step.value, step.grad_out, step.out)
    gradients = (step.grad_query, step.grad_key, step.grad_value)
    if None in gradients or step.mask is not None or step.dropout or step.scale <= 0:
        return False
    sizes = [constant(n) for o in (*operands, *gradients) if o is not None for n in (*o.shape[3:], *o.strides[3:])]
    sizes += [constant(n) for o in gradients if o is not None for n in _summed(step, o)]
    if None in sizes or step.query.dtype.itemsize != 2:
        return False
    queries, keys, width, of_values = _numbers((*step.query.shape[3:4], *step.key.shape[3:], *step.value.shape[4:]))
    whole = queries % 64 == 0 and keys % 64 == 0 and width in WIDTHS and of_values == width
    same = step.grad_key.shape[:3] == step.grad_value.shape[:3]  # type: ignore[union-attr]  # summed alike
    short = step.causal and queries > keys
    return whole and same and not short and all(can_describe_heads(o) for o in operands[:4])


def _summed(step: AttentionBackward, gradient: Operand) -> tuple[Any, ...]:
    """Sizes of dimensions whose matrices are added up to a gradient; 1 for the others."""
    pairs = zip(gradient.shape[:3], step.out.shape[:3], strict=True)
    return tuple([1 if constant(k) != 1 else n for k, n in pairs])


def _numbers(sizes: Iterable[Any]) -> list[int]:
    """Sizes that are known."""
    return [constant(n) or 0 for n in sizes]


def overlapped_backward(step: AttentionBackward, config: AttentionCandidate) -> list[TritonLaunch]:
    """The launches."""
    rows, heads = scratch_for(step)
    found = row_sums(step, rows, heads, False, "ieee", False)
    return [found, _Queries(step, config, rows).launch(), _Keys(step, config, rows).launch()]


class _Walk:
    """A kernel that keeps a tile of one length and walks tiles of the other: what both have in common."""

    kept: tuple[str, str]
    walked: tuple[str, str]
    of_queries: bool

    def __init__(self, step: AttentionBackward, config: AttentionCandidate, rows: Scratch) -> None:
        self.step, self.config = step, config
        self.text = text = KernelText(language="gluon")
        block_m, block_n = config.block_m, config.block_n
        if self.of_queries:  # the kept tile is the larger one
            block_m, block_n = block_n, block_m
        described = frozenset(("query", "key", "value", "grad_out"))
        self.scores = Scores(step, text, block_m, block_n, not self.of_queries, described)
        for name in ("query", "key", "value", "grad_out"):
            described, tile = self.scores.description(name)
            text.descriptor(name, described, tile, layout=descriptor_layout(len(tile)))
        text.pointer("rows", float32, rows)
        text.block(
            BLOCK_M=block_m, BLOCK_N=block_n, WIDTH=self.scores.width, STAGES=config.stages,
            WARPS=config.warps,
        )  # fmt: skip
        self.half = language_type(step.query.dtype).replace("tl.", "gl.")
        self.own, self.other = ("BLOCK_M", "BLOCK_N") if self.of_queries else ("BLOCK_N", "BLOCK_M")
        self.length, across = self.scores.queries, self.scores.keys
        if not self.of_queries:
            self.length, across = across, self.length
        own, self.step_of_walk = text.blocks[self.own], text.blocks[self.other]
        self.tiles, self.across = int(self.length) // own, int(across)
        self.factor = repr(step.scale * math.log2(math.e))

    def launch(self) -> TritonLaunch:
        """The launch."""
        self._layouts()
        heads = self._place()
        self._memory()
        self._walk()
        self._store()
        kernel, buffers, sizes = self.text.finish(
            warps=self.config.warps, registers=self.config.registers,
            origins=(("", "attention_backward", ""), *[("", name, "") for name in self.sums]),
        )  # fmt: skip
        return TritonLaunch(kernel, buffers, sizes, (heads * self.tiles,))

    @property
    def sums(self) -> tuple[str, ...]:
        """Names of the gradients."""
        return ("query",) if self.of_queries else ("key", "value")

    def gradient(self, name: str) -> Operand:
        """Where the gradient of an operand goes."""
        return getattr(self.step, f"grad_{name}")

    # -- parts -----------------------------------------------------------------------------------------

    def _layouts(self) -> None:
        mma = "gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, {}, 16])"
        self.text.add(
            f"over_walk: gl.constexpr = {mma.format(self.other)}",
            f"over_width: gl.constexpr = {mma.format('WIDTH')}",
            "operand: gl.constexpr = gl.DotOperandLayout(0, over_width, k_width=2)",
            "down: gl.constexpr = gl.SliceLayout(1, over_walk)",
            "along: gl.constexpr = gl.SliceLayout(0, over_walk)",
        )

    def _place(self) -> Any:
        """Which block a program keeps; returns the number of heads that have some."""
        text, kept = self.text, self.gradient(self.sums[0]).shape[:3]
        self.summed = tuple(_numbers(_summed(self.step, self.gradient(self.sums[0]))))
        self.parts = math.prod(self.summed)
        heads: Any = math.prod(kept)
        together, lines = place_lines(text, heads, self.tiles)
        tile = f"place // {together}"
        longest_first = f"{self.tiles - 1} - {tile}" if self.of_queries else tile
        text.add(
            *lines,
            *lead_lines(text, kept, "head"),
            f"start = ({longest_first}) * {self.own}",
        )
        if self.of_queries:
            whole = str(self.across // self.step_of_walk)
            last = "(start + BLOCK_M + BLOCK_N - 1) // BLOCK_N" if self.step.causal else whole
            text.add(f"count = {last}")
        else:
            text.add(f"begin = {'start // BLOCK_M' if self.step.causal else 0}")
            text.add(f"count = {self.across // self.step_of_walk} - begin")
        text.add(f"turns = {f'{self.parts} * ' if self.parts > 1 else ''}count")
        return heads

    def _memory(self) -> None:
        text, scores = self.text, self.scores
        for names, stages in ((self.kept, ""), (self.walked, "STAGES, ")):
            for name in names:
                shape = ", ".join(map(str, scores.description(name)[1]))
                text.add(f"{name}s = gl.allocate_shared_memory({self.half}, [{stages}{shape}], {name}.layout)")
        text.add(
            "arrived = gl.allocate_shared_memory(gl.int64, [STAGES + 1, 1], gl_mbarrier.MBarrierLayout())",
            "for number in gl.static_range(STAGES + 1):",
            "    gl_mbarrier.init(arrived.index(number), count=1)",
            "gl_fence()",
            f"gl_mbarrier.expect(arrived.index(STAGES), 4 * {self.own} * WIDTH)",
            *[f"gl_load({n}, {self._at(n, 'start')}, arrived.index(STAGES), {n}s)" for n in self.kept],
            "for early in gl.static_range(STAGES):",
        )
        text.depth += 1
        self._load("early", "early", "early < turns")
        text.depth -= 1

    def _load(self, slot: str, number: str, pred: str) -> None:
        """The walked tiles of turn ``number``."""
        self._part(number)
        row = f"({self._tile(number)}) * {self.other}"
        self.text.add(f"gl_mbarrier.expect(arrived.index({slot}), 4 * {self.other} * WIDTH, pred={pred})")
        self.text.add(
            *[
                f"gl_load({n}, {self._at(n, row)}, arrived.index({slot}), {n}s.index({slot}), pred={pred})"
                for n in self.walked
            ]
        )

    def _part(self, number: str) -> None:
        """Indices along dimensions that are added up, in turn ``number``."""
        if self.parts > 1:
            self.text.add(*lead_lines(self.text, self.summed, f"({number} // count)"))

    def _tile(self, number: str) -> str:
        """Which tile is walked in a turn."""
        inner = f"{number} % count" if self.parts > 1 else number
        return f"count - 1 - {inner}" if self.of_queries else f"begin + {inner}"

    def _at(self, name: str, row: str) -> str:
        operand = getattr(self.step, name)
        pairs = zip("bhg", operand.shape[:3], operand.strides[:3], strict=True)
        leads = [n for n, size, stride in pairs if constant(size) != 1 and constant(stride) != 0]
        return f"[{''.join(f'{n}, ' for n in leads)}{row}, 0]"

    def _matrix(self, name: str, turned: bool = False) -> str:
        """A tile in shared memory as a matrix."""
        rows = "BLOCK_N" if name in ("key", "value") else "BLOCK_M"
        slot = ".index(slot)" if name in self.walked else ""
        flat = f".reshape([{rows}, WIDTH])" if len(self.scores.description(name)[1]) > 2 else ""
        return f"{name}s{slot}{flat}{'.permute((1, 0))' if turned else ''}"

    def _fresh(self, left: str, right: str) -> str:
        """The product of a tile with another one's transposed, on its way."""
        return f"gl_mma({self._matrix(left)}, {self._matrix(right, True)}, zeros, use_acc=False, is_async=True)"

    def _added(self, left: str, right: str, to: str) -> str:
        """A sum with the product of a tile in registers, on its way."""
        return f"gl_mma(gl.convert_layout({left}, operand), {self._matrix(right)}, {to}, is_async=True)"

    def _rows_at(self) -> str:
        """The address of the head's values."""
        number = "0"
        for name, size in zip("bhg", self.scores.lead, strict=True):
            if constant(size) != 1:
                number = name if number == "0" else f"({number} * {self.text.atom(size)} + {name})"
        return rows_of_head(self.scores, number)

    def _row_value(self, name: str, place: str) -> str:
        return f"gl.load(rows_at + {ROW_VALUES.index(name) * int(self.scores.queries)} + {place})"

    def _next(self) -> None:
        self.text.add("used = slot", "slot += 1", "if slot == STAGES:", "    slot = 0", "    phase ^= 1")

    def _free(self) -> None:
        """Tiles of a later turn into the place that the last turn's had."""
        self.text.add("ahead = turn - 1 + STAGES", "more = (turn > 0) & (ahead < turns)", "gl_barrier()")
        self._load("used", "ahead", "more")

    def _masked(self) -> None:
        """Probabilities beside the diagonal."""
        if not self.step.causal:
            return
        queries, keys = ("start", "base") if self.of_queries else ("base", "start")
        m, n = ("gl.expand_dims(m, 1)", "gl.expand_dims(n, 0)")
        if not self.of_queries:
            m, n = "gl.expand_dims(m, 0)", "gl.expand_dims(n, 1)"
        self.text.add(
            f"if {keys} + BLOCK_N > {queries}:",
            f"    p = gl.where({queries} + {m} >= {keys} + {n}, p, 0.0)",
        )

    def _walk(self) -> None:
        """The loop over tiles: the two kernels have one each."""
        raise NotImplementedError

    def _store(self) -> None:
        text, own = self.text, "m" if self.of_queries else "n"
        text.add(
            f"{own} = start + gl.arange(0, {self.own}, layout=gl.SliceLayout(1, over_width))",
            "d = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, over_width))",
        )
        for name in self.sums:
            target = self.gradient(name)
            text.pointer(f"grad_{name}", target.dtype, target)
            row, column = target.strides[3:]
            cells = f"(gl.expand_dims({own}, 1) * {row} + gl.expand_dims(d, 0) * {column})"
            scale = "" if name == "value" else f" * {self.step.scale!r}"
            scale += " * gl.expand_dims(gl.convert_layout(weight, gl.SliceLayout(1, over_width)), 1)" * self.of_queries
            text.add(f"gl.store(grad_{name}{offset_of(text, target)} + {cells}, (d_{name}{scale}).to({self.half}))")


class _Keys(_Walk):
    """Gradients of keys and values. Levels and totals of the queries are loaded two turns ahead, and wait in shared
    memory: over a tile of scores, a thread wants more of them than it has registers left."""

    kept, walked, of_queries = ("key", "value"), ("query", "grad_out"), False

    def _walk(self) -> None:
        text = self.text
        text.add(
            "m = gl.arange(0, BLOCK_M, layout=along)",
            "n = gl.arange(0, BLOCK_N, layout=down)",
            "flat: gl.constexpr = gl.BlockedLayout([1], [32], [WARPS], [0])",
            "cell = gl.arange(0, 2 * BLOCK_M, layout=flat)",
            "plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])",
            "held = gl.allocate_shared_memory(gl.float32, [2, 2 * BLOCK_M], plain)",
            "zeros = gl.zeros([BLOCK_N, BLOCK_M], gl.float32, over_walk)",
            "d_key = gl_mma_init(gl.zeros([BLOCK_N, WIDTH], gl.float32, over_width))",
            "d_value = gl_mma_init(gl.zeros([BLOCK_N, WIDTH], gl.float32, over_width))",
            "slot = 0",
            "phase = 0",
            "used = STAGES - 1",
        )
        self._look()
        self._early("0")
        self._hold("0")
        self._early("1")
        text.add("gl_mbarrier.wait(arrived.index(STAGES), 0)", "for turn in range(turns):")
        text.depth += 1
        text.add(
            "gl_mbarrier.wait(arrived.index(slot), phase)",
            f"scores = {self._fresh('key', 'query')}",
            f"slopes = {self._fresh('value', 'grad_out')}",
            "s, value_sum, key_sum = gl_mma_wait(1, deps=[scores, d_value, d_key])",
        )
        self._hold("turn + 1")
        self._free()
        self._early("turn + 2")
        self._part("turn")
        text.add(
            f"base = ({self._tile('turn')}) * BLOCK_M",
            "level = held.index(turn & 1).slice(BLOCK_M, BLOCK_M).load(along)",
            f"p = gl.exp2(s * {self.factor} - gl.expand_dims(level, 0))",
        )
        self._masked()
        text.add(
            "if lost:",
            f"    weights = {self._rows_at()} + {ROW_VALUES.index('weight') * self.across} + base + m",
            "    p = p * gl.expand_dims(gl.load(weights), 0)",
            f"d_value = {self._added(f'p.to({self.half})', 'grad_out', 'value_sum')}",
            "total = held.index(turn & 1).slice(0, BLOCK_M).load(along)",
            "dp = gl_mma_wait(1, deps=[slopes])",
            f"ds = (p * (dp - gl.expand_dims(total, 0))).to({self.half})",
            f"d_key = {self._added('ds', 'query', 'key_sum')}",
        )
        self._next()
        text.depth -= 1
        text.add("d_value, d_key = gl_mma_wait(0, deps=[d_value, d_key])")

    def _early(self, number: str) -> None:
        """Levels and totals of the queries of a later turn (of the last one, if there is none)."""
        self.text.add(f"later = gl.maximum(gl.minimum({number}, turns - 1), 0)")
        self._part("later")
        assert ROW_VALUES[:2] == ("total", "level")
        across = f"cell // BLOCK_M * {self.across} + cell % BLOCK_M"
        self.text.add(f"next = gl.load({self._rows_at()} + ({self._tile('later')}) * BLOCK_M + ({across}))")

    def _hold(self, number: str) -> None:
        """Into shared memory."""
        self.text.add(f"held.index(({number}) & 1).store(next)")

    def _look(self) -> None:
        """``lost``: has a query a weight other than 1?"""
        text = self.text
        text.add("off = 0", f"scan = gl.arange(0, {SCAN}, layout=flat)")
        loop = f"for at in range(begin * BLOCK_M, {self.across}, {SCAN}):"
        if self.parts > 1:
            text.add(f"for part in range({self.parts}):")
            text.depth += 1
            text.add(*lead_lines(text, self.summed, "part"))
        place = f"{self._rows_at()} + {ROW_VALUES.index('weight') * self.across} + at + scan"
        weight = f"gl.load({place}, at + scan < {self.across}, other=1.0)"
        text.add(loop, f"    off += gl.sum(({weight} != 1.0).to(gl.int32), 0)")
        text.depth = 0
        text.add("lost = off > 0")


class _Queries(_Walk):
    """Gradients of queries."""

    kept, walked, of_queries = ("query", "grad_out"), ("key", "value"), True

    def _walk(self) -> None:
        text, step = self.text, self.step
        row, column = step.out.strides[3:]
        cells = f"(gl.expand_dims(r, 1) * {row} + gl.expand_dims(e, 0) * {column})"
        text.pointer("out", step.out.dtype, step.out)
        if step.grad_lse is not None:
            text.pointer("grad_lse", float32, step.grad_lse)
        text.add(
            "m = gl.arange(0, BLOCK_M, layout=down)",
            "n = gl.arange(0, BLOCK_N, layout=along)",
            f"rows_at = {self._rows_at()}",
            "zeros = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, over_walk)",
            "d_query = gl_mma_init(gl.zeros([BLOCK_M, WIDTH], gl.float32, over_width))",
            "slot = 0",
            "phase = 0",
            "used = STAGES - 1",
            f"level = {self._row_value('level', 'start + m')}",
            f"weight = {self._row_value('weight', 'start + m')}",
            "flat: gl.constexpr = gl.BlockedLayout([1, 8], [32 // (WIDTH // 8), WIDTH // 8], [WARPS, 1], [1, 0])",
            "r = start + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, flat))",
            "e = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, flat))",
            f"o = gl.load(out{offset_of(text, step.out)} + {cells})",
            "gl_mbarrier.wait(arrived.index(STAGES), 0)",
            f"grads = {self._matrix('grad_out')}.load(flat)",
            "total = gl.sum(o.to(gl.float32) * grads.to(gl.float32), 1)",
        )
        if step.grad_lse is not None:
            text.add(f"total -= gl.load(grad_lse{offset_of(text, step.grad_lse)} + r * {step.grad_lse.strides[3]})")
        text.add(
            f"gl.store(rows_at + {ROW_VALUES.index('total') * int(self.scores.queries)} + r, total)",
            "total = gl.convert_layout(total, down)",
            "for turn in range(turns):",
        )
        text.depth += 1
        text.add(
            f"base = ({self._tile('turn')}) * BLOCK_N",
            "gl_mbarrier.wait(arrived.index(slot), phase)",
            f"scores = {self._fresh('query', 'key')}",
            f"slopes = {self._fresh('grad_out', 'value')}",
            "s, query_sum = gl_mma_wait(1, deps=[scores, d_query])",
        )
        self._free()
        text.add(f"p = gl.exp2(s * {self.factor} - gl.expand_dims(level, 1))")
        self._masked()
        text.add(
            "dp = gl_mma_wait(0, deps=[slopes])",
            f"ds = (p * (dp - gl.expand_dims(total, 1))).to({self.half})",
            f"d_query = {self._added('ds', 'key', 'query_sum')}",
        )
        self._next()
        text.depth -= 1
        text.add("d_query = gl_mma_wait(0, deps=[d_query])")
