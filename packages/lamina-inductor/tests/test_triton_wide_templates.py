"""Every product and attention of the templates' cases with unknown sizes compiles with indices of 64 bits."""

from __future__ import annotations

from typing import Any

import pytest
from triton_templates import ATTENTIONS, GEMMS, emit_with, kept_graph

from lamina_inductor.backends.triton import compile_ptx

pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")

CASES = GEMMS | ATTENTIONS


@pytest.fixture(scope="module", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        yield


def outer_sizes(inputs: tuple[Any, ...]) -> tuple[int, ...]:
    """All sizes but those of last dimensions, which say what may be described and how wide heads are."""
    last = {array.shape[-1] for array in inputs}
    return tuple(sorted({n for array in inputs for n in array.shape[:-1] if n > 1} - last))


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_unknown_sizes_compile(name: str) -> None:
    fn, inputs, candidates = CASES[name]
    sizes = outer_sizes(inputs)
    kernels = emit_with(kept_graph(fn, inputs, sizes), candidates[-1], index_bits=64).kernels
    assert not sizes or any("tl.int64" in kernel.source for kernel in kernels)
    for kernel in kernels:
        assert f".visible .entry {kernel.name}(" in compile_ptx(kernel, 90).ptx
