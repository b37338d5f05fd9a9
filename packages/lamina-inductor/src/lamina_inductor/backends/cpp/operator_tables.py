"""Templates of elementwise operators in C++: data only, see ``elementwise``.

``{0}``, ``{1}``, ``{2}`` are operands (names or literals: no parentheses needed), ``{f}`` is the suffix of builtins
on float,
``{type}`` the result's type, ``{one}`` and ``{zero}`` constants of the operands' type.
"""

from __future__ import annotations

__all__ = ["ALIASES", "CONSTANT_EXPONENTS", "OPERATORS"]

ALIASES: dict[str, str] = {
    "sub": "subtract", "mul": "multiply", "true_divide": "div", "divide": "div", "negative": "neg", "absolute": "abs",
    "amax": "maximum", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "floor_divide": "floor_div", "mod": "remainder", "trunc_divide": "trunc_div",
    "max": "maximum", "min": "minimum", "inv": "reciprocal", "power": "pow", "select": "where",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "shift_left": "bitwise_left_shift",
    "shift_right": "bitwise_right_shift", "shift_right_arithmetic": "bitwise_right_shift", "round_even": "round",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_not": "not", "arctan2": "atan2",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "conjugate": "conj", "conj_physical": "conj", "imaginary": "imag",
}  # fmt: skip

_ANY: dict[str, str] = {
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "where": "{0} ? {1} : {2}",
    "logical_and": "({0} != 0) & ({1} != 0)", "logical_or": "({0} != 0) | ({1} != 0)",
    "logical_xor": "({0} != 0) ^ ({1} != 0)", "logical_not": "{0} == 0",
    "maximum": "lm_max({0}, {1})", "minimum": "lm_min({0}, {1})", "fmax": "lm_fmax({0}, {1})",
    "fmin": "lm_fmin({0}, {1})",
    "clamp": "lm_min(lm_max({0}, {1}), {2})", "sign": "lm_sign({0})", "copy": "{0}", "clone": "{0}", "positive": "{0}",
    "bitcast": "lm_bitcast<{type}>({0})", "view_dtype": "lm_bitcast<{type}>({0})", "real": "{0}", "conj": "{0}",
    "square": "{0} * {0}",
}  # fmt: skip

_FLOAT: dict[str, str] = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}",
    "abs": "__builtin_fabs{f}({0})", "sqrt": "__builtin_sqrt{f}({0})", "rsqrt": "{one} / __builtin_sqrt{f}({0})",
    "reciprocal": "{one} / {0}", "floor": "__builtin_floor{f}({0})", "ceil": "__builtin_ceil{f}({0})",
    "trunc": "__builtin_trunc{f}({0})", "round": "__builtin_rint{f}({0})",
    "copysign": "__builtin_copysign{f}({0}, {1})",
    "fma": "__builtin_fma{f}({0}, {1}, {2})", "isnan": "{0} != {0}", "isinf": "__builtin_fabs{f}({0}) == LM_INF",
    "isfinite": "__builtin_fabs{f}({0}) < LM_INF", "signbit": "lm_signbit({0})", "sigmoid": "lm_sigmoid({0})",
    "remainder": "lm_fremainder({0}, {1})", "floor_div": "lm_ffloordiv({0}, {1})",
    "trunc_div": "__builtin_trunc{f}({0} / {1})",
    "relu": "lm_max({0}, {zero})", "frac": "{0} - __builtin_trunc{f}({0})", "heaviside": "lm_heaviside({0}, {1})",
    "silu": "{0} * lm_sigmoid({0})", "erf_plus_one": "lm_erf_plus_one({0})", "exp_masked": "lm_exp_own({0})",
    "ldexp": "{0} * lm_exp2({1})", "logaddexp": "lm_logaddexp({0}, {1})", "complex": "{type}{{{0}, {1}}}",
}  # fmt: skip
_FLOAT |= {
    name: f"lm_{name}({{0}})"
    for name in [
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "erfc",
        "erfinv",
        "lgamma",
        "digamma",
        "cbrt",
        "sinc",
        "erfcx",
        "ndtri",
        "i0e",
        "i1e",
    ]
}
_FLOAT |= {name: f"lm_{name}({{0}}, {{1}})" for name in ("pow", "atan2", "hypot", "fmod", "nextafter", "zeta")}

