"""Machine code of tiles: every access moves 16 bytes at once, and elements change hands once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from triton_corpus import graph_of
from triton_tiles import TILE_CASES

from lamina_inductor.backends.triton import TritonBackend, compile_ptx

pytest.importorskip("triton", reason="the extra lamina-inductor[triton] is not installed")

WHOLE = (
    "matrix", "matrix of whole bfloat16", "chains on both sides", "a transposed operand first",
    "two transposed operands", "columns backwards",
)  # fmt: skip
BARRIERS = {"two transposed operands": 3}
"""One for an exchange, two more for each further one."""


def ptx_of(name: str) -> str:
    fn, inputs, *_ = TILE_CASES[name]
    (kernel,) = TritonBackend().emit(graph_of(fn, inputs)).kernels
    return compile_ptx(kernel, 90, usage=False).ptx


@pytest.mark.parametrize("name", WHOLE)
def test_accesses_of_whole_tiles_move_16_bytes(name: str) -> None:
    text = ptx_of(name)
    accesses: list[Any] = re.findall(r"\b(?:ld|st)\.global[\w.:]*", text)
    assert accesses and all(".v4.b32" in access or ".v2.b64" in access for access in accesses), set(accesses)
    assert len(re.findall(r"\bbar\.sync\b", text)) == BARRIERS.get(name, 1)
