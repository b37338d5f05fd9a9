"""Templates of elementwise operators in Triton: data only, see ``elementwise``.

``{0}``, ``{1}``, ``{2}`` are operands (names or constants: no parentheses needed), ``{type}`` is the result's type,
``{own}`` the operands', ``{bits}`` their width; ``{one}``, ``{zero}`` and ``{ones}`` (all bits) are constants of it.

Beware: ``-x`` is ``0 - x`` in Triton, which loses the sign of zero; ``/`` on float32 is not correctly rounded; and
``a if c else b`` is no choice by element.
"""

from __future__ import annotations

__all__ = ["CONSTANT_EXPONENTS", "OPERATORS", "WIDE_DIVISION"]

_ANY: dict[str, str] = {
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}",
    "ge": "{0} >= {1}", "where": "tl.where({0}, {1}, {2})", "positive": "{0}", "conj": "{0}", "real": "{0}",
    "logical_and": "({0} != 0) & ({1} != 0)", "logical_or": "({0} != 0) | ({1} != 0)",
    "logical_xor": "({0} != 0) ^ ({1} != 0)", "logical_not": "{0} == 0",
    "maximum": "lm_maximum({0}, {1})", "minimum": "lm_minimum({0}, {1})",
    "clamp": "lm_minimum(lm_maximum({0}, {1}), {2})", "square": "{0} * {0}",
    "bitcast": "{0}.to({type}, bitcast=True)",
}  # fmt: skip

_DIVIDE = "tl.div_rn({0}, {1})"

_FLOAT: dict[str, str] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": _DIVIDE, "neg": "{0} * (-1.0)",
    "abs": "tl.abs({0})", "sqrt": "tl.sqrt_rn({0})", "rsqrt": "tl.rsqrt({0})", "reciprocal": "tl.div_rn({one}, {0})",
    "floor": "tl.floor({0})", "ceil": "tl.ceil({0})", "trunc": "libdevice.trunc({0})", "round": "libdevice.rint({0})",
    "copysign": "libdevice.copysign({0}, {1})", "fma": "tl.fma({0}, {1}, {2})",
    "isnan": "{0} != {0}", "isinf": 'tl.abs({0}) == float("inf")', "isfinite": 'tl.abs({0}) < float("inf")',
    "signbit": "{0}.to(tl.int{bits}, bitcast=True) < 0", "sign": "lm_sign({0})", "relu": "lm_maximum({0}, {zero})",
    "fmax": "tl.maximum({0}, {1})", "fmin": "tl.minimum({0}, {1})",
    "frac": "{0} - libdevice.trunc({0})", "heaviside": "lm_heaviside({0}, {1})",
    "sigmoid": "tl.div_rn({one}, {one} + tl.exp({0} * (-1.0)))",
    "silu": "tl.div_rn({0}, {one} + tl.exp({0} * (-1.0)))",
    "remainder": "lm_float_remainder({0}, {1})", "floor_div": "lm_float_floor_div({0}, {1})",
    "floor_divide": "lm_float_floor_div({0}, {1})",
    "trunc_div": "libdevice.trunc(tl.div_rn({0}, {1}))", "trunc_divide": "libdevice.trunc(tl.div_rn({0}, {1}))",
    "exp": "tl.exp({0})", "exp2": "tl.exp2({0})", "log": "tl.log({0})", "log2": "tl.log2({0})", "sin": "tl.sin({0})",
    "cos": "tl.cos({0})", "erf": "tl.erf({0})", "ldexp": "{0} * tl.exp2({1})", "sinc": "lm_sinc({0})",
}  # fmt: skip
_LIBRARY = (
    "expm1", "log10", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erfc",
    "erfinv", "lgamma", "cbrt",
)  # fmt: skip
_FLOAT |= {name: f"libdevice.{name}({{0}})" for name in _LIBRARY}
_FLOAT |= {name: f"libdevice.{name}({{0}}, {{1}})" for name in ("pow", "atan2", "hypot", "fmod", "nextafter")}

_INT: dict[str, str] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "{zero} - {0}", "abs": "tl.abs({0})",
    "floor_div": "lm_floor_div({0}, {1})", "remainder": "lm_remainder({0}, {1})",
    "floor_divide": "lm_floor_div({0}, {1})", "trunc_divide": "lm_trunc_div({0}, {1})",
    "trunc_div": "lm_trunc_div({0}, {1})", "fmod": "lm_trunc_remainder({0}, {1})",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "bitwise_not": "{0} ^ {ones}",
    "bitwise_left_shift": "lm_shift_left({0}, {1}, {bits})",
    "bitwise_right_shift": "lm_shift_right({0}, {1}, {bits})",
    "shift_right_logical": "lm_shift_right({0}, {1}, {bits})",
    "floor": "{0}", "ceil": "{0}", "trunc": "{0}", "round": "{0}", "isnan": "{0} != {0}", "isinf": "{0} != {0}",
    "isfinite": "{0} == {0}", "signbit": "{0} < 0", "sign": "lm_sign({0})", "relu": "lm_maximum({0}, {zero})",
    "fmax": "tl.maximum({0}, {1})", "fmin": "tl.minimum({0}, {1})", "philox": "lm_philox({0}, {1}, {2})",
}  # fmt: skip

_BOOL: dict[str, str] = {
    "eq": "({0} ^ {1}) == 0", "ne": "{0} ^ {1}", "lt": "({0} == 0) & {1}", "le": "({0} == 0) | {1}",
    "gt": "{0} & ({1} == 0)", "ge": "{0} | ({1} == 0)", "where": "tl.where({0}, {1}, {2})",
    "add": "{0} | {1}", "mul": "{0} & {1}", "sub": "{0} ^ {1}", "maximum": "{0} | {1}", "minimum": "{0} & {1}",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "bitwise_not": "{0} == 0",
    "logical_and": "{0} & {1}", "logical_or": "{0} | {1}", "logical_xor": "{0} ^ {1}", "logical_not": "{0} == 0",
    "abs": "{0}", "sign": "{0}", "square": "{0}", "positive": "{0}",
}  # fmt: skip

OPERATORS: dict[str, dict[str, str]] = {"float": _ANY | _FLOAT, "int": _ANY | _INT, "bool": _BOOL}
"""Kind of the operands -> operator -> template."""

CONSTANT_EXPONENTS: dict[float, str] = {
    0.5: "tl.sqrt_rn({0})", 1.0: "{0}", 2.0: "{0} * {0}", 3.0: "{0} * {0} * {0}", 4.0: "({0} * {0}) * ({0} * {0})",
    -0.5: "tl.rsqrt({0})", -1.0: "tl.div_rn({one}, {0})", -2.0: "tl.div_rn({one}, {0} * {0})",
}  # fmt: skip
"""Powers that need no logarithm."""

WIDE_DIVISION: dict[str, str] = {
    "div": "{0} / {1}", "sqrt": "tl.sqrt({0})", "reciprocal": "{one} / {0}",
    "sigmoid": "{one} / ({one} + tl.exp({0} * (-1.0)))", "silu": "{0} / ({one} + tl.exp({0} * (-1.0)))",
    "trunc_div": "libdevice.trunc({0} / {1})", "trunc_divide": "libdevice.trunc({0} / {1})",
}  # fmt: skip
"""On float64 the plain division and root are the correctly rounded ones, and the only ones."""