_INT: dict[str, str] = {
    "add": "lm_iadd({0}, {1})", "subtract": "lm_isub({0}, {1})", "multiply": "lm_imul({0}, {1})",
    "square": "lm_imul({0}, {0})",
    "neg": "lm_ineg({0})", "abs": "lm_iabs({0})", "floor_div": "lm_ifloordiv({0}, {1})",
    "remainder": "lm_imod({0}, {1})",
    "trunc_div": "lm_tdiv({0}, {1})", "fmod": "lm_tmod({0}, {1})", "pow": "lm_ipow({0}, {1})",
    "and": "({type})({0} & {1})", "or": "({type})({0} | {1})", "xor": "({type})({0} ^ {1})", "not": "({type})~{0}",
    "bitwise_left_shift": "lm_shl({0}, {1})", "bitwise_right_shift": "lm_shr({0}, {1})", "floor": "{0}", "ceil": "{0}",
    "shift_right_logical": "lm_shr({0}, {1})", "trunc": "{0}", "round": "{0}", "isnan": "false", "isinf": "false",
    "isfinite": "true", "signbit": "{0} < 0", "gcd": "lm_gcd({0}, {1})", "lcm": "lm_lcm({0}, {1})",
    "relu": "lm_max({0}, {zero})",
    "philox": "lm_philox({0}, {1}, {2})",
}  # fmt: skip

_BOOL: dict[str, str] = {
    "add": "{0} | {1}", "multiply": "{0} & {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}",
    "not": "!{0}",
    "logical_and": "{0} & {1}", "logical_or": "{0} | {1}", "logical_xor": "{0} ^ {1}", "logical_not": "!{0}",
    "maximum": "{0} | {1}", "minimum": "{0} & {1}", "lt": "!{0} & {1}", "le": "!{0} | {1}", "gt": "{0} & !{1}",
    "ge": "{0} | !{1}", "abs": "{0}", "sign": "{0}", "isnan": "false", "isinf": "false", "isfinite": "true",
    "square": "{0}",
    "signbit": "false", "floor": "{0}", "ceil": "{0}", "trunc": "{0}", "round": "{0}", "subtract": "{0} ^ {1}",
}  # fmt: skip

_COMPLEX: dict[str, str] = {
    "add": "lm_cadd({0}, {1})", "subtract": "lm_csub({0}, {1})", "multiply": "lm_cmul({0}, {1})",
    "div": "lm_cdiv({0}, {1})",
    "neg": "lm_cneg({0})", "conj": "lm_cconj({0})", "real": "{0}.re", "imag": "{0}.im", "abs": "lm_cabs({0})",
    "eq": "lm_ceq({0}, {1})", "ne": "!lm_ceq({0}, {1})", "where": "{0} ? {1} : {2}", "square": "lm_cmul({0}, {0})",
    "reciprocal": "lm_cdiv({complex_one}, {0})", "exp": "lm_cexp({0})", "log": "lm_clog({0})", "sqrt": "lm_csqrt({0})",
    "angle": "lm_atan2({0}.im, {0}.re)", "isnan": "{0}.re != {0}.re || {0}.im != {0}.im", "copy": "{0}", "clone": "{0}",
    "positive": "{0}", "isfinite": "lm_cfinite({0})", "isinf": "lm_cinf({0})", "logical_not": "!lm_ctrue({0})",
    "logical_and": "lm_ctrue({0}) && lm_ctrue({1})", "logical_or": "lm_ctrue({0}) || lm_ctrue({1})",
    "sigmoid": "lm_csigmoid({0})", "tanh": "lm_ctanh({0})", "sin": "lm_csin({0})", "cos": "lm_ccos({0})",
    "pow": "lm_cpow({0}, {1})", "sign": "lm_csign({0})",
}  # fmt: skip

OPERATORS: dict[str, dict[str, str]] = {
    "float": _ANY | _FLOAT,
    "int": _ANY | _INT,
    "bool": _ANY | _BOOL,
    "complex": _COMPLEX,
}
"""Kind of the operands -> operator -> template."""

CONSTANT_EXPONENTS: dict[float, str] = {
    0.5: "__builtin_sqrt{f}({0})", 1.0: "{0}", 2.0: "{0} * {0}", 3.0: "{0} * {0} * {0}",
    4.0: "({0} * {0}) * ({0} * {0})",
    -0.5: "{one} / __builtin_sqrt{f}({0})", -1.0: "{one} / {0}", -2.0: "{one} / ({0} * {0})",
}  # fmt: skip
"""Powers that need no logarithm."""
