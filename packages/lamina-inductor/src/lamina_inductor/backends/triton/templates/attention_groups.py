"""Attention forward for one GPU generation (sm_90) and wide heads: two groups of warps, with ``ROWS`` queries each,
share keys and values that a warp of its own loads by the copy engine.

Written in Gluon, Triton's lower language. A group does what the plain program of ``attention_overlap`` does, and waits
for no other: while it makes probabilities, the products of the other run. Two plain programs, which are all that heads
of 128 elements leave room for, would read keys and values twice.

Source: Shah et al. 2024 (FlashAttention-3), section 3.1.
"""

from __future__ import annotations

from dataclasses import replace

from ....ir.program import Attention
from ....tune.candidates import AttentionCandidate
from ..program import TritonLaunch
from .attention_overlap import ORIGIN, ROWS, OverlapKernel, descriptor_layout
from .attention_text import Scores, lead_lines
from .kernel_text import KernelText
from .warp_groups import function_of, specialise, written

__all__ = ["groups_launch"]

REGISTERS = 240, 24
"""Of a thread in the second group, and in the warp that loads."""

_MEMORY = ("queries", "keys", "values", "begun", "key_ready", "value_ready", "key_empty", "value_empty")


def groups_launch(step: Attention, config: AttentionCandidate) -> TritonLaunch:
    """The launch. Tiles of keys are as long as the queries of both groups."""
    text = KernelText(language="gluon")
    scores = Scores(step, text, ROWS, config.block_n, described=frozenset(("query", "key", "value")))
    for name in ("query", "key", "value"):
        described, tile = scores.description(name)
        text.descriptor(name, described, tile, layout=descriptor_layout(len(tile)))
    for name in ("out", "lse"):
        operand = getattr(step, name)
        if operand is not None:
            text.pointer(name, operand.dtype, operand)
    text.block(BLOCK_M=ROWS, BLOCK_N=config.block_n, WIDTH=scores.width, STAGES=config.stages, WARPS=4)
    kernel = _Groups(scores)
    functions = kernel.functions()
    made, buffers, sizes = text.finish(warps=4, origins=ORIGIN)
    return TritonLaunch(replace(made, source="\n\n".join([made.source, *functions])), buffers, sizes, (kernel.blocks,))


