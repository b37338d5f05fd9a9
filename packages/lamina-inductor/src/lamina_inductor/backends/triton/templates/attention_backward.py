"""Attention backward without atomics: a kernel for numbers of the rows, one for queries, one for keys and values.

Source: Dao et al. 2022 (FlashAttention), algorithm 4; here each gradient is summed by the program that stores it, so
results are the same every time. Where an operand was broadcast (grouped queries share keys), the program walks all the
matrices whose gradients it adds.
"""

from __future__ import annotations

from typing import Any

from lamina_fx import float32

from ....ir.program import AttentionBackward, Operand
from ....tune.candidates import AttentionCandidate
from ..literals import language_type
from ..program import Scratch, TritonLaunch
from ..tiles import constant
from .attention_backward_overlap import overlapped_backward
from .attention_sums import ROW_VALUES, load_row, row_sums, rows_of_head, scratch_for, store_row, total_lines
from .attention_text import HELD, Scores, edge_tiles, held, lead_lines, padded, rows_at
from .gemm import ceil_div
from .kernel_text import KernelText
from .mask_lists import mask_lists

__all__ = ["attention_backward_launches"]

_NAMES = ("b", "h", "g")


def attention_backward_launches(step: AttentionBackward, config: AttentionCandidate, wide: bool) -> list[TritonLaunch]:
    """The launches of a backward pass."""
    if config.overlapped:
        return overlapped_backward(step, config)
    rows, heads = scratch_for(step)
    result = [row_sums(step, rows, heads, wide, config.precision, step.grad_query is None)]
    if step.grad_query is not None:
        result.extend(_Walk(step, config, wide, rows, ("query",)).launches())
    both = [n for n in ("key", "value") if getattr(step, f"grad_{n}") is not None]
    leads = [[constant(s) for s in getattr(step, f"grad_{n}").shape[:3]] for n in both]
    if len(both) == 2 and leads[0] != leads[1]:  # summed over different dimensions
        for name in both:
            result.extend(_Walk(step, config, wide, rows, (name,)).launches())
    elif both:
        result.extend(_Walk(step, config, wide, rows, tuple(both)).launches())
    return result


