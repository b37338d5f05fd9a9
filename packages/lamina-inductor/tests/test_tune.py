from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triton_templates import floats, kept_graph

from lamina_inductor.backends.triton import CompiledKernel, TritonBackend, TritonKernel, TritonProgram
from lamina_inductor.backends.triton.gpu_plan import make_plan
from lamina_inductor.backends.triton.program import ExternStep
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.backends.triton.templates.trial import repeated
from lamina_inductor.cache.store import ArtifactStore
from lamina_inductor.tune.candidates import AttentionCandidate, GemmCandidate, LibraryCandidate, label
from lamina_inductor.tune.devices import GPUS, gpu_of
from lamina_inductor.tune.model import estimate, fits, rank, resources
from lamina_inductor.tune.problems import AttentionProblem, GemmProblem
from lamina_inductor.tune.progress import progress_line
from lamina_inductor.tune.records import Records
from lamina_inductor.tune.tables import candidates
from lamina_inductor.tune.tuner import Tuner
from lamina_prims import ops

SQUARE = GemmProblem("bfloat16", 1, 4096, 4096, 4096, "k", "n", True)
THIN = GemmProblem("bfloat16", 1, 16, 256, 65536, "k", "n", True)
SINGLE = GemmProblem("float32", 1, 1024, 1024, 1024, "k", "n")
ATTENTION = AttentionProblem("bfloat16", 128, 2048, 2048, 64, 64, True)
PROBLEMS = (SQUARE, THIN, SINGLE, ATTENTION, replace(ATTENTION, backward=True, width=256, value_width=256))


