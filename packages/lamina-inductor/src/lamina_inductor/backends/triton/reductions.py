"""Accumulators as Triton text: start values, one step, and the reduction of a tile along its last dimension."""

from __future__ import annotations

from lamina_fx import DType, bool_

from ...ir.kernel import Accumulator
from ...schedule.blocks import identity_of
from .literals import language_type, literal

__all__ = ["LAST_INDEX", "combine_text", "reduce_text", "start_text"]

LAST_INDEX = (1 << 63) - 1
"""The position beside the start value of an argmax: every real one is smaller."""


def start_text(accumulator: Accumulator) -> str:
    """The value that changes no result."""
    value = identity_of(accumulator.kind.removeprefix("arg"), accumulator.dtype)
    if accumulator.kind.startswith("arg") and accumulator.dtype is bool_:
        return str(int(value))
    return literal(value, accumulator.dtype)


def combine_text(kind: str, dtype: DType, a: str, b: str) -> str:
    """``a`` and ``b`` reduced to one."""
    if kind == "sum":
        return f"{a} + {b}"
    if kind == "prod":
        return f"{a} * {b}"
    if kind == "xor":
        return f"{a} ^ {b}"
    if kind == "any" or (kind == "max" and dtype.kind == "bool"):
        return f"{a} | {b}"
    if kind == "all" or (kind == "min" and dtype.kind == "bool"):
        return f"{a} & {b}"
    return f"lm_{kind}imum({a}, {b})"


def reduce_text(accumulator: Accumulator, tile: str) -> str:
    """``tile`` reduced along dimension 1, which stays with size 1. Of floats, a NaN is the largest and smallest."""
    kind, dtype = accumulator.kind, accumulator.dtype
    if dtype.kind == "bool":
        which = "max" if kind in ("any", "max") else "min" if kind in ("all", "min") else "xor_sum"
        return f"tl.{which}({tile}.to(tl.int32), 1)[:, None] != 0"
    if kind == "prod":
        text = f"tl.reduce({tile}, 1, lm_product)"
    elif kind == "xor":
        text = f"tl.xor_sum({tile}, 1)"
    elif kind == "sum" or dtype.kind == "int":
        text = f"tl.{kind}({tile}, 1)"
    else:
        text = f"tl.reduce({tile}, 1, lm_{kind}imum)"
    cast = f".to({language_type(dtype)})" if dtype.kind == "int" and dtype.itemsize < 4 else ""
    return f"{text}[:, None]{cast}"
