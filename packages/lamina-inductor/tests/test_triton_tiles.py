"""Tiles of several axes: each access walks memory along an axis of the tile, whatever the others do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tracing import compiled, copied
from triton_corpus import graph_of
from triton_tiles import ROW_CASES, TILE_CASES

from lamina_inductor.backends.triton import TritonBackend
from lamina_inductor.ir.interpret_program import run_program


def same(got: Any, want: Any) -> None:
    wide = [np.asarray(a).astype(np.float64) for a in (got, want)]
    np.testing.assert_allclose(*wide, *((2e-2, 2e-2) if np.asarray(want).itemsize < 4 else (2e-5, 2e-6)))


@pytest.mark.parametrize("name", [*TILE_CASES, *ROW_CASES])
def test_what_kernels_compute(name: str) -> None:
    """By the interpreter of kernel IR, beside the loops of a CPU."""
    fn, inputs = (TILE_CASES | ROW_CASES)[name]
    program = TritonBackend().emit(graph_of(fn, inputs))
    assert not program.externs
    _, wanted = compiled(fn, *inputs)
    for got, want in zip(run_program(program.program, [copied(a) for a in inputs]), wanted, strict=True):
        same(got, want)


@pytest.mark.parametrize("name", TILE_CASES)
def test_no_access_divides_an_index_of_the_tile(name: str) -> None:
    fn, inputs = TILE_CASES[name]
    (kernel,) = TritonBackend().emit(graph_of(fn, inputs)).kernels
    axes = re.findall(r"(\w+) = .*tl\.arange", kernel.source)
    assert len(axes) in (2, 3) and len(axes) == len(kernel.tile.dims)
    accesses = [line for line in kernel.source.splitlines() if "tl.load(" in line or "tl.store(" in line]
    divided = rf"\b({'|'.join(axes)})\b\)* (//|%)"
    assert not [line for line in accesses if re.search(divided, line)]
