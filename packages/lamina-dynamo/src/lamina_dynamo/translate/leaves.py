"""Arrays that the region made into leaves of autograd: those that others get are made before the graph, in Python.

A graph's results hang on one node of autograd whose edges lead to the graph's inputs: what is differentiated by must
be an input, or never leave the graph.
"""

from __future__ import annotations

from typing import Any

from ..variables import TensorVariable

__all__ = ["check_leaves", "new_leaves"]


def check_leaves(tx: Any, outputs: list[TensorVariable]) -> None:
    """End the graph where a leaf is made that lives on, or by which results can be differentiated and by no input.

    Raises:
        BreakBefore: at that step.
    """
    _check_hooks(tx, outputs)
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


def _check_hooks(tx: Any, outputs: list[TensorVariable]) -> None:
    """Hooks of the region end with it, except on its own arrays; those of inputs act in the region only."""
    for hook in tx.hooks:
        if hook.tensor.source is not None and not hook.removed:
            tx.break_at(hook.steps, "a hook on a tensor of the caller that stays")
    retained = {id(fake): steps for fake, steps in tx.retained}
    for output in outputs:
        if tx.outer_hooks and tx.frontend.has_history(output.fake):
            tx.break_at(next(iter(tx.outer_hooks.values())), "a result with a history, by inputs with hooks")
        if id(output.fake) in retained:
            tx.break_at(retained[id(output.fake)], "a tensor that keeps its gradient and lives on")


def new_leaves(tx: Any) -> list[Any]:
    """Sources of the caller's arrays that the region makes require gradients, to be told so in front of the graph.

    Raises:
        BreakBefore: one no longer requires them; the graph ends where that is said first.
    """
    steps = {id(fake): steps for fake, steps in reversed(tx.leaves)}
    made = []
    for value, tensor in tx.arrays if tx.leaves else ():
        if id(tensor.fake) not in steps or tensor.fake.requires_grad == value.requires_grad:
            continue
        if not tensor.fake.requires_grad:
            tx.break_at(steps[id(tensor.fake)], "a tensor of the caller that no longer requires gradients")
        made.append(tensor.source)
    return made
