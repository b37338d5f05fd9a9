"""Trade time for memory: forget what a part of the model computed, compute it again in the backward.

Source: T. Chen et al., "Training deep nets with sublinear memory cost" (2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..autograd import Function, backward
from ..autograd.grad_mode import enable_grad, is_grad_enabled
from ..creation import tensor as make_tensor
from ..random import generators
from ..tensor import Tensor

__all__ = ["checkpoint", "checkpoint_region", "checkpoint_sequential"]


@contextmanager
def checkpoint_region() -> Iterator[None]:
    """Marks a region whose values a compiled program computes again in its backward. Eager code runs as usual."""
    yield


class _Checkpoint(Function):
    """Runs ``function`` without a tape; the backward runs it again with one."""

    @staticmethod
    def forward(
        ctx: Any, function: Callable[..., Any], preserve: bool, kwargs: dict[str, Any], anchor: Any, *args: Any
    ) -> Any:
        """Run; keep the arguments and where the random numbers stood."""
        ctx.function, ctx.kwargs = function, kwargs
        ctx.states = [(g, g.get_state()) for g in generators(args)] if preserve else []
        ctx.positions = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.others = {k: a for k, a in enumerate(args) if not isinstance(a, Tensor)}
        ctx.count = len(args)
        ctx.save_for_backward(*(a for a in args if isinstance(a, Tensor)))
        return function(*args, **kwargs) if anchor is None else _run_tracked(ctx, function, args, kwargs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Run again with a tape, then backward through it."""
        args: list[Any] = [ctx.others.get(k) for k in range(ctx.count)]
        for position, saved in zip(ctx.positions, ctx.saved_tensors, strict=True):
            args[position] = saved.detach().requires_grad_(saved.requires_grad)
        current = [(g, g.get_state()) for g, _ in ctx.states]
        for generator, state in ctx.states:
            generator.set_state(state)
        with enable_grad():
            results = ctx.function(*args, **ctx.kwargs)
        for generator, state in current:
            generator.set_state(state)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(r, c) for r, c in zip(results, cotangents, strict=True) if isinstance(r, Tensor) and r.requires_grad]
        if pairs:
            backward([r for r, _ in pairs], [c for _, c in pairs])
        return (None, None, None, None, *(a.grad if isinstance(a, Tensor) else None for a in args))


def _run_tracked(ctx: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run with a tape that is dropped at once: it tells which results depend on leaves that the function uses."""
    with enable_grad():
        results = function(*args, **kwargs)
    several = isinstance(results, tuple)
    detached = [r.detach() if isinstance(r, Tensor) else r for r in (results if several else (results,))]
    tracked = [isinstance(r, Tensor) and r.requires_grad for r in (results if several else (results,))]
    ctx.mark_non_differentiable(*(r for r, t in zip(detached, tracked, strict=True) if isinstance(r, Tensor) and not t))
    return tuple(detached) if several else detached[0]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args)``, keeping only the arguments for the backward.

    Gradients reach tensors among ``args`` and the leaves that ``function`` uses itself. ``use_reentrant`` is accepted
    for compatibility and makes no difference.
    """
    if not is_grad_enabled():
        return function(*args, **kwargs)
    anchor = None
    if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
        anchor = make_tensor(
            0.0, requires_grad=True
        )  # lets the results have a history where only the function's leaves want one
    return _Checkpoint.apply(function, preserve_rng_state, kwargs, anchor, *args)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """Run a sequence of modules in checkpointed segments (the last one is kept)."""
    modules = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(1, len(modules) // segments)

    def run(part: list[Any]) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for module in part:
                x = module(x)
            return x

        return forward

    at = 0
    while at + size < len(modules) and at // size < segments - 1:
        input = checkpoint(run(modules[at : at + size]), input, **options)
        at += size
    return run(modules[at:])(input)
