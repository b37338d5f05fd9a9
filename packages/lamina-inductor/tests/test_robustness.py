"""What once broke, and inputs that are unusual: empty, read-only, unaligned, strided in odd ways."""

from __future__ import annotations

from typing import Any

import numpy as np
from tracing import assert_same, trace

from lamina_inductor import CppBackend
from lamina_inductor.host.threads import default_threads, set_num_threads
from lamina_prims import ops


def check(fn: Any, *arrays: Any) -> None:
    """Compiled ``fn`` gives what the references give."""
    graph, inputs = trace(fn, *arrays)
    want = fn(*arrays)
    got = CppBackend().compile(graph)(*inputs)
    for have, expected in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        assert_same(np.asarray(have), expected)


def test_an_empty_tensor_beside_others_in_one_parallel_launch() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((0, 3) if k == 3 else (k + 1, 5)).astype(np.float32) for k in range(40)]
    set_num_threads(2)
    try:
        check(lambda *xs: (*[ops.exp(x) for x in xs[:9]], *[ops.tanh(x) for x in xs[9:]]), *arrays)
    finally:
        set_num_threads(default_threads())
