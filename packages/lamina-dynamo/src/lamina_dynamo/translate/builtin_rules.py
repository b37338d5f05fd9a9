"""What the built-in functions and classes do on trackers: two tables, by the function or class itself.

Functions without a rule are folded when all their arguments are known and their module is known to be pure;
otherwise the graph breaks.
"""

from __future__ import annotations

from . import builtin_classes, builtin_functions, builtin_math, builtin_operators
from .builtin_tables import CLASS_RULES, FUNCTION_RULES

__all__ = ["CLASS_RULES", "FUNCTION_RULES"]

_ = builtin_classes, builtin_functions, builtin_math, builtin_operators  # imported for what they register
