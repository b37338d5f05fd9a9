"""What users are told where a GPU cannot be used, each in a process of its own; and artifacts in files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stub_device import StubDevice
from stub_process import run_process

import lamina
from lamina.records import records
from lamina_inductor.artifact import ArtifactError
from lamina_inductor.backends.triton import GpuArtifact
from lamina_inductor.cache.store import default_store

COMPILE = "import lamina; lamina.compile(lambda x: x + 1, backend='triton')"


def message(code: str, **environment: str) -> str:
    """The last line that a process writes before it fails."""
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert result.returncode, "it did not fail"
    return result.stderr.strip().splitlines()[-1]


def library(device: StubDevice) -> str:
    return device.library._name


UNUSABLE = "the device 'cuda' cannot be used: "
"""How eager code and compiled code begin."""


def test_no_driver() -> None:
    found = message(COMPILE, LAMINA_LIBCUDA="/nowhere/libcuda.so.1")
    assert found.startswith(
        f"RuntimeError: {UNUSABLE}there is no NVIDIA driver (LAMINA_LIBCUDA=/nowhere/libcuda.so.1 does"
    )
    assert "install the driver, version 580 or later; use device 'cpu', or guard with cuda.is_available()" in found


def test_no_gpu(device: StubDevice) -> None:
    found = message(COMPILE, LAMINA_LIBCUDA=library(device), STUB_DEVICES="0")
    assert found.startswith(f"RuntimeError: {UNUSABLE}the NVIDIA driver finds no GPU: check it with nvidia-smi")


def test_an_old_driver(device: StubDevice) -> None:
    found = message(COMPILE, LAMINA_LIBCUDA=library(device), STUB_VERSION="11040")
    assert found.startswith(
        f"RuntimeError: {UNUSABLE}the NVIDIA driver is too old (it supports CUDA 11.4): install version 580 or later"
    )
    assert found.endswith("for CPU tensors use backend='cpp', or name no backend")


VERSIONS = """
import sys, importlib.metadata as m
old = m.version
def version(name):
    if name != 'triton': return old(name)
    if not {found!r}: raise m.PackageNotFoundError(name)
    return {found!r}
