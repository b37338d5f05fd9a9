"""Products for one GPU generation (sm_90) whose tiles two groups of warps make in turn, so that what one does behind
its product overlaps with the products of the other.

Written in Gluon, Triton's lower language. One program for each multiprocessor walks the tiles; a warp of its own loads
operands by the copy engine, ``STAGES`` blocks ahead, from one tile to the next without a pause. A group has four warps
and all of a tile's sums; its results lie in shared memory until the copy engine has stored them. A group begins when
the other one has started its last products: the units are never without, and a barrier of a block, which knows odd from
even rounds only, is not asked two rounds ahead.

Source: the "ping-pong" schedule of CUTLASS 3 (its documentation, "Efficient GEMM in CUDA").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lamina_fx.symbolic import Expr, as_expr

from ....ir.kernel import BindIndex, Load, Loop, Stmt, Store
from ....ir.program import Gemm, KernelCall, Operand
from ....tune.candidates import GemmCandidate
from ..literals import language_type
from ..program import TritonLaunch
from ..tiles import constant
from .attention_overlap import descriptor_layout
from .gemm import can_describe, ceil_div, described_operand, origins_of
from .gemm_result import epilogue_writer, masks_of
from .kernel_text import KernelText
from .tile_writer import TileWriter, statements_of
from .warp_groups import function_of, specialise, written

__all__ = ["can_take_turns", "turns_launch"]

REGISTERS = 232, 24
"""Of a thread in the second group, and in the warp that loads."""

_MEMORY = ("lefts", "rights", "ready", "empty", "order")


def can_take_turns(step: Gemm) -> bool:
    """Is it one product of half types and known strides, whose results and epilogue's matrices are no wider?"""
    known = [step.out.shape[-1], *[n for o in (step.left, step.right, step.out) for n in o.strides[-2:]]]
    if None in map(constant, known) or step.accumulate or any(constant(n) != 1 for n in step.out.shape[:-2]):
        return False
    if step.left.dtype.itemsize != 2 or not (can_describe(step.left) and can_describe(step.right)):
        return False
    return step.epilogue is None or _is_light(step.epilogue)


MANY = 4
"""So many matrices, the product among them, an epilogue moves in halves: otherwise registers do not suffice."""


def _moves(call: KernelCall) -> list[Load | Store]:
    """Loads and stores of matrices."""
    phase, statements = statements_of(call)
    axes = {phase.axis, *[s.axis for s in phase.body if type(s) is Loop]}
    moves = [s for s in statements if isinstance(s, (Load, Store))]
    return [s for s in moves if axes <= as_expr(s.index).free_symbols]


def _matrices(call: KernelCall) -> int:
    return len({(type(s), s.buffer) for s in _moves(call)})


def _is_light(call: KernelCall) -> bool:
    """No checks, no wide matrices, not many of them: registers suffice."""
    types = {p.name: p.dtype for p in call.kernel.params}
    checked = any(type(s) is BindIndex for s in statements_of(call)[1])
    return not checked and _matrices(call) <= MANY and all(types[s.buffer].itemsize <= 2 for s in _moves(call))


def turns_launch(step: Gemm, config: GemmCandidate, multiprocessors: int) -> TritonLaunch:
    """The launch."""
    text = KernelText(language="gluon")
    blocks = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "BLOCK_K": config.block_k, "GROUP": config.group}
    text.block(**blocks, STAGES=config.stages, PROGRAMS=multiprocessors)
    for name, operand, block in (
        ("left", step.left, (config.block_m, config.block_k)),
        ("right", step.right, (config.block_k, config.block_n)),
    ):
        described, tile = described_operand(operand, block)
        text.descriptor(name, described, tile, layout=descriptor_layout(2))
    functions = _Functions(step, config, text)
    kernel, buffers, sizes = text.finish(warps=4, origins=origins_of(step, {}))
    source = "\n\n".join([kernel.source, *functions.texts])
    tiles = constant(ceil_div(step.out.shape[-2], config.block_m) * ceil_div(step.out.shape[-1], config.block_n))
    grid = (multiprocessors if tiles is None else min(max(tiles, 1), multiprocessors),)
    return TritonLaunch(replace(kernel, source=source), buffers, sizes, grid)


