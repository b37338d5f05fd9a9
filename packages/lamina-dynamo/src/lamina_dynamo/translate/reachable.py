"""Which arrays live on after a region."""

from __future__ import annotations

from typing import Any

from ..source import Grad, chain
from ..variables import (
    ConstantVariable,
    TensorVariable,
    VariableTracker,
)  # fmt: skip

__all__ = ["reachable"]


def reachable(roots: list[Any]) -> tuple[list[TensorVariable], set[int], list[TensorVariable]]:
    """Arrays that the graph must give back, and containers that contain themselves."""
    outputs: list[TensorVariable] = []
    cyclic: set[int] = set()
    early: list[TensorVariable] = []
    done: set[int] = set()
    path: set[int] = set()

    def visit(value: Any) -> None:
        if not isinstance(value, VariableTracker) or type(value) is ConstantVariable:
            return
        if id(value) in path:
            cyclic.update(path)
            return
        if id(value) in done:
            return
        if value.source is not None:
            done.add(id(value))
            if isinstance(value, TensorVariable) and any(isinstance(step, Grad) for step in chain(value.source)):
                early.append(value)  # the graph may give its owner another gradient
            return
        if isinstance(value, TensorVariable):
            outputs.append(value)
        path.add(id(value))
        for child in value.children():
            visit(child)
        path.discard(id(value))
        done.add(id(value))

    for root in roots:
        visit(root)
    return outputs, cyclic, early
