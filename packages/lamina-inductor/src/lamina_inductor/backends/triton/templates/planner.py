"""Which template prints a step, with which block sizes: the planner that the backend gives to ``expand_steps``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import Any

from lamina_fx.symbolic import Expr

from ....ir.kernel import Let, walk
from ....ir.program import Attention, AttentionBackward, Convolution, Gemm, KernelCall, Operand, Program
from ....lower.pointwise import COSTS
from ....tune.candidates import Candidate, GemmCandidate, LibraryCandidate
from ....tune.devices import Gpu, gpu_of
from ....tune.model import rank
from ....tune.problems import AttentionProblem, GemmProblem, Problem
from ....tune.tables import candidates
from ....tune.tuner import Asked, Tuner
from ..index_widths import is_large, needs_64_bits
from ..program import TritonLaunch
from ..tiles import constant
from .attention_backward import attention_backward_launches
from .attention_backward_overlap import can_overlap_backward
from .attention_forward import attention_launches
from .attention_overlap import can_overlap, has_gluon
from .attention_split import with_groups_as_rows
from .attention_text import can_describe_heads
from .convolution import as_plain, convolution_launches, is_convolution
from .convolution_boxes import can_describe_images
from .gemm import can_describe, gemm_launches, is_gemm
from .gemm_turns import can_take_turns
from .prologue import Prologue
from .sort import is_long_sort, sort_launches
from .topk import is_topk, topk_launches

__all__ = ["Choose", "TemplatePlanner", "best_guess"]

Choose = Callable[[Problem, list[Candidate], Callable[[Candidate], Any]], Candidate]
"""(problem, candidates that fit, best guess first; the trial of one) -> the one to use. A tuner measures trials."""

THIN = 128
"""Rows, or columns, of a product whose other operand may be made on the way in: one row of tiles reads it."""

SYMBOLIC = 1024
"""What a symbolic size is taken for when block sizes are chosen, where nothing says what it was at capture."""


def best_guess(problem: Problem, ranked: list[Candidate], show: Any) -> Candidate:
    """What the cost model puts first."""
    return ranked[0]


class TemplatePlanner:
    """Chooses by the cost model, or by ``choose``; ``sm`` and ``multiprocessors`` describe the device.

    ``tf32``: may products of float32 round their operands to 10 bits?
    """

    def __init__(
        self, sm: int = 90, multiprocessors: int | None = None, choose: Choose = best_guess, tf32: bool = False
    ) -> None:
        self.gpu: Gpu = gpu_of(sm, multiprocessors)
        self.choose, self.tf32 = choose, tf32
        self._ranks: dict[Problem, list[Candidate]] = {}

    def prepare(self, program: Program) -> None:
        """Tell a tuner all that it will be asked."""
        if not isinstance(self.choose, Tuner):
            return
        known = [step for step in program.steps if _is_known(step, program)]
        found = [(step, self._problem(step, program)) for step in known]
        self.choose.prepare([self._asked(step, program, *problem) for step, problem in found if problem is not None])

    def launches(self, step: Any, program: Program) -> list[TritonLaunch] | None:
        """The kernels of a step, or None: a library or the reference runs it."""
        if is_topk(step):
            wide = _is_wide(program, step.args[0], *[o for o in step.outs if o is not None])
            return topk_launches(step, self.gpu.multiprocessors, wide)
        if is_long_sort(step):
            return sort_launches(step, _is_wide(program, step.args[0], *[o for o in step.outs if o is not None]))
        found = self._problem(step, program)
        if found is None:
            return None
        asked = self._asked(step, program, *found)
        if not asked[1]:
            return None
        choose = self.choose if _is_known(step, program) or not isinstance(self.choose, Tuner) else best_guess
        return found[1](choose(*asked))

    def _asked(self, step: Any, program: Program, problem: Problem, show: Callable[[Candidate], Any]) -> Asked:
        """The problem, the candidates that fit, and their trials."""

        def trial(candidate: Candidate) -> Any:
            from .trial import trial_of  # it prints programs, which ask planners

            return trial_of(step, program, _Fixed(show(candidate)))

        return problem, self._ranked(problem), trial

    def _ranked(self, problem: Problem) -> list[Candidate]:
        """The candidates that fit, best guess first; a model's layers ask the same."""
        if problem not in self._ranks:
            self._ranks[problem] = rank(problem, candidates(problem), self.gpu)
        return self._ranks[problem]

    def fused(self, step: Gemm, program: Program, prologues: dict[str, Prologue]) -> list[TritonLaunch] | None:
        """With what makes the operands, where one row of tiles, or one column, reads each element."""
        if not is_gemm(step):
            return None
        problem = replace(gemm_problem(step, program), described=False)
        ranked = [c for c in self._ranked(problem) if isinstance(c, GemmCandidate)]
        if not ranked or not _pays(problem, prologues):
            return None
        sources = [b for p in prologues.values() for b in p.call.buffers]
        given = [step.left, step.right, step.out, *_operands_of(program, step.epilogue)]
        calls = [step.epilogue, *[p.call for p in prologues.values()]]
        wide = any(is_large(program.buffers[b], program.narrow) for b in sources)
        wide = wide or _is_wide(program, *given, calls=calls)
        return gemm_launches(step, ranked[0], wide, self.gpu.multiprocessors, prologues)

    def _problem(self, step: Any, program: Program) -> tuple[Problem, Callable[[Candidate], Any]] | None:
        """What a step asks, and how a candidate answers; None: no template."""
        if type(step) is Gemm and is_gemm(step):
            found = [step.left, step.right, step.out, *_operands_of(program, step.epilogue)]
            wide = _is_wide(program, *found, calls=[step.epilogue])
            overlaps = not wide and can_take_turns(step) and has_gluon()
            problem = self._rounded(replace(gemm_problem(step, program), overlaps=overlaps))
            return problem, lambda c: self._gemm(step, c, wide)
        if isinstance(step, (Attention, AttentionBackward)) and is_attention(step):
            wide = _is_wide(program, *step.operands)
            if isinstance(step, Attention):
                rows = with_groups_as_rows(step)
                problem = self._rounded(
                    replace(attention_problem(rows, program), overlaps=not wide and can_overlap(rows) and has_gluon())
                )
                return problem, lambda c: attention_launches(rows, c, wide)
            overlaps = not wide and can_overlap_backward(step) and has_gluon()
            problem = self._rounded(replace(attention_problem(step, program), overlaps=overlaps))
            return problem, lambda c: attention_backward_launches(step, c, wide)
        if isinstance(step, Convolution) and is_convolution(step):
            step = as_plain(step)
            found = [step.input, step.weight, step.out, *_operands_of(program, step.epilogue)]
            found += [] if step.bias is None else [step.bias]
            wide = _is_wide(program, *found, calls=[step.epilogue])
            problem = self._rounded(convolution_problem(step, program, self.tf32))
            return problem, lambda c: convolution_launches(step, c, wide, self.gpu.multiprocessors)
        return None

    def _rounded(self, problem: Problem) -> Any:
        return replace(problem, tf32=self.tf32 and problem.dtype == "float32")

    def _gemm(self, step: Gemm, candidate: Candidate, wide: bool) -> list[TritonLaunch] | None:
        if isinstance(candidate, LibraryCandidate):
            return None
        assert isinstance(candidate, GemmCandidate)
        return gemm_launches(step, candidate, wide, self.gpu.multiprocessors)