class _Functions:
    """The texts of the kernel and of what its warps run; ``texts``: the latter."""

    def __init__(self, step: Gemm, config: GemmCandidate, text: KernelText) -> None:
        self.step, self.config, self.text = step, config, text
        self.m, self.n, self.k = [_known(n) for n in (*step.out.shape[-2:], step.left.shape[-1])]
        self.turned = {name: constant(getattr(step, name).strides[-1]) != 1 for name in ("left", "right")}
        group = self._group()
        loads = self._loads()
        self._memory()
        given = *_MEMORY, *text.symbols.values()
        of_group, of_loads = (*given, "staged", *self._results), ("left", "right", *given)
        groups = [("tiles", (str(who), *given, f"staged{who}", *self._results)) for who in (0, 1)]
        specialise(text, groups, of_loads, REGISTERS)
        self.texts = (
            function_of(text, "tiles", ("who", *of_group), group),
            function_of(text, "loads", of_loads, loads),
        )

    @property
    def _results(self) -> tuple[str, ...]:
        """Parameters of the epilogue, and what is stored."""
        return tuple([name for name in self.text.pointers if name not in ("left", "right")])

    # -- which tile ------------------------------------------------------------------------------------

    def _walk(self, first: str, step: str) -> list[str]:
        """The loop over tiles, in groups of rows; what is inside comes next, one step to the right."""
        tiles_m, tiles_n = ceil_div(self.m, self.config.block_m), ceil_div(self.n, self.config.block_n)
        return [
            f"for tile in range({first}, {self.text.size(tiles_m * tiles_n)}, {step}):",
            f"    first = tile // (GROUP * {tiles_n}) * GROUP",
            f"    height = min({self.text.atom(tiles_m)} - first, GROUP)",
            f"    start_m = (first + tile % (GROUP * {tiles_n}) % height) * BLOCK_M",
            f"    start_n = tile % (GROUP * {tiles_n}) // height * BLOCK_N",
        ]

    def _slot(self, depth: int) -> list[str]:
        """The next place for a block, and how often all were used."""
        return ["    " * depth + line for line in ("slot += 1", "if slot == STAGES:", "    slot = 0", "    phase ^= 1")]

    # -- the parts -------------------------------------------------------------------------------------

    def _loads(self) -> list[str]:
        at = {"left": ("start_m", "base"), "right": ("base", "start_n")}
        places = {name: place[::-1] if self.turned[name] else place for name, place in at.items()}
        loads = [
            f"        gl_load({name}, [{', '.join(place)}], ready.index(slot), {name}s.index(slot))"
            for name, place in places.items()
        ]
        return [
            "slot = 0",
            "phase = 1",
            *self._walk("gl.program_id(0)", "PROGRAMS"),
            f"    for base in range(0, {self.text.size(self.k)}, BLOCK_K):",
            "        gl_mbarrier.wait(empty.index(slot), phase)",
            "        gl_mbarrier.expect(ready.index(slot), 2 * (BLOCK_M + BLOCK_N) * BLOCK_K)",
            *loads,
            *self._slot(2),
        ]

    def _group(self) -> list[str]:
        """What a group of warps does."""
        steps, both = (self.text.atom(n * ceil_div(self.k, self.config.block_k)) for n in (1, 2))
        a, b = (f"{name}s.index(slot){'.permute((1, 0))' if self.turned[name] else ''}" for name in ("left", "right"))
        behind = written(self.text, self._behind)
        return [
            "sums: gl.constexpr = gl.NVMMADistributedLayout("
            "version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 16])",
            f"count = who * {steps}",
            "turn = 1 - who",
            *self._walk("gl.program_id(0) + who * PROGRAMS", "2 * PROGRAMS"),
            "    slot = count % STAGES",
            "    phase = count // STAGES & 1",
            f"    count += {both}",
            "    used = (slot + STAGES - 1) % STAGES",  # not the slot itself: triton would not see that it changes
            "    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, sums)",
            "    gl_mbarrier.wait(order.index(who), turn)",
            "    turn ^= 1",
            f"    for step in range({steps}):",
            "        gl_mbarrier.wait(ready.index(slot), phase)",
            f"        product = gl_mma({a}, {b}, acc, is_async=True)",
            "        acc = gl_mma_wait(1, deps=[product])",
            "        gl_mbarrier.arrive(empty.index(used), count=1, pred=step > 0)",
            "        used = slot",
            *self._slot(2),
            "    gl_mbarrier.arrive(order.index(1 - who), count=1)",
            "    acc = gl_mma_wait(0, deps=[acc])",
            "    gl_mbarrier.arrive(empty.index(used), count=1)",
            *["    " + line for line in behind],
            "gl_tma.store_wait(0)",
        ]

    def _behind(self) -> None:
        """What follows on the tile, or on each half of its columns."""
        self.slices = 2 if self.step.epilogue is not None and _matrices(self.step.epilogue) >= MANY else 1
        columns, part = "BLOCK_N", "sums"
        if self.slices > 1:
            columns, part = f"BLOCK_N // {self.slices}", "part"
            self.text.add(
                f"acc_0, acc_1 = tl.split(tl.permute(tl.reshape(acc, [BLOCK_M, 2, {columns}]), [0, 2, 1]))",
                "part: gl.constexpr = acc_0.type.layout",
            )
        masks = masks_of(self.step, self.config)
        results = _Results(self.text, self.slices)
        for number in range(self.slices):
            at = f"start_n + {number} * ({columns})" if number else "start_n"
            self.text.add(
                *([f"acc = acc_{number}"] if self.slices > 1 else []),
                f"m = start_m + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, {part}))",
                f"n = {at} + gl.arange(0, {columns}, layout=gl.SliceLayout(0, {part}))",
                *([f"inside_m = m[:, None] < {self.text.size(self.m)}"] if "x" in masks else []),
                *([f"inside_n = n[None, :] < {self.n}"] if "r" in masks else []),
            )
            results.at = at
            self._slice(results, masks, columns)

    def _slice(self, results: _Results, masks: dict[str, str], columns: str) -> None:
        step = self.step
        if step.epilogue is None or not step.scratch:
            results.store("out", step.out, "acc")
        if step.epilogue is not None:
            writer, statements = epilogue_writer(self.text, step, masks, _Staging)
            writer.results, writer.sizes, writer.columns = results, (self.m, self.n), columns
            writer.write_all(statements)

    def _memory(self) -> None:
        """Shared memory, and barriers."""
        half = language_type(self.step.left.dtype).replace("tl.", "gl.")
        columns = f"BLOCK_N // {self.slices}" if self.slices > 1 else "BLOCK_N"
        tiles = {name: ", ".join(map(str, self.text.pointers[name][1].block)) for name in ("left", "right")}
        self.text.add(
            f"lefts = gl.allocate_shared_memory({half}, [STAGES, {tiles['left']}], left.layout)",
            f"rights = gl.allocate_shared_memory({half}, [STAGES, {tiles['right']}], right.layout)",
            f"staging: gl.constexpr = gl.{descriptor_layout(2)}",
            *[
                f"staged{group} = gl.allocate_shared_memory({half}, [{self.slices}, BLOCK_M, {columns}], staging)"
                for group in (0, 1)
            ],
            "ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], gl_mbarrier.MBarrierLayout())",
            "empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], gl_mbarrier.MBarrierLayout())",
            "order = gl.allocate_shared_memory(gl.int64, [2, 1], gl_mbarrier.MBarrierLayout())",
            "for number in gl.static_range(2):",
            "    gl_mbarrier.init(order.index(number), count=1)",
            "for number in gl.static_range(STAGES):",
            "    gl_mbarrier.init(ready.index(number), count=1)",
            "    gl_mbarrier.init(empty.index(number), count=1)",
            "gl_fence()",
        )