class Clock:
    """Seconds that pass only in measurements."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Measured:
    """Times by label; others take a second. ``math.inf``: fails."""

    def __init__(self, clock: Clock, seconds: dict[str, float], cost: float = 1.0) -> None:
        self.clock, self.seconds, self.cost = clock, seconds, cost
        self.calls: list[str] = []
        self.prepared: list[list[str]] = []
        self.at_once = 12

    def prepare(self, trials: Any) -> None:
        self.prepared.append(list(trials))

    def __call__(self, trial: str) -> float:
        self.clock.now += self.cost
        self.calls.append(trial)
        found = self.seconds.get(trial, 1.0)
        if math.isinf(found):
            raise RuntimeError("out of shared memory")
        return found


def tuned(tmp_path: Path, seconds: dict[str, float], budget: float = 100.0, cost: float = 1.0) -> tuple[Tuner, Any]:
    clock = Clock()
    measure = Measured(clock, seconds, cost)
    return Tuner(measure, Records("a gpu", ArtifactStore(tmp_path)), budget, clock=clock), measure


def ranked(problem: Any) -> list[Any]:
    return rank(problem, candidates(problem), gpu_of(90))


@pytest.mark.parametrize("sm", GPUS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.key)
def test_what_cannot_run_is_ruled_out(problem: Any, sm: int) -> None:
    gpu = gpu_of(sm)
    found = rank(problem, candidates(problem), gpu)
    assert found
    for candidate in found:
        if not isinstance(candidate, LibraryCandidate):
            need = resources(problem, candidate, gpu)
            assert need.shared <= gpu.shared and need.registers <= 255
            assert sm >= 90 or not getattr(candidate, "descriptors", False)


def test_large_tiles_need_much() -> None:
    candidate = GemmCandidate(256, 256, 64, 8, 4)
    assert not fits(SQUARE, candidate, gpu_of(90))
    assert resources(SQUARE, GemmCandidate(128, 256, 64, 8, 4), gpu_of(90)).shared == 196608


def test_wide_epilogues_need_memory_and_registers_of_their_own() -> None:
    """An optimizer's step behind a persistent 128 x 256 product takes 278584 bytes of shared memory as a whole, 180280
    in four slices, for which the assembler takes 12 s: it follows the product. Convolutions are not cut."""
    update = replace(SQUARE, epilogue="sqrt+div", epilogue_bytes=26.0, epilogue_cost=40, epilogue_widest=4)
    large = GemmCandidate(128, 256, 64, 8, 3, persistent=True)
    assert resources(update, large, gpu_of(90)).shared == 180224 and not fits(update, large, gpu_of(90))
    assert fits(replace(update, epilogue_widest=2), large, gpu_of(90))
    assert resources(replace(update, taps=9), large, gpu_of(90)).shared == 278528
    assert not fits(replace(update, taps=9), large, gpu_of(90))
    assert fits(replace(update, taps=9, epilogue_widest=2), large, gpu_of(90))


def test_attentions_gradients_are_read_by_descriptors_where_these_can_be() -> None:
    problem = AttentionProblem("bfloat16", 192, 1024, 1024, 64, 64, True, backward=True, described=True)
    best = rank(problem, candidates(problem), gpu_of(90))[0]
    assert best == AttentionCandidate(64, 64, 4, 3, descriptors=True, registers=168)
    for other in (rank(problem, candidates(problem), gpu_of(80)), ranked(replace(problem, described=False))):
        assert not any(c.descriptors for c in other)


def test_thin_products_are_split() -> None:
    best = next(c for c in ranked(THIN) if isinstance(c, GemmCandidate))
    one = replace(best, split=1)
    assert best.split > 1 and estimate(THIN, best, gpu_of(90)) < estimate(THIN, one, gpu_of(90))


def test_an_epilogue_speaks_for_a_template() -> None:
    fused = replace(SQUARE, epilogue="add+erf", epilogue_bytes=2.0, epilogue_cost=20)
    assert isinstance(ranked(SQUARE)[0], LibraryCandidate)
    assert isinstance(ranked(fused)[0], GemmCandidate)


def test_single_precision_by_ieee_goes_to_the_library() -> None:
    assert isinstance(ranked(SINGLE)[0], LibraryCandidate)


def test_rounded_operands_are_tried_where_they_are_allowed() -> None:
    rounded = replace(SINGLE, tf32=True)
    assert rounded.key != SINGLE.key
    assert not any(c.tf32 for c in candidates(SINGLE) if isinstance(c, GemmCandidate))
    found = [c for c in candidates(rounded) if isinstance(c, GemmCandidate)]
    assert found and all(c.tf32 and c.block_k in (32, 64) for c in found)
    assert estimate(rounded, ranked(rounded)[0], gpu_of(90)) < 0.2 * estimate(SINGLE, ranked(SINGLE)[0], gpu_of(90))


def test_labels_are_distinct() -> None:
    for problem in PROBLEMS:
        found = [label(c) for c in candidates(problem)]
        assert len(found) == len(set(found))


def test_the_fastest_is_chosen_and_remembered(tmp_path: Path) -> None:
    choices = ranked(SQUARE)
    want = label(choices[3])
    tuner, measure = tuned(tmp_path, {want: 0.5})
    assert label(tuner(SQUARE, choices, label)) == want
    count = len(measure.calls)
    assert label(tuner(SQUARE, choices, label)) == want and len(measure.calls) == count
    again, fresh = tuned(tmp_path, {})
    assert label(again(SQUARE, choices, label)) == want and not fresh.calls


def test_records_of_other_devices_do_not_count(tmp_path: Path) -> None:
    tuner, _ = tuned(tmp_path, {label(ranked(SQUARE)[3]): 0.5})
    tuner(SQUARE, ranked(SQUARE), label)
    assert Records("another gpu", ArtifactStore(tmp_path)).find(SQUARE.key) == {}
    assert len(Records("a gpu", ArtifactStore(tmp_path)).find(SQUARE.key)) == len(tuner.measure.calls)


def test_damaged_records_count_as_none(tmp_path: Path) -> None:
    tuner, _ = tuned(tmp_path, {})
    tuner(SQUARE, ranked(SQUARE), label)
    (path,) = tmp_path.glob("??/*.so")
    path.write_bytes(path.read_bytes()[:-9] + b"?" * 9)
    assert Records("a gpu", ArtifactStore(tmp_path)).find(SQUARE.key) == {}


def test_the_library_competes_wherever_the_model_puts_it(tmp_path: Path) -> None:
    fused = replace(SQUARE, epilogue="add+erf", epilogue_bytes=2.0, epilogue_cost=20)
    choices = [c for c in ranked(fused) if not isinstance(c, LibraryCandidate)] + [LibraryCandidate()]
    tuner, _ = tuned(tmp_path, {"library": 0.25})
    assert isinstance(tuner(fused, choices, label), LibraryCandidate)


def test_what_fails_is_passed_over(tmp_path: Path) -> None:
    choices = ranked(ATTENTION)
    failing = {label(c): math.inf for c in choices[:-1]}
    tuner, _ = tuned(tmp_path, failing)
    assert tuner(ATTENTION, choices, label) == choices[min(len(choices), 10) - 1] or len(choices) > 10
    tuner, _ = tuned(tmp_path / "other", {label(c): math.inf for c in choices})
    assert tuner(ATTENTION, choices, label) == choices[0]


def test_the_budget_is_shared(tmp_path: Path) -> None:
    tuner, measure = tuned(tmp_path, {}, budget=8.0)
    tuner(SQUARE, ranked(SQUARE), label)
    assert 4 <= len(measure.calls) <= 6
    for k in range(6):
        tuner(replace(SQUARE, m=4096 + k), ranked(SQUARE), label)
    assert measure.clock.now <= 8.0 + 2.0


def test_all_problems_are_compiled_at_once(tmp_path: Path) -> None:
    problems = [replace(SQUARE, m=4096 + k) for k in range(16)]
    tuner, measure = tuned(tmp_path, {label(ranked(SQUARE)[1]): 0.5})
    tuner.prepare([(p, ranked(p), label) for p in (*problems, problems[0])])
    chosen = [tuner(p, ranked(p), label) for p in problems]
    assert len(measure.prepared) == 1 and len(measure.prepared[0]) == len(measure.calls) == tuner.tried
    assert 6 * 16 <= tuner.tried <= 7 * 16  # the library may be one more
    assert {label(c) for c in chosen} == {label(ranked(SQUARE)[1])}
    again, fresh = tuned(tmp_path, {})
    again.prepare([(p, ranked(p), label) for p in problems])
    assert not fresh.prepared and not again.tried
    assert [again(p, ranked(p), label) for p in problems] == chosen


def test_a_planner_makes_a_programs_problems_known(tmp_path: Path) -> None:
    shown: list[TritonProgram] = []
    timed: list[TritonProgram] = []

    class Even:
        at_once = 12
        prepare = staticmethod(shown.extend)

        def __call__(self, trial: TritonProgram) -> float:
            timed.append(trial)
            return 1.0

    tuner = Tuner(Even(), Records("a gpu", ArtifactStore(tmp_path)))
    fn = lambda x, w, v: ops.matmul(ops.relu(ops.matmul(x, w)), v)  # noqa: E731
    graph = kept_graph(fn, (floats(64, 64), floats(64, 96), floats(96, 32)))
    TritonBackend(TemplatePlanner(choose=tuner)).emit(graph)
    assert shown == timed and len(shown) == tuner.tried and len(tuner.known) == 2


def test_without_a_device_the_model_decides(tmp_path: Path) -> None:
    tuner = Tuner(None, Records("no gpu", ArtifactStore(tmp_path)))
    for problem in PROBLEMS:
        assert tuner(problem, ranked(problem), label) == ranked(problem)[0]


# -- trials ----------------------------------------------------------------------------------------------


def trials(fn: Any, inputs: tuple[Any, ...], symbolic: tuple[int, ...] = ()) -> list[tuple[str, TritonProgram]]:
    """(candidate, trial) for all that fit."""
    found: list[tuple[str, TritonProgram]] = []

    def choose(problem: Any, choices: list[Any], show: Any) -> Any:
        found.extend((label(c), show(c)) for c in choices)
        return choices[0]

    TritonBackend(TemplatePlanner(choose=choose)).emit(kept_graph(fn, inputs, symbolic))
    return found


def test_a_trial_is_the_step_alone_in_memory_of_its_own() -> None:
    fn = lambda x, w, b: ops.relu(ops.add(ops.matmul(ops.exp(x), w), b))  # noqa: E731
    found = dict(trials(fn, (floats(64, 64), floats(64, 64), floats(64))))
    for name, trial in found.items():
        program = repeated(trial, 3).program
        assert not program.inputs and [b.storage for n, b in program.buffers.items() if n != "done"] == (
            ["workspace"] * (len(program.buffers) - 1)
        )
        spans = sorted((b.offset, b.offset + int(np.prod(b.shape)) * 4) for b in program.buffers.values())
        assert all(a[1] <= b[0] for a, b in pairwise(spans[1:]))
        steps = repeated(trial, 3).steps
        own = [s for s in steps if type(s) is ExternStep or not s.kernel.name.startswith("noise")]
        assert len(own) == (6 if name == "library" or "split" in name else 3)
    assert "library" in found


@pytest.mark.parametrize("fn", [lambda q, k, v: ops.attention_with_lse(q, k, v, None, True, 0.5)[0],
                                lambda q, k, v: ops.relu(ops.matmul(q, ops.permute(k, (0, 2, 1))))])  # fmt: skip
def test_symbolic_sizes_are_tried_as_they_were_when_the_graph_was_captured(fn: Any) -> None:
    inputs = tuple(floats(2, 60, 32) for _ in range(3))
    known, symbolic = dict(trials(fn, inputs)), dict(trials(fn, inputs, (2, 60)))
    assert known.keys() == symbolic.keys()
    for name, trial in symbolic.items():
        assert {n: b.shape for n, b in trial.program.buffers.items()} == {
            n: b.shape for n, b in known[name].program.buffers.items()
        }
        assert any(launch.sizes for launch in trial.launches) or name == "library"  # the kernels are given them
        make_plan(repeated(trial, 2), [compiled(k) for k in repeated(trial, 2).kernels])


def compiled(kernel: TritonKernel) -> CompiledKernel:
    descriptors = tuple([(0, 0, 4, (1,)) for _, kind in kernel.parameters if kind.startswith("tensordesc")])
    return CompiledKernel(kernel.name, 90, "", b"", 0, 4, descriptors=descriptors)


def test_a_tuner_is_asked_about_symbolic_sizes(tmp_path: Path) -> None:
    tuner = Tuner(None, Records("no gpu", ArtifactStore(tmp_path)))
    asked: list[Any] = []
    tuner.prepare = asked.extend  # type: ignore[method-assign]
    graph = kept_graph(ops.matmul, (floats(60, 64), floats(64, 96)), (60,))
    TritonBackend(TemplatePlanner(choose=tuner)).emit(graph)
    assert [(problem.m, problem.n) for problem, *_ in asked] == [(60, 96)]


def test_trials_fill_masks_and_indices() -> None:
    """A mask is true, so that nothing is skipped, and an index is 0, so that none is out of range."""
    fn = lambda q, k, v, m: ops.attention_with_lse(q, k, v, m, False, 0.5)[0]  # noqa: E731
    inputs = (*(floats(2, 64, 16) for _ in range(3)), np.ones((64, 64), bool))
    kernels = {k.name: k.source for k in repeated(trials(fn, inputs)[0][1], 1).kernels}
    assert "bits >= 0" in kernels["noise_bool"] and "* 1.9073486328125e-06 - 1.0" in kernels["noise_float32"]
    fn = lambda x, w, t, i: ops.add(ops.matmul(x, w), ops.embedding(i, t))  # noqa: E731
    inputs = (floats(64, 64), floats(64, 64), floats(9, 64), np.zeros(64, np.int64))
    found = {k.name: k.source for _, t in trials(fn, inputs) for k in repeated(t, 1).kernels}
    assert "(bits * 0).to(tl.int64)" in found["noise_int64"]


def test_the_progress_line_is_for_terminals(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with progress_line("a product", 2) as done:
        done("first 3 us")
    assert capfd.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_line("a product", 2) as done:
        done("first 3 us")
        done("second 4 us")


def test_attention_has_trials() -> None:
    fn = lambda q, k, v: ops.attention_with_lse(q, k, v, None, True, 0.5)[0]  # noqa: E731
    found = trials(fn, tuple(floats(2, 64, 16) for _ in range(3)))
    assert found and all(len(t.launches) == 1 for _, t in found)
    assert {AttentionCandidate(64, 64, 4, 3), AttentionCandidate(32, 32, 4, 2)} <= set(candidates(ATTENTION))
