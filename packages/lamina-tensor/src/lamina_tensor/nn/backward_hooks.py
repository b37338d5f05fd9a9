"""Hooks of a module on the gradients of its inputs and results.

The tensors that go into the module and those that come out pass through identity functions whose backward steps
call the hooks: the step of the results first (``grad_output``), then, when all is known, that of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..autograd.function import Function
from ..tensor import Tensor

__all__ = ["BackwardHooks", "run_with_backward_hooks"]


@dataclass
class BackwardHooks:
    """A module's hooks: before and after its backward."""

    before: dict[int, Callable[..., Any]]
    after: dict[int, Callable[..., Any]]


class _Pass(Function):
    """Identity on some tensors; their gradients go through ``see``."""

    @staticmethod
    def forward(ctx: Any, see: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.see = see
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.see(grads))


def run_with_backward_hooks(module: Any, hooks: BackwardHooks, args: Any, kwargs: Any) -> Any:
    """``module.forward`` with the hooks in its backward pass; gradients are on."""
    if not (hooks.before or hooks.after):
        return module.forward(*args, **kwargs)
    seen: dict[str, tuple[Any, ...]] = {}

    def results_known(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in tuple(hooks.before.values()):
            changed = hook(module, grads)
            if changed is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        seen["output"] = grads
        if not wanted:  # no input needs a gradient: the hooks still see those of the results
            _call_after(module, hooks, (None,) * len(args), grads)
        return grads

    def inputs_known(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        full = [None] * len(args)
        for at, grad in zip(wanted, grads, strict=True):
            full[at] = grad
        changed = _call_after(module, hooks, tuple(full), seen.get("output", ()))
        return tuple(changed[at] for at in wanted)

    wanted = [k for k, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad]
    if wanted and hooks.after:
        passed = _Pass.apply(inputs_known, *[args[k] for k in wanted])
        args = list(args)
        for k, value in zip(wanted, passed, strict=True):
            args[k] = value
    result = module.forward(*args, **kwargs)
    outputs = result if isinstance(result, tuple) else (result,)
    if not any(isinstance(o, Tensor) and o.requires_grad for o in outputs):
        return result
    places = [k for k, value in enumerate(outputs) if isinstance(value, Tensor)]
    passed = dict(zip(places, _Pass.apply(results_known, *[outputs[k] for k in places]), strict=True))
    replaced = tuple(passed.get(k, value) for k, value in enumerate(outputs))
    return replaced if isinstance(result, tuple) else replaced[0]


def _call_after(module: Any, hooks: BackwardHooks, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Any:
    for hook in tuple(hooks.after.values()):
        changed = hook(module, inputs, outputs)
        if changed is not None:
            inputs = changed if isinstance(changed, tuple) else (changed,)
    return inputs
