"""What was fused and why, in words and numbers."""

from __future__ import annotations

import numpy as np
from tracing import compiled

from lamina_inductor.inspect import explain, format_kernel, traffic
from lamina_prims import ops

X = np.ones((6, 8), np.float32)


def test_text_of_a_kernel() -> None:
    program, _ = compiled(lambda x: ops.sum(ops.exp(x), 1), X)
    assert format_kernel(program.kernels[0]).splitlines() == [
        "kernel k0_exp_sum(b0: in float32, b1: out float32; n)",
        "  parallel i0 < n",
        "    simd i1 < 8, r3: float32 = sum",
        "      v1: float32 = b0[8*i0 + i1]",
        "      v2: float32 = exp(v1)",
        "      r3 <- v2",
        "    b1[i0] = r3",
    ]


def test_bytes_of_each_call() -> None:
    program, _ = compiled(lambda x: ops.softmax(x, -1), X)
    (found,) = traffic(program)
    assert (found.read, found.written) == (X.nbytes, X.nbytes)


def test_reasons_are_given() -> None:
    program, _ = compiled(lambda x: ops.sum(ops.cumsum(ops.exp(x), 1), 0), X)
    text = explain(program)
    assert "cumsum" in text and "exp" in text
    program, _ = compiled(lambda x: ops.div(x, ops.sum(x)), np.ones((500, 400), np.float32))
    assert "not fused" in explain(program) or len(program.kernels) == 1
