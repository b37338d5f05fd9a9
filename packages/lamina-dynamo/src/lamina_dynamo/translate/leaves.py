"""Arrays that the region made into leaves of autograd: those that others get are made before the graph, in Python.

A graph's results hang on one node of autograd whose edges lead to the graph's inputs: what is differentiated by must
be an input, or never leave the graph.
"""

from __future__ import annotations

from typing import Any

from ..variables import TensorVariable

__all__ = ["check_leaves"]


def check_leaves(tx: Any, outputs: list[TensorVariable]) -> None:
    """End the graph where a leaf is made that lives on, or by which results can be differentiated and by no input.

    Raises:
        BreakBefore: at that step.
    """
    if not tx.leaves:
        return
    steps = {id(fake): steps for fake, steps in tx.leaves}
    frontend = tx.frontend
    for output in outputs:
        if id(output.fake) in steps and frontend.is_new_leaf(output.fake):
            tx.break_at(steps[id(output.fake)], "a tensor that was made to require gradients and lives on")
    taken = any(frontend.has_history(tensor.fake) for _, tensor in tx.arrays)
    if not taken and any(frontend.has_history(output.fake) for output in outputs):
        tx.break_at(tx.leaves[0][1], "a result that is differentiated by tensors made in the region only")