def _pays(problem: GemmProblem, prologues: dict[str, Prologue]) -> bool:
    """Are the operands that would be made on the way in read by one row of tiles, and the larger part of what moves?

    Of float32 the library's products are better by more than a kernel in front of them takes.
    """
    thin = {"left": problem.n <= THIN, "right": problem.m <= THIN}
    return problem.dtype != "float32" and all(thin[name] for name in prologues)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The planner of a program with one step, which is printed already."""

    found: list[TritonLaunch] | None

    def prepare(self, program: Program) -> None:
        """Nothing."""

    def launches(self, step: Any, program: Program) -> list[TritonLaunch] | None:
        """What there is."""
        return self.found

    def fused(self, step: Gemm, program: Program, prologues: dict[str, Prologue]) -> list[TritonLaunch] | None:
        """Nothing."""
        return None


def _all_operands(step: Any) -> list[Operand]:
    fields = [getattr(step, f.name) for f in dataclass_fields(step)]
    return [f for f in fields if isinstance(f, Operand)]


def _is_known(step: Any, program: Program) -> bool:
    """Are all sizes numbers, or were when the graph was captured, so that it can be measured?"""
    sizes = [s for o in _all_operands(step) for s in (o.offset, *o.shape, *o.strides) if isinstance(s, Expr)]
    return all(size.free_symbols <= program.hints.keys() for size in sizes)


def _operands_of(program: Program, call: KernelCall | None) -> list[Operand]:
    if call is None:
        return []
    found = [program.buffers[b] for b in call.buffers]
    return [Operand(b.name, b.dtype, 0, b.shape, b.strides) for b in found]


def _is_wide(program: Program, *operands: Operand, calls: Sequence[KernelCall | None] = ()) -> bool:
    """May an index into one of the operands' buffers need more than 31 bits, or one that these calls compute?"""
    if any(is_large(program.buffers[o.buffer], program.narrow) for o in operands):
        return True
    return any(c is not None and needs_64_bits(c.kernel, c.sizes, program.narrow) for c in calls)


