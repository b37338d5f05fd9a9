"""Kernels compiled in processes of their own: what these import, what they answer, how they fail."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace

import pytest

from lamina_inductor.backends.triton import TritonKernel, compile_ptx
from lamina_inductor.backends.triton import worker as worker_module
from lamina_inductor.backends.triton.tiles import Tile
from lamina_inductor.backends.triton.workers import compile_kernels

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
