"""Integer expressions for sizes, strides and indices, and the environment that learns about them.

>>> x = Symbol("x", 0)
>>> (8 * x + 3) // 4, (8 * x + 3) % 4, divides(8 * x, 4)
(2*x, 3, True)
"""

from __future__ import annotations

from . import expr  # noqa: F401  # pyright: ignore[reportUnusedImport]  (first: it and the rules import each other)
from .divisibility import divides, exact_quotient, known_divisor
from .expr import Expr, ExprLike, Integer, Sum, Symbol, as_expr
from .facts import Facts
from .operations import And, Comparison, Eq, FloorDiv, Le, Lt, Max, Min, Mod, Ne, Not, Or, Product
from .parse import parse_expr
from .printing import C_PRELUDE, to_c, to_python
from .ranges import range_with
from .shape_env import ShapeEnv, ShapeGuard, UnbackedSizeError
from .symfloat import SymFloat, sym_float, sym_sqrt
from .symint import SymBool, SymInt, sym_int, sym_max, sym_min
from .truth import FALSE, TRUE, BooleanConstant, BooleanExpr

__all__ = [
    "C_PRELUDE", "FALSE", "TRUE", "And", "BooleanConstant", "BooleanExpr", "Comparison", "Eq", "Expr", "ExprLike",
    "Facts", "FloorDiv", "Integer", "Le", "Lt", "Max", "Min", "Mod", "Ne", "Not", "Or", "Product", "ShapeEnv",
    "ShapeGuard", "Sum", "SymBool", "SymFloat", "SymInt", "Symbol", "UnbackedSizeError", "as_expr", "divides",
    "exact_quotient",
    "known_divisor", "parse_expr", "range_with", "sym_float", "sym_int", "sym_max", "sym_min", "sym_sqrt", "to_c",
    "to_python",
]  # fmt: skip