# -- problems --------------------------------------------------------------------------------------------


def _number(size: Any, program: Program) -> int:
    known = constant(size)
    if known is not None:
        return known
    hints = program.hints
    return max(1, int(size.evaluate({symbol: hints.get(symbol, SYMBOLIC) for symbol in size.free_symbols})))


def _numel(sizes: tuple[Any, ...], program: Program) -> int:
    count = 1
    for size in sizes:
        count *= _number(size, program)
    return count


def gemm_problem(step: Gemm, program: Program) -> GemmProblem:
    """A product as the tuner sees it."""
    batch = 1
    for size in step.out.shape[:-2]:
        batch *= _number(size, program)
    m, n, k = (
        _number(step.out.shape[-2], program),
        _number(step.out.shape[-1], program),
        _number(step.left.shape[-1], program),
    )
    text, moved, widest, cost = epilogue_of(step.epilogue, step.out, program)
    if step.epilogue is None or not step.scratch:
        moved += step.out.dtype.itemsize
    described = can_describe(step.left) and can_describe(step.right)
    left, right = _lies(step.left, "mk"), _lies(step.right, "kn")
    return GemmProblem(step.left.dtype.name, batch, m, n, k, left, right, described, text, moved, cost, 0, widest)


def _lies(operand: Operand, names: str) -> str:
    """Which dimension's elements lie together."""
    outer, inner = operand.strides[-2:]
    return names[1] if constant(inner) == 1 else names[0] if constant(outer) == 1 else ""


def epilogue_of(call: KernelCall | None, out: Operand, program: Program) -> tuple[str, float, int, int]:
    """(operators, bytes per element, bytes of the widest element, work per element) of an epilogue.

    Vectors (a bias) are not counted: they are read once for a tile.
    """
    if call is None:
        return "", 0.0, 0, 0
    moved, widest, whole = 0.0, 0, _numel(out.shape, program)
    for param, buffer in zip(call.kernel.params, call.buffers, strict=True):
        fills = 2 * _numel(program.buffers[buffer].shape, program) >= whole
        if fills and (buffer != out.buffer or param.role != "in"):
            moved += param.dtype.itemsize
            widest = max(widest, param.dtype.itemsize)
    cost = sum(COSTS.get(s.op, 1) for s in walk(call.kernel.body) if type(s) is Let)
    operators = "+".join(dict.fromkeys(op for _, op, _ in call.kernel.origins))
    return operators, moved, widest, cost


def convolution_problem(step: Convolution, program: Program, tf32: bool = False) -> GemmProblem:
    """A convolution as the tuner sees it: a product for each group."""
    m = _number(step.out.shape[0], program)
    for size in step.out.shape[2:]:
        m *= _number(size, program)
    taps = 1
    for size in step.weight.shape[2:]:
        taps *= _number(size, program)
    n, k = _number(step.weight.shape[0], program) // step.groups, _number(step.weight.shape[1], program) * taps
    text, moved, widest, cost = epilogue_of(step.epilogue, step.out, program)
    if step.epilogue is None or not step.scratch:
        moved += step.out.dtype.itemsize
    described = can_describe_images(step, tf32)
    return GemmProblem(
        step.input.dtype.name, step.groups, m, n, k, "k", "k", described, text, moved, cost, taps, widest
    )  # fmt: skip


WIDEST = 256
"""Longest head of attention that has a template."""


def is_attention(step: Attention | AttentionBackward) -> bool:
    """Is there a template for it?"""
    widths = [constant(o.shape[-1]) for o in (step.query, step.value)]
    sizes = (step.query.shape[-2], step.key.shape[-2], *step.out.shape[:3])
    known = all(w is not None and 0 < w <= WIDEST for w in widths) and all(constant(s) != 0 for s in sizes)
    return known and step.query.dtype.name in ("float16", "bfloat16", "float32")


def _rows_of(step: Attention | AttentionBackward) -> list[Operand]:
    """What may be read through descriptors."""
    return [step.query, step.key, step.value, *([step.grad_out] if isinstance(step, AttentionBackward) else [])]


def attention_problem(step: Attention | AttentionBackward, program: Program) -> AttentionProblem:
    """Attention as the tuner sees it."""
    heads = 1
    for size in step.out.shape[:3]:
        heads *= _number(size, program)
    mask = "" if step.mask is None else step.mask.dtype.name
    return AttentionProblem(
        step.query.dtype.name, heads, _number(step.query.shape[-2], program), _number(step.key.shape[-2], program),
        _number(step.query.shape[-1], program), _number(step.value.shape[-1], program),
        step.causal, mask, bool(step.dropout),
        isinstance(step, AttentionBackward), all(can_describe_heads(o) for o in _rows_of(step)),
    )  # fmt: skip
