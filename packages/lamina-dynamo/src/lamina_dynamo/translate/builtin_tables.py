"""The tables of what built-in functions and classes do on trackers, filled by ``builtin_classes``,
``builtin_functions``, ``builtin_math`` and ``builtin_operators``.

A rule takes the translator and the call's arguments as trackers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..variables import VariableTracker

__all__ = ["CLASS_RULES", "FUNCTION_RULES", "rule_for"]

FUNCTION_RULES: dict[Any, Callable[..., VariableTracker]] = {}
CLASS_RULES: dict[type, Callable[..., VariableTracker]] = {}


def rule_for(*functions: Any) -> Callable[[Any], Any]:
    """Register a rule for these functions or classes."""

    def register(rule: Any) -> Any:
        for function in functions:
            (CLASS_RULES if isinstance(function, type) else FUNCTION_RULES)[function] = rule
        return rule

    return register
