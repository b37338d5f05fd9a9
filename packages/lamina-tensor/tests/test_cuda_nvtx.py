from __future__ import annotations

import pytest

from lamina_tensor import cuda
from lamina_tensor.cuda import nvtx


def test_ranges_count_their_depth_without_a_device() -> None:
    assert nvtx.range_push("outer") == 0 and nvtx.range_push("inner") == 1
    assert nvtx.range_pop() == 1 and nvtx.range_pop() == 0 and nvtx.range_pop() == 0
    assert cuda.nvtx is nvtx and not nvtx.mark("here")


def test_a_range_ends_with_an_error_and_decorates() -> None:
    with pytest.raises(ZeroDivisionError), nvtx.range("step {}", 3):
        1 / 0  # noqa: B018
    assert nvtx.range_push("first") == 0 and nvtx.range_pop() == 0
    assert nvtx.range("f")(lambda: nvtx.range_push("g") + nvtx.range_pop())() == 2
