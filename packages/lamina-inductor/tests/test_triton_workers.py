"""Kernels compiled in processes of their own: what these import, what they answer, how they fail."""

from __future__ import annotations

import importlib.util
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lamina_inductor.backends.triton import TritonKernel, compile_ptx, workers
from lamina_inductor.backends.triton import worker as worker_module
from lamina_inductor.backends.triton.tiles import Tile
from lamina_inductor.backends.triton.workers import Compilation, compile_kernels

TRITON = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no triton here")


def kernel(name: str, line: str) -> TritonKernel:
    lines = (
        f"@triton.jit\ndef {name}(b0, b1, XBLOCK: tl.constexpr):",
        "i0 = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)", "v1 = tl.load(b0 + i0)", line,
        "tl.store(b1 + i0, v2)\n",
    )  # fmt: skip
    parameters = (("b0", "*fp32"), ("b1", "*fp32"))
    return TritonKernel(name, "\n    ".join(lines), parameters, Tile(256), frozenset(("b0", "b1")), ())


def test_the_process_imports_nothing_of_lamina() -> None:
    load = f"import runpy, sys; runpy.run_path({worker_module.__file__!r})"
    code = f"{load}; print([m for m in sys.modules if 'lamina' in m])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@TRITON
def test_processes_give_what_is_compiled_here(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = [kernel(f"f{k}", f"v2 = v1 * {k}.5") for k in range(5)]
    for made, wanted in zip(compile_kernels(kernels, 90), kernels, strict=True):
        here = compile_ptx(replace(wanted, origins=(("x", "mul", ""),)), 90, usage=False)
        assert made == here and made.name == wanted.name and made.cubin[:4] == b"\x7fELF"


@TRITON
def test_a_kernel_that_does_not_compile_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = [kernel(f"g{k}", f"v2 = v1 + {k}") for k in range(4)] + [kernel("wrong", "v2 = v1 + nothing")]
    with pytest.raises(RuntimeError, match=r"^wrong does not compile for sm_90: CompilationError: (.|\n)*nothing"):
        compile_kernels(kernels, 90)


@TRITON
def test_tritons_own_cache_key_is_left_alone() -> None:
    from triton.runtime import cache  # optional

    before = cache.triton_key
    compile_ptx(kernel("h", "v2 = v1"), 90, usage=False)
    assert cache.triton_key is before


FAKE = f"""
import runpy, sys, time
worker = runpy.run_path({worker_module.__file__!r})
while True:
    name, *_ = worker["receive"](sys.stdin.buffer)
    code = name.encode()
    found = dict(ptx="", cubin=code, shared=0, warps=4, clusters=1, scratch=0, descriptors=[], cooperative=False)
    worker["send"](sys.stdout.buffer, found if name != "wrong" else "CompilationError: wrong")
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that answer with a kernel's name."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen([sys.executable, "-c", FAKE], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        )
        return started[-1]

    monkeypatch.setattr(workers, "_start", start)
    monkeypatch.setattr(workers, "_idle", queue.SimpleQueue())
    yield started
    for process in started:
        process.communicate()


def test_kernels_are_compiled_while_others_are_made(fake: list[object]) -> None:
    kernels = [kernel(f"f{k}", f"v2 = v1 * {k}.5") for k in range(40)]
    with Compilation(90) as begun:
        for early in (kernels[7], kernels[3], kernels[7]):
            begun.add(early)
        called: list[str] = []
        made = compile_kernels(kernels, 90, begun, lambda: called.append("meanwhile"))
    assert called == ["meanwhile"]
    assert [k.cubin.decode() for k in made] == [k.name for k in made] == [k.name for k in kernels]
    assert len(fake) <= workers.processes()


def test_the_first_error_in_order_is_raised_and_the_processes_are_kept(fake: list[object]) -> None:
    kernels = [kernel("f0", "v2 = v1"), kernel("wrong", "v2 = v1"), kernel("f2", "v2 = v1"), kernel("f3", "v2 = v1")]
    with Compilation(90) as begun:
        begun.add(kernels[1])
        with pytest.raises(RuntimeError, match=r"^wrong does not compile for sm_90: CompilationError: wrong"):
            compile_kernels(kernels, 90, begun)
    assert workers._idle.qsize() == len(fake)


def test_an_error_while_kernels_are_made_ends_what_has_begun(fake: list[object]) -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), Compilation(90) as begun:
        for number in range(100):
            begun.add(kernel(f"f{number}", "v2 = v1"))
        _ = 1 / 0
    assert threading.active_count() == before and workers._idle.qsize() == len(fake) > 0