class _Groups(OverlapKernel):
    """The texts of the kernel and of what its warps run. In them ``start`` is the first query of a group, ``both`` that
    of the two."""

    def __init__(self, scores: Scores) -> None:
        super().__init__(scores)
        self.tiles //= 2
        self.blocks = self.heads * self.tiles

    def functions(self) -> list[str]:
        """What the warps run; the kernel's lines are added to the text."""
        text = self.text
        loads, group = written(text, self._loads), written(text, self._group)
        symbols = tuple(text.symbols.values())
        of_group = (*_MEMORY, *[name for name in ("out", "lse") if name in text.pointers], *symbols)
        of_loads = ("query", "key", "value", *_MEMORY, *symbols)
        self._memory()
        specialise(text, [("group", (str(who), *of_group)) for who in (0, 1)], of_loads, REGISTERS)
        return [
            function_of(text, "group", ("who", *of_group), group),
            function_of(text, "loads", of_loads, loads),
        ]

    def _both(self) -> None:
        """Which block of queries the groups share: its head, first query and tiles of keys."""
        block_n = self.scores.block_n
        tiles = (
            "(both + 2 * BLOCK_M + BLOCK_N - 1) // BLOCK_N" if self.step.causal else int(self.scores.keys) // block_n
        )
        together, lines = self._head()
        self.text.add(
            *lines,
            *lead_lines(self.text, self.scores.lead, "head"),
            f"both = ({self.tiles - 1} - place // {together}) * 2 * BLOCK_M",
            f"tiles = {tiles}",
        )

    def _loads(self) -> None:
        self._both()
        self.text.add(
            "gl_mbarrier.expect(begun.index(0), 4 * BLOCK_M * WIDTH)",
            f"gl_load(query, {self._at('query', 'both')}, begun.index(0), queries.index(0))",
            f"gl_load(query, {self._at('query', 'both + BLOCK_M')}, begun.index(0), queries.index(1))",
            "slot = 0",
            "phase = 1",
            "for tile in range(tiles):",
        )
        for name in ("key", "value"):
            self.text.add(
                f"    gl_mbarrier.wait({name}_empty.index(slot), phase)",
                f"    gl_mbarrier.expect({name}_ready.index(slot), 2 * BLOCK_N * WIDTH)",
                f"    gl_load({name}, {self._at(name, '(tiles - 1 - tile) * BLOCK_N')}, {name}_ready.index(slot), "
                f"{name}s.index(slot))",
            )
        self.text.add("    slot += 1", "    if slot == STAGES:", "        slot = 0", "        phase ^= 1")

    def _group(self) -> None:
        text = self.text
        self._layouts()
        self._both()
        scores = self._scores().replace("queries", "queries.index(who)", 1)
        text.add(
            "start = both + who * BLOCK_M",
            "zeros = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, over_keys)",
            "slot = 0",
            "phase = 0",
            "gl_mbarrier.wait(begun.index(0), 0)",
            "gl_mbarrier.wait(key_ready.index(0), 0)",
            f"s = {scores}",
            "s = gl_mma_wait(0, deps=[s])",
            "gl_mbarrier.arrive(key_empty.index(0), count=1)",
            "m = gl.arange(0, BLOCK_M, layout=row)",
            *self._diagonal(),
            *self._first_weights(),
            "for tile in range(1, tiles):",
        )
        text.depth += 1
        text.add(
            "used = slot",
            "turn = phase",
            "slot += 1",
            "if slot == STAGES:",
            "    slot = 0",
            "    phase ^= 1",
            "gl_mbarrier.wait(key_ready.index(slot), phase)",
            f"product = {scores}",
            "gl_mbarrier.wait(value_ready.index(used), turn)",
            f"sum = gl_mma(p, values.index(used){self._flat('value')}, acc, is_async=True)",
            "s = gl_mma_wait(1, deps=[product])",
            "gl_mbarrier.arrive(key_empty.index(slot), count=1)",
            *self._weights(),
            "acc = gl_mma_wait(0, deps=[sum])",
            "gl_mbarrier.arrive(value_empty.index(used), count=1)",
            "acc = acc * gl.expand_dims(gl.convert_layout(shrink, out_row), 1)",
        )
        text.depth -= 1
        text.add(
            "gl_mbarrier.wait(value_ready.index(slot), phase)",
            f"sum = gl_mma(p, values.index(slot){self._flat('value')}, acc, is_async=True)",
            "acc = gl_mma_wait(0, deps=[sum])",
        )
        self._store()

    def _memory(self) -> None:
        """Shared memory, and barriers."""
        shapes = {name: ", ".join(map(str, self.scores.description(name)[1])) for name in ("query", "key", "value")}
        self.text.add(
            f"queries = gl.allocate_shared_memory({self.half}, [2, {shapes['query']}], query.layout)",
            f"keys = gl.allocate_shared_memory({self.half}, [STAGES, {shapes['key']}], key.layout)",
            f"values = gl.allocate_shared_memory({self.half}, [STAGES, {shapes['value']}], value.layout)",
            "begun = gl.allocate_shared_memory(gl.int64, [1, 1], gl_mbarrier.MBarrierLayout())",
            "gl_mbarrier.init(begun.index(0), count=1)",
            *[
                f"{name} = gl.allocate_shared_memory(gl.int64, [STAGES, 1], gl_mbarrier.MBarrierLayout())"
                for name in _MEMORY[4:]
            ],
            "for number in gl.static_range(STAGES):",
            *[f"    gl_mbarrier.init({n}.index(number), count={2 if 'empty' in n else 1})" for n in _MEMORY[4:]],
            "gl_fence()",
        )
