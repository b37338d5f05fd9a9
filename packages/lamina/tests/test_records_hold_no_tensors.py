"""Records outlive what was compiled, and keep nothing of it alive but text."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lamina
from lamina_fx import TensorSpec
from lamina_tensor import Tensor


@pytest.fixture(autouse=True)
def _fresh() -> None:
    lamina.compiler.reset()


def table() -> np.ndarray[Any, Any]:
    return np.arange(5000.0, dtype=np.float32)


def looked_up(values: Any) -> Any:
    def fn(x: Any) -> Any:
        return x * lamina.tensor(values) + lamina.tensor([2.0, 3.0])[1]

    return lamina.compile(fn, fullgraph=True)


@pytest.mark.parametrize("backend", ["cpp", "reference"])
def test_a_program_goes_with_its_function(backend: str) -> None:
    def compiled() -> tuple[Any, Any]:
        run = lamina.compile(lambda x: x.sin() * lamina.tensor([2.0, 3.0])[0], backend=backend)
        run(lamina.ones(3))
        (artifact,) = lamina.compiler.records()[-1].artifacts.values()
        assert (artifact(lamina.ones(3))[0] - 2 * lamina.ones(3).sin()).abs().max() < 1e-6
        return run, weakref.ref(getattr(artifact, "function", artifact))

    run, program = compiled()
    gc.collect()
    assert program() is not None
    del run
    gc.collect()
    assert program() is None
    (record,) = lamina.compiler.records()
    (gone,) = record.artifacts.values()
    assert len(gone.kernels) == len(record.kernels) == (backend == "cpp")
    assert backend != "cpp" or "sin" in gone.source
    with pytest.raises(RuntimeError, match="went with the function that it was compiled for; compile it again"):
        gone(lamina.ones(3))
    assert "sin" in str(record) and "sin" in record.summary()


def test_a_kept_artifact_keeps_its_program_and_what_is_left_is_saved_and_measured(tmp_path: Path) -> None:
    run = lamina.compile(lambda x: x * 2 + 1)
    run(lamina.ones(3))
    (artifact,) = lamina.compiler.records()[-1].artifacts.values()
    del run
    gc.collect()
    assert artifact(lamina.ones(3))[0].tolist() == [3, 3, 3]
    program = weakref.ref(artifact.function)
    del artifact
    assert program() is None
    lamina.compiler.write_report(tmp_path / "report.html", measure=True)
    assert "a call, least of the rounds" in (tmp_path / "report.html").read_text()
    (artifact,) = lamina.compiler.records()[-1].artifacts.values()
    artifact.save(tmp_path / "saved")
    assert type(artifact).load(tmp_path / "saved")(lamina.ones(3))[0].tolist() == [3, 3, 3]


def test_constants_are_specs_and_small_ones_arrays(tmp_path: Path) -> None:
    run = looked_up(table().tolist())
    x = lamina.ones(5000)
    assert run(x).tolist() == (table() + 3).tolist()
    (record,) = lamina.compiler.records()
    found = [v for graph in record.stages.values() for v in graph.attributes.values()]
    assert not any(isinstance(v, Tensor) for v in found)
    assert {v.shape for v in found if isinstance(v, TensorSpec)} == {(5000,)}
    assert {v.shape for v in found if isinstance(v, np.ndarray)} <= {(2,), (1,), ()}
    assert "float32[5000]" in str(record)
    lamina.compiler.write_report(tmp_path / "report.html", measure=True)


def test_backward_halves_go_too() -> None:
    run = lamina.compile(lambda x: (x.sin() * x).sum())
    x = lamina.ones(3, requires_grad=True)
    run(x).backward()
    artifacts = lamina.compiler.records()[-1].artifacts
    programs = [weakref.ref(a.function) for a in artifacts.values()]
    assert len(programs) == 2
    del run, artifacts
    x.grad = None
    gc.collect()
    assert [p() for p in programs] == [None, None]
