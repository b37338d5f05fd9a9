from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import lamina
from lamina.backends import BackendError, check_device, list_backends
from lamina_dynamo import CaptureWarning
from lamina_fx import parse


def test_names() -> None:
    assert {"cpp", "reference", "triton"} <= set(list_backends())


def test_unknown_options_are_named_when_compile_is_called() -> None:
    with pytest.raises(ValueError, match="'cpp' has no option 'foo'; it takes: none"):
        lamina.compile(lambda x: x, backend="cpp", options={"foo": 1})
    with pytest.raises(
        ValueError, match="neither 'cpp' nor 'triton' has an option 'foo'; 'triton' takes: allow_tf32, c"
    ):
        lamina.compile(lambda x: x, options={"foo": 1})


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("max_autotune", "yes", "max_autotune must be True or False, got 'yes'"),
        ("cuda_graphs", 1, "cuda_graphs must be True, False or None, got 1"),
        ("allow_tf32", None, "allow_tf32 must be True or False, got None"),
        ("deterministic", lamina.ones(1).bool(), "deterministic must be True or False, got tensor"),
    ],
)
def test_values_of_options_are_checked_when_compile_is_called(option: str, value: Any, words: str) -> None:
    with pytest.raises(TypeError, match=f"the option {words}"):
        lamina.compile(lambda x: x, options={option: value})


def test_the_stub_provider_runs_eager_code_only() -> None:
    program = (
        "import warnings, lamina\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    y = lamina.compile(lambda x: x + 1)(lamina.ones(2, device='cuda'))\n"
        "assert y.is_cuda and y.tolist() == [2, 2]\n"
        "print(*[w.message for w in seen])\n"
        "try: lamina.compile(lambda x: x + 1, backend='triton')\n"
        "except lamina.backends.BackendError as error: print(error)\n"
    )
    settings = os.environ | {"LAMINA_CUDA_PROVIDER": "stub", "LAMINA_LIBCUDA": "/nowhere/libcuda.so.1"}
    settings.pop("LAMINA_STRICT", None)
    done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True)
    said = "the CUDA provider 'stub' (LAMINA_CUDA_PROVIDER=stub) runs eager code only: compiled CUDA code needs a GPU"
    warned, refused = done.stdout.strip().splitlines()
    assert said in warned and refused.startswith(said)


def test_a_backend_that_names_no_values_takes_any() -> None:
    class Named(Failing):
        options = frozenset(("level",))

    lamina.compile(lambda x: x, backend=Named(), options={"level": "high"})


class Failing:
    """A backend of another package whose ``compile`` fails."""

    name = "failing"
    keep: frozenset[str] = frozenset()

    def compile(self, graph: Any, *, name: str, options: dict[str, Any]) -> Any:
        raise KeyError("no such table")


def test_a_failing_backend_is_named() -> None:
    compiled = lamina.compile(lambda x: x * 2, backend=Failing())
    told = lamina.compiler.summary().graphs
    with pytest.warns(CaptureWarning, match=r"the backend 'failing' \(.*Failing\) failed: KeyError: 'no such table'"):
        assert compiled(lamina.ones(2)).tolist() == [2.0, 2.0]
    assert lamina.compiler.summary().graphs == told


class NoKeep:
    name = "nokeep"

    def compile(self, graph: Any, *, name: str, options: dict[str, Any]) -> Any:
        return None


def _entry_point(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("mine", value, "lamina.backends")
    monkeypatch.setattr("lamina.backends._offered", lambda: {"mine": point})


def test_objects_that_are_no_backends_are_refused_with_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match=r"the backend 'nokeep' has no attribute 'keep', the set of ids"):
        lamina.compile(lambda x: x, backend=NoKeep())
    with pytest.raises(TypeError, match=r"has no method compile\(graph, \*, name, options\)"):
        lamina.compile(lambda x: x, backend=object())
    _entry_point(monkeypatch, f"{__name__}:NoKeep")
    with pytest.raises(TypeError, match=r"the backend 'mine' \(entry point '.*:NoKeep'\) has no attribute 'keep'"):
        lamina.compile(lambda x: x, backend="mine")


@pytest.mark.parametrize(
    ("value", "text"),
    [("no_such_module:Thing", "ModuleNotFoundError"), (f"{__name__}:missing", "AttributeError")],
)
def test_broken_entry_points_are_named(value: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _entry_point(monkeypatch, value)
    with pytest.raises(BackendError, match=rf"the backend 'mine' \(entry point '{value}'\) cannot be loaded: {text}"):
        lamina.compile(lambda x: x, backend="mine")


def test_a_graph_of_cpu_tensors_for_triton_is_sent_to_cpp() -> None:
    graph = parse("graph { %x: float32[2] = placeholder  %neg: float32[2] = neg(%x)  return (%neg,) }")
    with pytest.raises(BackendError, match="these tensors are on the CPU: use backend='cpp'"):
        check_device(NamedTriton(), graph)
    check_device(NamedTriton(), parse("graph { return () }"))


class NamedTriton(Failing):
    name = "triton"


WITHOUT_GPU = """
import warnings
import lamina
import pytest

warnings.simplefilter("error")
with pytest.raises(RuntimeError, match="the device 'cuda' cannot be used"):
    lamina.compile(lambda x: (x * 2).to("cuda").sum())(lamina.ones(3))
with pytest.raises(RuntimeError, match="backend='triton' needs a GPU: for CPU tensors use backend='cpp'"):
    lamina.compile(lambda x: x * 2, backend="triton")
"""


def test_without_a_gpu_one_message_says_what_is_missing(tmp_path: Path) -> None:
    """In a process of its own, which finds no driver: once one is open, it stays so."""
    nowhere = {"LAMINA_LIBCUDA": str(tmp_path / "libcuda.so.1")}
    environment = {k: v for k, v in os.environ.items() if k != "LAMINA_CUDA_PROVIDER"} | nowhere
    done = subprocess.run([sys.executable, "-c", WITHOUT_GPU], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_stage_and_pass_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_DUMP", str(tmp_path))

    def small(x: Any) -> Any:
        return (x * 1.0 + x * 1.0).sum()

    lamina.compile(small, backend="reference")(lamina.ones(3))
    (folder,) = tmp_path.iterdir()
    names = sorted(p.name for p in folder.iterdir())
    assert names[:2] == ["01-captured.txt", "02-joint.txt"]
    assert names[2].startswith("03-prims-")
    assert "mul" in (folder / "01-captured.txt").read_text()
    (passes,) = [p for p in folder.iterdir() if p.is_dir()]
    assert any(p.name.endswith("-after.txt") for p in passes.iterdir())
