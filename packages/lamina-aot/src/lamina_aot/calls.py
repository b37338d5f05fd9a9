"""Which operators a composite's body names, read from its code (branches included, so an upper bound)."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from lamina_prims import Operator, operators

__all__ = ["called_operators"]


def called_operators(operator: Operator) -> set[Operator]:
    """The operators whose names occur in the body, or in plain functions of its module that the body calls."""
    found: set[Operator] = set()
    seen: set[CodeType] = set()
    stack: list[Any] = [operator.function]
    table = operators()
    while stack:
        function = stack.pop()
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name, table.get(name))
            if isinstance(value, Operator):
                found.add(value)
            elif isinstance(value, FunctionType) and value.__module__.startswith("lamina_prims.operators"):
                stack.append(value)
    found.discard(operator)
    return found