# -- results ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Results:
    """Stores of results by the copy engine, through the group's shared memory. slices: places in it; number: the one
    whose turn it is; at: the first column."""

    text: KernelText
    slices: int
    number: int = 0
    at: str = ""

    def store(self, name: str, target: Operand, value: str) -> None:
        """Lines that store a tile."""
        matrix = replace(target, shape=target.shape[-2:], strides=target.strides[-2:])
        block = self.text.blocks["BLOCK_M"], self.text.blocks["BLOCK_N"] // self.slices
        self.text.descriptor(name, matrix, block, layout=descriptor_layout(2))
        self.text.add(
            f"gl_tma.store_wait({self.slices - 1})",
            f"staged.index({self.number}).store({value}.to({language_type(target.dtype)}))",
            "gl_fence()",
            f"gl_store({name}, [start_m, {self.at}], staged.index({self.number}))",
        )
        self.number = (self.number + 1) % self.slices


class _Staging(TileWriter):
    """Stores whole matrices, rows of elements that lie together, by the copy engine."""

    results: _Results
    sizes: tuple[Any, Any]

    def statement(self, stmt: Stmt) -> None:
        """A statement; stores of whole tiles by descriptors."""
        target = self._target(stmt) if type(stmt) is Store else None
        if target is None:
            super().statement(stmt)
            return
        assert type(stmt) is Store
        self.text.add(*self.lines)
        self.lines.clear()
        self.results.store(f"{stmt.buffer}_tile", target, str(stmt.value))

    def _target(self, stmt: Store) -> Operand | None:
        """Where the tile goes, if a descriptor can say it."""
        dtype = self.declared[stmt.buffer]
        whole = type(stmt.value) is str and self.shapes.get(stmt.value) == frozenset("xr")
        if not whole or stmt.mask is not None or stmt.mode != "set" or dtype.itemsize != 2 or dtype.kind != "float":
            return None
        row, column = self.phase.axis, next(s.axis for s in self.phase.body if type(s) is Loop)
        index = as_expr(stmt.index)
        start, down = (constant(index.substitute({row: value, column: 0})) for value in (0, 1))
        if start is None or down is None or not _equal(index, start + (down - start) * row + column):
            return None
        step = down - start
        if start * 2 % 16 or step * 2 % 16 or step <= 0:
            return None
        pairs = zip(self.call.kernel.params, self.call.buffers, strict=True)
        buffer = next(buffer for param, buffer in pairs if param.name == stmt.buffer)
        return Operand(buffer, dtype, start, self.sizes, (step, 1))


def _known(size: Any) -> Any:
    """The size, as a number where it is one."""
    known = constant(size)
    return size if known is None else known


def _equal(left: Expr, right: Any) -> bool:
    return constant(left - right) == 0
