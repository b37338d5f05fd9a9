"""Elementwise operators as Triton expressions: one table from operator id and kind of operand to text.

``expression("add", float32, float32, ["v1", "v2"])`` is ``"v1 + v2"``. Operands are names or constants, so no template
needs parentheses around them. ``supports`` tells the lowering what exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina_fx import DType, bool_, float8_e4m3fn, float8_e5m2, float32, float64, int32

from ...lower.scans import SCANS
from .literals import has_type, language_type, literal
from .narrow import FAST, FASTER
from .operator_tables import CONSTANT_EXPONENTS, OPERATORS, WIDE_DIVISION

__all__ = ["convert", "expression", "has_atomic", "supports", "supports_in_order", "wants_types"]

_BYTES: dict[DType, str] = {float8_e4m3fn: "e4m3", float8_e5m2: "e5m2"}
"""Types whose values are bytes, and how the functions that make numbers of them and back are named: the device's own
conversions take the largest number of float8_e5m2 for infinity, and some devices have none."""


def supports(op: str, dtype: DType) -> bool:
    """Whether ``op`` on operands of ``dtype`` can be printed. ``scatter_add`` and such: stores that combine."""
    if op == "convolution":
        return dtype.name in ("float16", "bfloat16")
    if op.startswith("scatter_"):
        return has_atomic(op.removeprefix("scatter_"), dtype)
    if op == "sort":
        return has_type(dtype) and dtype not in _BYTES
    if op in SCANS:
        return has_type(dtype) and dtype not in _BYTES
    return has_type(dtype) and (op == "convert_element_type" or op in OPERATORS[dtype.kind])


def supports_in_order(op: str, dtype: DType) -> bool:
    """``supports`` where equal inputs must give equal bits: floats are not added up by atomics."""
    return supports(op, dtype) and not (op == "scatter_add" and dtype.kind == "float")


def has_atomic(mode: str, dtype: DType) -> bool:
    """Whether memory can be combined with: no products, and no extrema of floats, in which NaN would not win."""
    whole = dtype.kind == "int" and dtype.itemsize >= 4
    return (whole and mode in ("add", "max", "min")) or (mode == "add" and dtype.name in ("float32", "float64"))


def wants_types(op: str, operand: DType) -> bool:
    """Whether constants among the operands must be values with a type: functions that ask for it do."""
    template = OPERATORS[operand.kind].get(op, "")
    return "lm_" in template and (operand.kind == "int" or "lm_float" in template)


def expression(
    op: str, dtype: DType, operand: DType, args: Sequence[str], exponent: float | None = None, fast: bool | None = None
) -> str:
    """The expression of ``op`` on ``args``, which have type ``operand``; the result has type ``dtype``.

    ``exponent``: the second argument of ``pow`` when it is a constant. ``fast``: as ``narrow_names`` has it, or None.

    Raises:
        NotImplementedError: there is no code for this operator and type; see ``supports``.
    """
    if not supports(op, operand):
        raise NotImplementedError(f"the Triton backend has no code for {op} on {operand}")
    template = OPERATORS[operand.kind][op]
    if op == "pow" and exponent in CONSTANT_EXPONENTS:
        template = CONSTANT_EXPONENTS[exponent]
    if fast is not None and operand is float32:
        template = FASTER.get(op, FAST.get(op, template)) if fast else FAST.get(op, template)
    if operand is float64:
        template = (
            WIDE_DIVISION.get(op, template).replace("tl.div_rn(", "lm_divide(").replace("tl.sqrt_rn(", "tl.sqrt(")
        )
    names = {
        "type": language_type(dtype),
        "own": language_type(operand),
        "bits": str(operand.itemsize * 8),
        "one": literal(1, operand),
        "zero": literal(0, operand),
        "ones": literal(-1, operand),
    }
    return template.format(*args, **names)


def convert(text: str, source: DType, target: DType) -> str:
    """``text``, a name of type ``source``, as ``target``, as C casts."""
    if source is target:
        return text
    if source in _BYTES:
        return convert(f"lm_from_{_BYTES[source]}({text})", float32, target)
    if target in _BYTES:
        return f"lm_to_{_BYTES[target]}({convert(text, source, float32)})"
    if target is bool_:
        return f"{text} != 0"
    if source.kind == "float" and target.kind == "int" and target.itemsize < 4:
        return f"{text}.to({language_type(int32)}).to({language_type(target)})"
    return f"{text}.to({language_type(target)})"
