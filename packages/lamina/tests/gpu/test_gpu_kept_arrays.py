"""Memory of results that nobody holds is used again: what the garbage collector frees, too."""

from __future__ import annotations

import gc

import numpy as np
from stub_device import StubDevice

import lamina


def test_results_that_were_part_of_a_cycle(device: StubDevice) -> None:
    program = lamina.compile(lambda x: x * 2.0)
    x = lamina.arange(8.0).cuda()
    gc.collect()
    for _ in range(5):
        cycle = [program(x)]
        cycle.append(cycle)  # type: ignore[arg-type]
        del cycle
        gc.collect()
        results = [program(x) for _ in range(3)]
        assert len({r.data_ptr() for r in results}) == 3
        for result in results:
            np.testing.assert_array_equal((result + 1.0).cpu().numpy(), np.arange(8.0) * 2 + 1)
