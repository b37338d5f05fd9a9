"""Calls with ``out=``: the call without it, then an ordinary write, so that graphs know one kind of write.

add(a, 1, out=o)   ->   %add = add(%a, 1); copy_(%o, %add)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import Unsupported
from ..variables import ConstantVariable, TensorVariable, VariableTracker, realize

__all__ = ["call_into"]


def call_into(tx: Any, run: Callable[[dict[str, Any]], VariableTracker], kwargs: dict[str, Any]) -> VariableTracker:
    """``run(kwargs without out)``, written into ``kwargs["out"]``, which is the result.

    Raises:
        Unsupported: several results; or the target changes its size or dtype on the way, or takes part in autograd
            (the call then happens in Python, with its rules and errors).
    """
    rest = {name: value for name, value in kwargs.items() if name != "out"}
    target: Any = realize(tx, kwargs["out"])
    if isinstance(target, ConstantVariable) and target.value is None:
        return run(rest)
    if not isinstance(target, TensorVariable) or tx.frontend.member(target.fake, "copy_") is None:
        raise Unsupported(f"out={target!r}")
    result: Any = run(rest)
    if not isinstance(result, TensorVariable):
        raise Unsupported("out= of a call without one array as its result")
    if any(getattr(v.fake, "requires_grad", False) for v in (target, result)):
        raise Unsupported("out= where a gradient is wanted")
    have, given = tx.frontend.spec(target.fake), tx.frontend.spec(result.fake)
    if tuple(have.shape) != tuple(given.shape) or have.dtype is not given.dtype:
        raise Unsupported("out= of another shape or dtype than the result")
    target.getattr(tx, "copy_").call(tx, [result], {})
    return target
