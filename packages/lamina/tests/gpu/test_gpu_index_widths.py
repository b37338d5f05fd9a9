"""Programs of symbolic sizes have indices of 32 bits, and another program where a call's sizes need more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stub_device import StubDevice

import lamina
from lamina_inductor.backends.triton import GpuArtifact, TritonBackend, TritonProgram, index_widths

PROGRAMS = {
    "pointwise": lambda x: x * 2 + 1,
    "rows": lambda x: (x.softmax(-1), x.sum(0)),
    "transposed": lambda x: x.t().contiguous() + x.t(),
    "gathered": lambda x: x[lamina.arange(x.shape[0], device=x.device).flip(0)],
    "outer": lambda x: (x[:, :1] * x[:, 0]).sum(),
    "searched": lambda x: lamina.searchsorted(x.abs().cumsum(-1), x),
    "positions": lambda x: lamina.arange(x.shape[0] * 20, device=x.device).sum() + x[0, 0],
}


def same(got: Any, wanted: Any) -> None:
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, wanted)), strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-4, atol=1e-4)


def integers(program: TritonProgram) -> set[str]:
    """Types of the kernels' sizes."""
    return {kind for kernel in program.kernels for _, kind in kernel.parameters if kind in ("i32", "i64")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes_beyond_the_limit_run_a_wider_program(
    device: StubDevice, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(index_widths, "LIMIT", 20_000)
    device.programs.clear()
    function, before = PROGRAMS[name], len(lamina.compiler.records())
    run = lamina.compile(function, dynamic=True)
    for rows, programs in ((9, 1), (11, 1), (1100, 2), (9, 2), (1200, 2), (7, 2)):
        x = lamina.randn(rows, 20)
        same(run(x.cuda()), function(x))
        assert len(device.programs) == programs, rows
    narrow, wide = device.programs
    assert [integers(p) for p in (narrow, wide)] == [{"i32"}, {"i64"}]
    assert narrow.below and not wide.below
    assert len(lamina.compiler.records()) == before + 1


def test_searches_of_known_sizes_have_one_program(device: StubDevice) -> None:
    device.programs.clear()
    sequence, wanted = lamina.arange(9.0), lamina.randn(5) * 9
    found = lamina.compile(lambda s, w: lamina.searchsorted(s, w))(sequence.cuda(), wanted.cuda())
    same(found, lamina.searchsorted(sequence, wanted))
    (program,) = device.programs
    assert not program.below


def test_many_tensors_in_one_launch(device: StubDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_widths, "LIMIT", 1000)
    device.programs.clear()

    def function(*tensors: Any) -> tuple[Any, ...]:
        return tuple([t.mul_(2) for t in tensors])

    run = lamina.compile(function, dynamic=True)
    for sizes, programs in (((4, 5, 6, 7, 8), 1), ((4, 5, 6, 2000, 8), 2), ((9, 5, 4, 7, 8), 2)):
        tensors = [lamina.randn(n) for n in sizes]
        got = run(*[t.cuda() for t in tensors])
        same(got, function(*tensors))
        assert len(device.programs) == programs


def test_graphs_of_either_program(device: StubDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_widths, "LIMIT", 1000)
    run = lamina.compile(lambda x: x.softmax(-1).sum(0), dynamic=True, mode="reduce-overhead")
    for _ in range(4):
        for rows in (9, 70):
            x = lamina.randn(rows, 20)
            same(run(x.cuda()), x.softmax(-1).sum(0))


def test_always_wide(device: StubDevice) -> None:
    device.programs.clear()
    run, x = lamina.compile(lambda x: x * 2, dynamic=True, options={"index_bits": 64}), lamina.randn(5, 3)
    same(run(x.cuda()), x * 2)
    (program,) = device.programs
    assert integers(program) == {"i64"} and not program.below


def test_a_stored_program_says_that_it_is_too_narrow(
    device: StubDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(index_widths, "LIMIT", 1000)
    made: list[GpuArtifact] = []
    compile_ = TritonBackend.compile

    def compile_and_note(self: Any, graph: Any, **given: Any) -> GpuArtifact:
        made.append(compile_(self, graph, **given))
        return made[-1]

    monkeypatch.setattr(TritonBackend, "compile", compile_and_note)
    lamina.compile(lambda x: x * 2, dynamic=True)(lamina.randn(5, 3).cuda())
    made[0].save(tmp_path / "stored")
    stored, large = GpuArtifact.load(tmp_path / "stored"), lamina.randn(700, 3)
    small = lamina.randn(7, 3)
    same(stored(*arguments(made[0], small.cuda())), small * 2)
    with pytest.raises(RuntimeError, match=r"these sizes need indices of 64 bits.*'index_bits': 64"):
        stored(*arguments(made[0], large.cuda()))
    assert [name for name, _ in made[0].time_steps(*arguments(made[0], large.cuda()))] == ["k0_mul"]


def arguments(artifact: GpuArtifact, x: Any) -> tuple[Any, ...]:
    """Inputs of the graph, in order: the tensor, and its sizes where they are inputs."""
    sizes = iter(x.shape)
    return tuple([next(sizes) if label is None else x for label in artifact.description.labels])


def test_sizes_whose_product_passes_64_bits() -> None:
    graph_sizes = lamina.ones(3, 4)
    run = lamina.compile(lambda x, n, m: (x * n * m).sum(), dynamic=True)
    same(run(graph_sizes, 1 << 20, 3), graph_sizes.sum() * (3 << 20))


NUMBERS = {
    "a length": lambda x, n: x[:n] * 2,
    "a value": lambda x, n: x[:3] * n,
    "positions": lambda x, n: lamina.arange(n, n + 6, device=x.device) + x[:6].long(),
    "made": lambda x, n: lamina.full((n % 1000, 3), 1.5, device=x.device).sum(0) + x[:3],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_the_caller_are_taken_for_small(device: StubDevice, name: str) -> None:
    function, x = NUMBERS[name], lamina.randn(12)
    run = lamina.compile(function, dynamic=True)
    run(x.cuda(), 4)
    device.programs.clear()
    for n in (5, 7, -3, 6, 1 << 40, -(1 << 33), 9) if name != "made" else (5, 70, 6):
        same(run(x.cuda(), n), function(x, n))
    wide = [integers(program) == {"i64"} for program in device.programs if integers(program)]
    assert wide.count(False) >= 1 and (name in ("made", "a length") or wide.count(True) == 1)