m.version = version
sys.modules['triton'] = None
"""


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("", "compiling Triton kernels needs the package triton: pip install 'lamina[cuda]'"),
        (
            "3.2.0",
            "compiling Triton kernels needs triton 3.6 or later, 3.2.0 is here: pip install 'lamina[cuda]'",
        ),
    ],
)
def test_no_triton_or_an_old_one(device: StubDevice, found: str, said: str) -> None:
    text = message(VERSIONS.format(found=found) + COMPILE, LAMINA_LIBCUDA=library(device))
    assert text == f"lamina_inductor.backends.triton.compile.MissingTriton: {said}"


BROKEN = """
from lamina_inductor.backends.triton.compile import import_triton
import_triton()
"""


def test_a_triton_that_does_not_load() -> None:
    text = message(VERSIONS.format(found="3.7.1") + BROKEN)
    assert "MissingTriton: the package triton does not load (" in text
    assert text.endswith("pip install 'lamina[cuda]' brings one that does")


TENSOR = "import sys; sys.modules['cupy'] = None; import lamina; lamina.ones(3, device='cuda')"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"LAMINA_LIBCUDA": "/nowhere/libcuda.so.1"},
            "there is no NVIDIA driver (LAMINA_LIBCUDA=/nowhere/libcuda.so.1 does not load)",
        ),
        ({"STUB_DEVICES": "0"}, "the NVIDIA driver finds no GPU: check it with nvidia-smi, and CUDA_VISIBLE_DEVICES"),
        ({"STUB_VERSION": "12040"}, "the NVIDIA driver is too old (it supports CUDA 12.4): install version 580"),
        ({}, "CuPy is not installed: pip install 'lamina[cuda]'"),
    ],
)
def test_the_first_tensor_says_what_is_missing(device: StubDevice, settings: dict[str, str], problem: str) -> None:
    text = message(TENSOR, **{"LAMINA_LIBCUDA": library(device), "LAMINA_CUDA_PROVIDER": "cupy", **settings})
    assert text.startswith(f"RuntimeError: the device 'cuda' cannot be used: {problem}")
    assert text.endswith("use device 'cpu', or guard with cuda.is_available()")


def test_nothing_of_a_gpu_is_touched_before_it_is_asked_for() -> None:
    code = (
        "import sys, lamina\n"
        "lamina.compile(lambda x: x + 1)(lamina.ones(3))\n"
        "assert not {'cupy', 'triton', 'lamina_inductor.host._cuda'} & set(sys.modules), 'imported'\n"
        "assert 'libcuda' not in open('/proc/self/maps').read()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def artifact() -> GpuArtifact:
    run = lamina.compile(lambda x: x.sin().softmax(-1) + lamina.tensor([1.0] * 20, device=x.device))
    run(lamina.ones(7, 20).cuda())
    return next(iter(records()[-1].artifacts.values()))


def test_artifacts_run_from_files_without_triton(device: StubDevice, tmp_path: Path) -> None:
    made = artifact()
    made.save(tmp_path / "a.lamina")
    loaded = GpuArtifact.load(tmp_path / "a.lamina")
    x = lamina.randn(7, 20)
    (got,) = loaded(x.cuda())
    assert (got.cpu() - (x.sin().softmax(-1) + 1)).abs().max() < 1e-5
    assert [k.name for k in loaded.kernels] == [k.name for k in made.kernels]
    assert "triton" not in sys.modules or "triton" in made.description.toolchain


def test_a_damaged_file_is_refused(device: StubDevice, tmp_path: Path) -> None:
    artifact().save(tmp_path / "a.lamina")
    data = bytearray((tmp_path / "a.lamina").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.lamina").write_bytes(data)
    with pytest.raises(ArtifactError, match="is damaged; compile the graph again"):
        GpuArtifact.load(tmp_path / "a.lamina")


def test_a_second_process_finds_the_artifact_and_a_damaged_one_is_made_again(
    device: StubDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact()
    count = len(device.programs)
    artifact()
    assert len(device.programs) == count
    for path in default_store().folder.glob("??/*.so"):  # type: ignore[union-attr]
        path.write_bytes(path.read_bytes()[:-5])
    artifact()
    assert len(device.programs) == count + 1
    monkeypatch.setattr("lamina_inductor.backends.triton.build.toolchain", lambda: "another one")
    artifact()
    assert len(device.programs) == count + 2


PRODUCT = """
from lamina_inductor.backends.triton import build
compile_kernels = build.compile_kernels
def compiling(*given):
    found = compile_kernels(*given)
    print("compiled, handles", device.library.stub_handles())
    return found
build.compile_kernels = compiling
x, w = lamina.arange(12.).reshape(3, 4), lamina.ones(4, 5)
run = lamina.compile(lambda x, w: x @ w + 1, backend="triton")
print((run(x.cuda(), w.cuda()).cpu() - (x @ w + 1)).abs().max().item(), "handles", device.library.stub_handles())
"""


def test_cublas_is_opened_while_kernels_compile(device: StubDevice, tmp_path: Path) -> None:
    with run_process(library(device), tmp_path, PRODUCT) as process:
        said = process.communicate(timeout=60)[0]
    assert said.splitlines() == ["compiled, handles 1", "0.0 handles 1"]


def test_without_cublas_the_first_product_says_so(device: StubDevice, tmp_path: Path) -> None:
    missing = {"LAMINA_LIBCUBLAS": "/nowhere/libcublas.so", "LAMINA_STRICT": "1"}
    with run_process(library(device), tmp_path, PRODUCT, **missing) as process:
        said = process.communicate(timeout=60)[0]
    first, *_, last = said.splitlines()
    assert first == "compiled, handles 0"
    assert "matrix products on the GPU need cuBLAS, which cannot be loaded (/nowhere/libcublas.so" in last
