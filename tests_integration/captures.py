"""Run a function eager and compiled: results, gradients and changed arguments are equal, graphs and breaks are counted.

>>> assert_captured(lambda x: x * 2, lambda: (lamina.ones(3).requires_grad_(),), graphs=1)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from compare import assert_same

import lamina
from lamina.compiler import disable
from lamina_dynamo.capture import CaptureWarning

__all__ = ["assert_captured", "leaf", "outside"]


@disable
def outside(*values: Any) -> Any:
    """A call that is a graph break; gives back its first argument."""
    return values[0] if values else None


def leaf(*shape: int) -> tuple[Any, ...]:
    """The arguments of most cases: one tensor that requires gradients."""
    sizes = shape or (4,)
    count = 1
    for size in sizes:
        count *= size
    return (lamina.arange(count).float().reshape(sizes).div(count).requires_grad_(),)


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, lamina.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for part in value for t in _tensors(part)] if isinstance(value, (list, tuple)) else []


def _run(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """Results or the error, arguments, and gradients after a backward pass over the results (or its error)."""
    try:
        result = function(*args)
    except Exception as error:  # noqa: BLE001  (which error it is, is compared)
        return type(error).__name__, str(error), args
    roots = [t for t in _tensors(result) if t.requires_grad and not t.is_leaf]
    failed = None
    if roots:
        try:
            sum((t * t).sum() for t in roots).backward()
        except RuntimeError as error:
            failed = str(error).partition(":")[0]
    leaves = [t for t in (*_tensors(list(args)), *_tensors(result)) if t.is_leaf]
    return result, args, [t.grad for t in leaves], failed


def assert_captured(
    function: Callable[..., Any],
    make: Callable[[], tuple[Any, ...]] = leaf,
    *,
    graphs: int | None = None,
    breaks: int = 0,
    calls: int = 2,
    tolerance: float = 1e-5,
    **options: Any,
) -> Any:
    """Compare ``calls`` calls; no capture warning may come. Returns the summary of what was compiled."""
    lamina.compiler.reset()
    lamina.manual_seed(5)
    expected = [_run(function, make()) for _ in range(calls)]
    lamina.manual_seed(5)
    compiled = lamina.compile(function, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=CaptureWarning)
        found = [_run(compiled, make()) for _ in range(calls)]
    for want, have in zip(expected, found, strict=True):
        assert_same(want, have, tolerance)
    told = lamina.compiler.summary()
    assert told.breaks == breaks, told.break_reasons
    assert graphs is None or told.graphs == graphs, (told.graphs, told.break_reasons)
    return told
