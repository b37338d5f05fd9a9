from __future__ import annotations

import pytest
from triton_corpus import CASES, graph_of
from triton_float8 import FLOAT8_CASES
from triton_tiles import ROW_CASES, TILE_CASES

from lamina_inductor.backends.triton import TritonBackend, compile_ptx

pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")


@pytest.fixture(scope="module", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        yield


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("name", [*CASES, *FLOAT8_CASES, *TILE_CASES, *ROW_CASES])
def test_kernels_compile(name: str, sm: int) -> None:
    fn, inputs, *_ = (CASES | FLOAT8_CASES | TILE_CASES | ROW_CASES)[name]
    for kernel in TritonBackend().emit(graph_of(fn, inputs)).kernels:
        compiled = compile_ptx(kernel, sm)
        assert f".visible .entry {kernel.name}(" in compiled.ptx
        assert f".target sm_{sm}" in compiled.ptx
        assert compiled.cubin[:4] == b"\x7fELF"
        assert compiled.registers is None or 0 < compiled.registers <= 255
        # a table of 32 bytes for sin and cos, by triton 3.6; 64 bytes of waves with few registers, by 3.9
        assert (compiled.spills or 0) <= 64


def test_products_and_sums_are_contracted_unless_forbidden() -> None:
    fn, inputs, _ = CASES["adamw"]
    (kernel,) = TritonBackend().emit(graph_of(fn, inputs)).kernels
    assert "fma.rn.f32" in compile_ptx(kernel, 90).ptx
    strict = compile_ptx(kernel, 90, enable_fp_fusion=False).ptx
    assert strict.count("fma.rn.f32") < compile_ptx(kernel, 90).ptx.count("fma.rn.f32")
