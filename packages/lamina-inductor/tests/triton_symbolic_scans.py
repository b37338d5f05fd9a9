"""Programs with scans whose sizes are symbols, and sizes to run them with."""

from __future__ import annotations

from triton_symbolic import Case

from lamina_prims import ops

__all__ = ["SYMBOLIC_SCANS"]

SYMBOLIC_SCANS: dict[str, Case] = {
    "an unknown number of rows": Case(
        lambda x: ops.cumsum(ops.softmax(x, 1), 1), (("a", 24),), ({"a": 1}, {"a": 63}, {"a": 0}), 1,
    ),
    "unknown rows of unknown length": Case(
        lambda x: ops.div(ops.cumsum(x, 1), ops.sum(x, 1, keepdim=True)), (("a", "b"),),
        ({"a": 3, "b": 5}, {"a": 1, "b": 1}, {"a": 2, "b": 5000}, {"a": 0, "b": 7}, {"a": 7, "b": 0}), 1,
    ),
    "unknown columns of unknown length": Case(
        lambda x: ops.cumsum(x, 0), (("a", "b"),),
        ({"a": 3, "b": 5}, {"a": 1, "b": 1}, {"a": 40, "b": 150}, {"a": 0, "b": 7}, {"a": 7, "b": 0}), 1,
    ),
    "from the end of unknown rows": Case(
        lambda x: ops.flip(ops.cumsum(ops.flip(ops.exp(x), (1,)), 1), (1,)), (("a", "b"),),
        ({"a": 3, "b": 5}, {"a": 2, "b": 300}), 1,
    ),
    "one row of unknown length": Case(
        lambda x: ops.mul(ops.cumsum(ops.mul(x, 0.01), 0), 0.5), (("a",),), ({"a": 1}, {"a": 5000}, {"a": 0}), 3,
    ),
    "few columns of unknown length": Case(
        lambda x: ops.mul(ops.cumsum(ops.mul(x, 0.01), 0), 0.5), (("a", 12),), ({"a": 1}, {"a": 700}, {"a": 0}), 3,
    ),
    "places in unknown rows": Case(
        lambda x: ops.cummax(x, 1), (("a", "b"),), ({"a": 3, "b": 5}, {"a": 2, "b": 30}, {"a": 2, "b": 1}), 1,
    ),
}  # fmt: skip
