"""From a functional core-level graph to what a backend takes: decomposition, then the clean-up passes.

With ``LAMINA_CHECK=1`` each pass is verified, and small graphs are run before and after it on random inputs.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from lamina_fx import Graph, TensorSpec
from lamina_fx.passes import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_identities,
    run_passes,
)
from lamina_prims import decompose, operator
from lamina_prims.arrays import numpy_dtype
from lamina_prims.chained_scatters import chain_scatters
from lamina_tensor import Tensor

__all__ = ["PASSES", "lower_graph"]

PASSES = (fold_identities, eliminate_common_subexpressions, chain_scatters, eliminate_dead_code)
"""In this order; ``LAMINA_DISABLE_PASSES`` leaves some out by name."""

_CHECKED_NODES, _CHECKED_ELEMENTS = 80, 1 << 14


def lower_graph(graph: Graph, keep: frozenset[str] = frozenset(), dump: Path | None = None) -> Graph:
    """Strict primitives and the ids in ``keep``, cleaned up; constants are arrays.

    ``dump``: a folder for the graph before and after each pass that changed it.
    """
    lowered = decompose(graph, level="prims", keep=keep)
    lowered.attributes = {
        name: value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        for name, value in lowered.attributes.items()
    }
    examples = _examples(lowered) if os.environ.get("LAMINA_CHECK") == "1" else None
    lowered, _ = run_passes(lowered, PASSES, resolver=operator, examples=examples, dump=dump)
    return lowered


def _examples(graph: Graph) -> list[np.ndarray[Any, Any]] | None:
    """Random inputs for a small graph of floating-point tensors of known sizes, otherwise None.

    Integers are left out: they may be indices, for which random values are out of range.
    """
    inputs = [node.spec for node in graph.placeholders]
    if any(isinstance(s, TensorSpec) and s.device.type != "cpu" for s in inputs):
        return None
    sizes = [s.shape for s in inputs if isinstance(s, TensorSpec)]
    known = all(type(n) is int for shape in sizes for n in shape)
    if not known or len(graph.nodes) > _CHECKED_NODES or sum(map(math.prod, sizes)) > _CHECKED_ELEMENTS:
        return None
    if not all(isinstance(s, TensorSpec) and s.dtype.is_floating_point for s in inputs):
        return None
    if any(node.effect is not None for node in graph.nodes):
        return None
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 1.5, s.shape).astype(numpy_dtype(s.dtype)) for s in inputs if isinstance(s, TensorSpec)]
