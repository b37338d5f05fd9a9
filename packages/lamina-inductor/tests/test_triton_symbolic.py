"""Kernels of symbolic sizes: how many launches, and, with triton, that they compile and what they compute."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from triton_symbolic import CASES, INDEX_BITS
from triton_templates import BF16, attention, backward, floats, gradients, kept_graph, matrices

from lamina_inductor.backends.triton import TritonBackend, compile_ptx
from lamina_prims import ops

TRITON = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('triton')", reason="no triton here")


@pytest.fixture(scope="module")
def report() -> dict[str, str | None]:
    script = Path(__file__).parent / "triton_symbolic_interpreted.py"
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_number_of_launches(name: str) -> None:
    assert len(TritonBackend().emit(CASES[name].graph()).launches) == CASES[name].launches


def test_updates_of_unknown_sizes_move_16_bytes_at_once_in_whole_tiles() -> None:
    graph = CASES["adamw of several sizes"].graph()
    narrow, launch = (TritonBackend().emit(graph, index_bits=bits).launches[0] for bits in INDEX_BITS)
    text = launch.kernel.source
    assert "if (program + 1) * XBLOCK <= n:" in narrow.kernel.source
    assert "if (program.to(tl.int64) + 1) * XBLOCK <= n:" in text
    assert text.index("tl.load(b0 + i0)") < text.index("return") < text.index("tl.load(b0 + i0, inside_x")
    (cells,) = launch.buffers
    assert isinstance(cells, tuple) and launch.grid[0] == sum(cells[1:5], cells[0])


def test_an_unknown_number_of_short_rows_is_put_together() -> None:
    (launch,) = TritonBackend().emit(CASES["short rows together"].graph()).launches
    assert launch.kernel.tile.x * launch.kernel.tile.r >= 1024


@TRITON
@pytest.mark.parametrize(
    "key", [f"{name}: {sizes}, {bits}" for name, case in CASES.items() for sizes in case.sizes for bits in INDEX_BITS]
)
def test_kernels_compute_what_the_references_do(key: str, report: dict[str, str | None]) -> None:
    assert report[key] is None, report[key]


@TRITON
@pytest.mark.parametrize("bits", INDEX_BITS)
@pytest.mark.parametrize("name", CASES)
def test_kernels_compile(name: str, bits: int) -> None:
    for kernel in TritonBackend().emit(CASES[name].graph(), index_bits=bits).kernels:
        assert f".visible .entry {kernel.name}(" in compile_ptx(kernel, 90).ptx


def half(*shape: int) -> Any:
    return floats(*shape, dtype=BF16)


def convolve(padding: int) -> Any:
    return lambda x, w: ops.convolution(x, w, None, (1, 1), (padding, padding), (1, 1), False, (0, 0), 1)


TEMPLATES: dict[str, tuple[Any, tuple[Any, ...], tuple[int, ...]]] = {
    "batch and length": (lambda x, w: ops.gelu(ops.matmul(x, w)), (half(16, 500, 768), half(768, 3072)), (16, 500)),
    "attention": (attention(causal=True), matrices((2, 12), 45, 45, 64, BF16), (2, 45)),
    "attention of whole tiles": (attention(causal=True), matrices((2, 12), 1024, 1024, 64, BF16), (2,)),
    "gradients of attention of whole tiles": (
        backward(causal=True), (*gradients((2, 12), 1024, 64, BF16), *matrices((2, 12), 1024, 1024, 64, BF16)), (2,),
    ),
    "attention's gradients": (
        backward(causal=True), (*gradients((2, 12), 45, 64, BF16), *matrices((2, 12), 45, 45, 64, BF16)), (2, 45),
    ),
    "convolution of points": (convolve(0), (half(5, 64, 28, 28), half(128, 64, 1, 1)), (5,)),
    "convolution": (convolve(1), (half(5, 64, 28, 28), half(128, 64, 3, 3)), (5,)),
}  # fmt: skip


@TRITON
@pytest.mark.parametrize("bits", INDEX_BITS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_of_unbounded_sizes_compile(name: str, bits: int) -> None:
    """What the planner chooses; a descriptor's indices have 32 bits."""
    fn, inputs, symbolic = TEMPLATES[name]
    kernels = TritonBackend().emit(kept_graph(fn, inputs, symbolic), index_bits=bits).kernels
    overlapped = "attention of whole tiles" in name and bits == 32
    products = ("gl_mma",) if overlapped else ("gl_mma", "tl.dot")
    assert any(product in kernel.source for kernel in kernels for product in products)
    for kernel in kernels:
        assert f".visible .entry {kernel.name}(" in compile_ptx(kernel, 90).ptx
