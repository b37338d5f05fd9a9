"""Operators of Lamina: primitives, composites that decompose to them, and their facets."""

from __future__ import annotations

from . import operators as _families
from .operator import Operator
from .operators import pointwise
from .registry import composite, operator, operators, primitive

__version__ = "0.1.0.dev0"
PROVIDES = {"primset": 0}
ACCEPTS = {"graph": (0,)}

__all__ = ["ACCEPTS", "PROVIDES", "Operator", "composite", "operator", "operators", "primitive"]
_ = (_families, pointwise)
