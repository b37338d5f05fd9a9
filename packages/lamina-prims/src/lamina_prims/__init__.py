"""Operators of Lamina: primitives, composites that decompose to them, and their facets."""

from __future__ import annotations

from . import operators as families
from .decompose import decompose
from .modes import MODES, Mode, creating, sizing
from .operator import Operator
from .promotion import get_default_dtype, promote, result_dtype, set_default_dtype
from .registry import by_name, composite, method, names, operator, operators, ops, primitive, resolve

__version__ = "0.1.0.dev0"
PROVIDES = {"primset": 0}
ACCEPTS = {"graph": (0,)}

__all__ = [
    "ACCEPTS",
    "MODES",
    "PROVIDES",
    "Mode",
    "Operator",
    "by_name",
    "composite",
    "creating",
    "decompose",
    "families",
    "get_default_dtype",
    "method",
    "names",
    "operator",
    "operators",
    "ops",
    "primitive",
    "promote",
    "resolve",
    "result_dtype",
    "set_default_dtype",
    "sizing",
]
