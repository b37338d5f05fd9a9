"""Symbolic sizes among the numbers of a call whose tensors all have data: while a graph is traced, such a call belongs
to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_prims.modes import MODES

from ._C import TensorBase

__all__ = ["tracer_for_sizes"]


def tracer_for_sizes(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The tracer that is on, where an argument is a symbolic size: it writes the call, though all tensors be constants.

    To compute it now would fix the size.
    """
    tracer = getattr(MODES.creator, "__self__", None)
    if not hasattr(tracer, "call") or not any(_is_symbolic(v) for v in (*args, *kwargs.values())):
        return None
    return tracer


def _is_symbolic(value: Any) -> bool:
    if type(value) is tuple or type(value) is list:
        return any(_is_symbolic(v) for v in value)
    return not isinstance(value, TensorBase) and hasattr(value, "expr")
