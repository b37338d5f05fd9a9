"""Without a GPU: nothing of a device library is imported, questions are answered, first use says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda import activation, availability

FOREIGN = ("cupy", "cupyx", "cupy_backends", "triton", "torch", "cuda", "pynvml", "numba")


@pytest.fixture(autouse=True)
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("LAMINA_CUDA_PROVIDER", raising=False)
    before = cuda.use_provider(None)
    yield
    cuda.use_provider(before)


def test_importing_asks_for_no_device_library() -> None:
    program = (
        "import sys, lamina_tensor as lt\n"
        "lt.cuda.is_available(), lt.manual_seed(0), lt.rand(2), lt.nn.Linear(2, 2)\n"
        f"found = [m for m in sys.modules if m.partition('.')[0] in {FOREIGN!r}]\n"
        "assert not found, found\n"
    )
    quiet = {k: v for k, v in os.environ.items() if k != "LAMINA_CUDA_PROVIDER"}
    subprocess.run([sys.executable, "-c", program], check=True, env=quiet)


STATES = [
    (("driver", 0, 0), True, "there is no NVIDIA driver", "install the driver, version 580 or later"),
    (
        ("cuInit gave error 999", 13000, 0),
        True,
        "the NVIDIA driver does not start (cuInit gave error 999)",
        "nvidia-smi",
    ),
    (("", 12040, 1), True, "too old (it supports CUDA 12.4)", "install version 580 or later"),
    (("", 13000, 0), True, "the NVIDIA driver finds no GPU", "CUDA_VISIBLE_DEVICES"),
    (("", 13000, 1), False, "CuPy is not installed", "pip install 'lamina[cuda]'"),
]


@pytest.mark.parametrize(("driver", "library", "problem", "advice"), STATES, ids=lambda v: str(v)[:30])
def test_first_use_says_what_is_missing(
    driver: tuple[str, int, int], library: bool, problem: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "driver_state", lambda: driver)
    monkeypatch.setattr(availability, "library_installed", lambda: library)
    assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_initialized()
    for use in (lambda: lt.ones(2).cuda(), lambda: lt.zeros(2, device="cuda"), lambda: lt.tensor(1, device="cuda"),
                cuda.current_device, cuda.init, cuda.Stream, lambda: lt.ones(1).pin_memory(),
                lambda: lt.set_default_device("cuda"), lambda: lt.Generator("cuda")):  # fmt: skip
        with pytest.raises(RuntimeError) as caught:
            use()
        text = str(caught.value)
        assert text.startswith("the device 'cuda' cannot be used: ") and problem in text and advice in text
        assert text.endswith("use device 'cpu', or guard with cuda.is_available()")


def test_what_is_missing_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "driver_state", lambda: ("driver", 0, 0))
    monkeypatch.setattr(availability, "library_installed", lambda: False)
    assert "libcuda.so.1" in str(availability.missing()) and "CuPy is needed too" in str(availability.missing())


def test_questions_that_need_no_device() -> None:
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    assert cuda.memory_summary() == "no CUDA device has been used" and cuda.memory_stats() == {}
    cuda.empty_cache()
    cuda.synchronize()
    cuda.manual_seed_all(3)
    cuda.reset_peak_memory_stats()


def test_a_driver_that_is_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libcuda.so.1").write_text("no library")
    monkeypatch.setenv("LAMINA_LIBCUDA", str(tmp_path / "libcuda.so.1"))
    assert availability.driver_state() == ("driver", 0, 0) and not cuda.is_available()


def test_the_provider_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_CUDA_PROVIDER", "stub")
    assert cuda.is_available() and lt.ones(2, device="cuda").is_cuda
    assert activation.active_provider().name == "stub"
    cuda.use_provider(None)
    monkeypatch.setenv("LAMINA_CUDA_PROVIDER", "vulkan")
    with pytest.raises(RuntimeError, match="the providers are 'cupy' and 'stub'"):
        lt.ones(2).cuda()


def test_a_device_library_that_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libcublas.so.13 is not found')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(availability, "driver_state", lambda: ("", 13000, 1))
    monkeypatch.delitem(sys.modules, "lamina_tensor.cuda.cupy_provider", raising=False)
    with pytest.raises(RuntimeError, match=r"CuPy does not load \(libcublas.so.13 is not found\): pip install"):
        lt.ones(2).cuda()
