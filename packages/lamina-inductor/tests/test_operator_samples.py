"""Every operator's samples: lowered, fused, and run by the IR's interpreter, they equal the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracing import assert_same, compiled

from lamina_prims import operators

SKIPPED_TAGS = {"nondeterministic", "dynamic"}
WRITES = {"copy_to"}
"""Returns nothing: write-backs have tests of their own (test_write_backs)."""


def _ids() -> list[str]:
    found = operators().items()
    return sorted(
        id for id, op in found if op.samples is not None and not (op.tags & SKIPPED_TAGS) and id not in WRITES
    )


@pytest.mark.parametrize("id", _ids())
def test_program_equals_reference(id: str) -> None:
    op = operators()[id]
    for sample in op.samples(np.random.default_rng(0)):
        want = op.run_arrays(sample.args, sample.kwargs)
        _, got = compiled(op, *sample.args, **sample.kwargs)
        flat = want if isinstance(want, (tuple, list)) else (want,)
        for have, wanted in zip(got, [w for w in flat if w is not None], strict=True):
            if isinstance(wanted, np.ndarray):
                assert_same(have, wanted, 2e-2 if _has_half(sample.args) else 1e-5)


def _has_half(args: tuple[Any, ...]) -> bool:
    """Kernels keep float32 between the steps of a composite, the reference rounds after each."""
    return any(isinstance(a, np.ndarray) and a.dtype.kind in "fV" and a.dtype.itemsize <= 2 for a in args)