class _Walk:
    """A kernel that makes the gradients ``names``: of queries, walking keys, or of keys and values, walking queries."""

    def __init__(
        self,
        step: AttentionBackward,
        config: AttentionCandidate,
        wide: bool,
        rows: Scratch,
        names: tuple[str, ...],
    ) -> None:
        self.step, self.config, self.names = step, config, names
        self.text = KernelText(wide)
        self.of_queries = names == ("query",)
        block_m, block_n = config.block_m, config.block_n
        if self.of_queries:  # the kept tile is the larger one
            block_m, block_n = block_n, block_m
        described = frozenset(("query", "key", "value", "grad_out") if config.descriptors else ())
        self.scores = Scores(step, self.text, block_m, block_n, not self.of_queries, described, config.precision)
        self.text.block(
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            WIDTH=padded(self.scores.width),
            VALUES=padded(self.scores.value_width),
        )
        self.scores.declare("query", "key", "value", "grad_out")
        if self.of_queries:
            self.scores.declare("out", "grad_lse")
        self.text.pointer("rows", float32, rows)
        for name in names:
            gradient = self.gradient(name)
            self.text.pointer(f"grad_{name}", gradient.dtype, gradient)
        self.scores.declare_mask()
        behind = (rows.bytes + 255) // 256 * 256
        self.lists = mask_lists(self.scores, "n" if self.of_queries else "m", behind, wide)
        if self.lists is not None:
            self.lists.declare(self.text)

    def gradient(self, name: str) -> Operand:
        """Where the gradient of an operand goes."""
        return getattr(self.step, f"grad_{name}")

    def launches(self) -> list[TritonLaunch]:
        """The kernel, behind those that list the tiles of the mask."""
        return [*(self.lists.launches if self.lists is not None else ()), self._launch()]

    def _launch(self) -> TritonLaunch:
        text, scores = self.text, self.scores
        kept = self.gradient(self.names[0]).shape[:3]
        summed = tuple(
            [1 if constant(k) != 1 else size for k, size in zip(kept, scores.lead, strict=True)]
        )  # sizes of dimensions whose matrices are added up
        wide = ".to(tl.int64)" if text.wide else ""
        text.add(f"kept_head = tl.program_id(1){wide}", *lead_lines(text, kept, "kept_head"))
        text.add("d = tl.arange(0, WIDTH)", "e = tl.arange(0, VALUES)")
        if self.step.dropout:
            text.add("seed = tl.load(state)", "counter = tl.load(state + 1)")
        own, block = ("m", "BLOCK_M") if self.of_queries else ("n", "BLOCK_N")
        text.add(f"start = tl.program_id(0) * {block}", f"{own} = start + tl.arange(0, {block})")
        for name in self.names:
            across = "VALUES" if name == "value" else "WIDTH"
            text.add(f"d_{name} = tl.zeros([{block}, {across}], tl.int32)")
        parts: Any = 1
        for size in summed:
            parts = parts * size
        if constant(parts) != 1:
            text.add(f"for part in range({text.size(parts)}):")
            text.depth += 1
            text.add(*lead_lines(text, summed, "part"))
        self._head()
        text.depth = 0
        self._store(own)
        config = self.config
        kernel, buffers, sizes = text.finish(
            warps=config.warps,
            stages=config.stages,
            registers=config.registers,
            origins=(("", "attention_backward", ""), *_origin(self.names)),
        )
        heads: Any = 1
        for size in kept:
            heads = heads * size
        length = scores.queries if self.of_queries else scores.keys
        tiles = ceil_div(length, scores.block_m if self.of_queries else scores.block_n)
        return TritonLaunch(kernel, buffers, sizes, (tiles, heads))

    # -- one matrix ------------------------------------------------------------------------------------

    def _head(self) -> None:
        text, lead = self.text, self.scores.lead
        number = "0"
        for name, size in zip(_NAMES, lead, strict=True):
            if constant(size) != 1:
                number = name if number == "0" else f"({number} * {text.atom(size)} + {name})"
        text.add(f"rows_at = {rows_of_head(self.scores, number)}")
        if self.of_queries:
            self._load_queries()
            self._walk_keys()
        else:
            self._load_keys(tail=True)
            self._walk_queries()

    def _load_queries(self) -> None:
        text, scores = self.text, self.scores
        rows = scores.row_mask()
        start = "start" if self.of_queries else "base"
        text.add(
            f"q = {scores.rows('query', 'm', start, rows)}",
            f"do = {scores.rows('grad_out', 'm', start, rows)}",
        )
        if self.of_queries:
            text.add(*total_lines(scores, start), store_row(scores, "total"))
        loaded = [name for name in ROW_VALUES if name != "total" or not self.of_queries]
        text.add(*[f"{name} = {load_row(scores, name)}" for name in loaded])

    def _load_keys(self, tail: bool) -> None:
        scores = self.scores
        keys, start = scores.key_mask(tail), "base" if self.of_queries else "start"
        self.text.add(f"k = {scores.rows('key', 'n', start, keys)}", f"v = {scores.rows('value', 'n', start, keys)}")

    def _walk_keys(self) -> None:
        text, scores = self.text, self.scores
        if self.lists is not None:
            self._walk_lists("n", "start // BLOCK_M")
            return
        edges = edge_tiles(scores)
        if edges is None:
            whole = text.size(scores.keys // scores.block_n * scores.block_n)
            text.add(f"whole = min((start + 1) // BLOCK_N * BLOCK_N, {whole})")
            end = f"min(start + BLOCK_M, {text.size(scores.keys)})"
            self._loop("n", "whole", end, diagonal=True, tail=True)
            self._loop("n", "0", "whole", diagonal=False, tail=False)
            return
        edge, count = edges
        if count:
            text.add(f"edge = {edge}")
        for number in range(count):
            text.add(f"base = edge{f' + {number * scores.block_n}' if number else ''}")
            self._body("n", diagonal=True, tail=True)
        if edge != "0":
            self._loop("n", "0", "edge" if count else edge, diagonal=False, tail=False)

    def _walk_queries(self) -> None:
        text, scores = self.text, self.scores
        queries = text.size(scores.queries)
        if self.lists is not None:
            self._walk_lists("m", "start // BLOCK_N")
            return
        if not self.step.causal:
            self._loop("m", "0", queries, diagonal=False, tail=True)
            return
        end = queries
        if constant(scores.queries) is None:  # whole tiles, so that addresses in the second loop are multiples, too
            end = text.size(ceil_div(scores.queries, scores.block_m) * scores.block_m)
        text.add(
            "begin = start // BLOCK_M * BLOCK_M",
            f"mixed = min((start + BLOCK_N - 1 + BLOCK_M - 1) // BLOCK_M * BLOCK_M, {end})",
        )
        self._loop("m", "begin", "mixed", diagonal=True, tail=True)
        self._loop("m", "mixed", queries, diagonal=False, tail=True)

    def _walk_lists(self, over: str, tile: str) -> None:
        assert self.lists is not None
        self.lists.find(self.text, tile)
        block = "BLOCK_N" if over == "n" else "BLOCK_M"
        for kind in ("whole", "mixed"):
            self.text.add(f"for place in range(0, {kind}_count):")
            self.text.add(f"    base = tl.load({kind}_at + place) * {block}")
            self._turn(over, diagonal=False, tail=kind == "mixed" or over == "m", masked=kind == "mixed")

    def _loop(self, over: str, begin: str, end: str, *, diagonal: bool, tail: bool) -> None:
        block = "BLOCK_N" if over == "n" else "BLOCK_M"
        self.text.add(f"for base in range({begin}, {end}, {block}):")
        self._turn(over, diagonal=diagonal, tail=tail)

    def _turn(self, over: str, *, diagonal: bool, tail: bool, masked: bool = True) -> None:
        """The body of a loop that has just been opened."""
        self.text.depth += 1
        self._body(over, diagonal=diagonal, tail=tail, masked=masked)
        self.text.depth -= 1

    def _body(self, over: str, *, diagonal: bool, tail: bool, masked: bool = True) -> None:
        """The body for a tile of ``over``; ``tail``: keys may end in it."""
        text, step, scores = self.text, self.step, self.scores
        block = "BLOCK_N" if over == "n" else "BLOCK_M"
        text.add(f"{over} = base + tl.arange(0, {block})")
        if over == "n":
            self._load_keys(tail)
        else:
            self._load_queries()
        narrow = f".to({language_type(step.query.dtype)})"
        times_weight = "" if self.of_queries else f" * {scores.of_queries('weight')}"  # or in the end, by rows
        # A key behind the last one has a row of its own where keys are kept, which is not stored.
        left, right = ("q", "k.T") if over == "n" else ("k", "q.T")
        text.add(*scores.lines(left, right, diagonal, tail and over == "n", masked))
        text.add(f"p = tl.exp2({scores.power(scores.of_queries('level'))}){times_weight}")
        text.add(f"dp = tl.dot({'do, v.T' if over == 'n' else 'v, do.T'}{scores.precision})")
        dropped = "p"
        if step.dropout:
            scale = 0.0 if step.dropout >= 1.0 else 1.0 / (1.0 - step.dropout)
            text.add(*scores.kept_lines(), f"factor = tl.where(kept, {scale!r}, 0.0)", "dp = dp * factor")
            dropped = "(p * factor)"
        if "value" in self.names:
            text.add(f"d_value = tl.dot({dropped}{narrow}, do, {held('d_value')}{scores.precision}){HELD}")
        if self.names != ("value",):
            text.add(f"ds = (p * (dp - {scores.of_queries('total')})){narrow}")
        if "key" in self.names:
            text.add(f"d_key = tl.dot(ds, q, {held('d_key')}{scores.precision}){HELD}")
        if "query" in self.names:
            text.add(f"d_query = tl.dot(ds, k, {held('d_query')}{scores.precision}){HELD}")

    def _store(self, own: str) -> None:
        text, scores = self.text, self.scores
        length = scores.queries if own == "m" else scores.keys
        whole = scores.whole_m if own == "m" else scores.whole_n
        rows = "" if whole else f"({own}[:, None] < {text.size(length)})"
        for name in self.names:
            target, column = self.gradient(name), "e" if name == "value" else "d"
            mask = scores.mask(rows, scores.width_mask(column)).replace(", other=0.0", "")
            scale = "" if name == "value" else f" * ({self.step.scale!r})"
            scale = f" * (weight * {self.step.scale!r})[:, None]" if name == "query" else scale
            place = rows_at(text, target, f"grad_{name}", own, column)
            text.add(f"tl.store({place}, ({held(f'd_{name}')}{scale}).to({language_type(target.dtype)}){mask})")


def _origin(names: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    return tuple([("", name, "") for name in names])
