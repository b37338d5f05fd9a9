"""Elementwise operators as C++ expressions: one table from operator id and kind of operand to text.

``expression("add", float32, float32, ["a", "b"])`` is ``"a + b"``. Operands are names or literals, so no template needs
parentheses around them. The half types are computed in float and rounded. ``supports`` tells the lowering what exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina_fx import DType
from lamina_fx.dtype import float32, float64

from .literals import HALVES, literal, memory_type, value_type
from .operator_tables import ALIASES, CONSTANT_EXPONENTS, OPERATORS

__all__ = ["convert", "expression", "supports"]

_KEEPS_HALF = frozenset(("where", "copy", "clone", "positive", "bitcast", "view_dtype"))
_SCANS = {"cumsum": "add", "cumprod": "mul", "cummax": "maximum", "cummin": "minimum", "logcumsumexp": "logaddexp"}
_OWN_LOOPS = frozenset(("scatter_add", "scatter_mul", "scatter_max", "scatter_min"))
"""What is no expression but has loops here."""


def supports(op: str, dtype: DType) -> bool:
    """Whether ``op`` on operands of ``dtype`` can be printed (``convert_element_type`` always can)."""
    op = _SCANS.get(op, op)
    op = ALIASES.get(op, op)
    if op in _OWN_LOOPS:
        return True
    return op == "convert_element_type" or _template(op, dtype) is not None


def _template(op: str, dtype: DType) -> str | None:
    kind = dtype.kind
    return OPERATORS[kind].get(op)


def expression(op: str, dtype: DType, operand: DType, args: Sequence[str], exponent: float | None = None) -> str:
    """The C++ expression of ``op`` on ``args``, which have type ``operand``; the result has type ``dtype``.

    ``exponent``: the second argument of ``pow`` when it is a constant.

    Raises:
        NotImplementedError: the backend has no code for this operator and type; see ``supports``.
    """
    name = ALIASES.get(op, op)
    if operand.name in HALVES and name not in _KEEPS_HALF:
        wide = [convert(a, operand, float32) for a in args]
        text = expression(op, float32 if dtype.name in HALVES else dtype, float32, wide, exponent)
        return convert(text, float32, dtype) if dtype.name in HALVES else text
    template = _template(name, operand)
    if name == "pow" and operand.kind == "float" and exponent in CONSTANT_EXPONENTS:
        template = CONSTANT_EXPONENTS[exponent]
    if template is None:
        raise NotImplementedError(f"the C++ backend has no code for {op} on {operand}")
    suffix = "f" if operand.name in ("float32", *HALVES) else ""
    names = {"f": suffix, "one": "1.0" + suffix, "zero": literal(0, operand), "type": value_type(dtype)}
    if operand.kind == "complex":
        names["complex_one"] = literal(1, operand)
    return template.format(*args, **names)


def _to_float(text: str, source: DType) -> str:
    return f"lm_from_{memory_type(source)}({text})"


def convert(text: str, source: DType, target: DType) -> str:
    """``text`` of type ``source`` as ``target``, as NumPy's ``astype`` does it."""
    if source is target:
        return text
    if source.name in HALVES:
        return convert(_to_float(text, source), float32, target) if target is not float32 else _to_float(text, source)
    if target.name in HALVES:
        single = text if source is float32 else convert(text, source, float32)
        return f"lm_to_{memory_type(target)}({single})"
    if source.kind == "complex":
        if target.kind == "complex":
            return f"lm_{memory_type(target)}({text})"
        return f"lm_ctrue({text})" if target.kind == "bool" else convert(f"{text}.re", _part(source), target)
    if target.kind == "complex":
        return f"{memory_type(target)}{{{convert(text, source, _part(target))}, 0}}"
    if target.kind == "bool":
        return f"{text} != 0"
    if source.kind == "float" and target.kind == "int":
        return _float_to_int(text, target)
    return f"({value_type(target)})({text})"


def _float_to_int(text: str, target: DType) -> str:
    if target.name == "uint64":
        return f"lm_to_u64({text})"
    if target.name in ("int64", "int32"):
        return f"({value_type(target)})({text})"
    wide = "i64" if target.name == "uint32" else "i32"
    return f"({value_type(target)})({wide})({text})"


def _part(dtype: DType) -> DType:
    return float32 if dtype.itemsize == 8 else float64
