"""Values that only live on as half-precision numbers: their functions may be computed faster than float32 deserves.

``narrow_names(body)``: float32 values all of whose uses are conversions to a half type, or arithmetic whose results
are such values; True for those that are only added to a number of the size of 1. ``FAST`` and ``FASTER`` have the
templates for them: division and root without correct rounding (2 ULP of float32), exponentials whose subnormal results
are 0, error function and hyperbolic tangent by short formulas (1.5e-7 absolute and 1e-5 relative: below a tenth of a
ULP of bfloat16, half a ULP of float16).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina_fx import float32

from ...ir.kernel import Accumulate, Let, Loop, Stmt, walk

__all__ = ["FAST", "FASTER", "narrow_names", "summed_names"]

FAST: dict[str, str] = {
    "div": "{0} / {1}", "reciprocal": "{one} / {0}", "sqrt": "tl.sqrt({0})", "erf": "lm_half_erf({0})",
    "tanh": "lm_half_tanh({0})", "exp": "tl.exp2({0} * 1.4426950408889634)",
    "sigmoid": "libdevice.fast_dividef({one}, {one} + tl.exp2({0} * (-1.4426950408889634)))",
    "silu": "libdevice.fast_dividef({0}, {one} + tl.exp2({0} * (-1.4426950408889634)))",
}  # fmt: skip

FASTER: dict[str, str] = {"erf": "lm_fast_erf({0})", "tanh": "lm_fast_tanh({0})"}
"""Where a number of the size of 1 is added to the result, small results need not be right relative to themselves."""

_THROUGH = frozenset(("add", "sub", "mul", "div", "neg", "where", "maximum", "minimum", "relu", "square", "abs", "fma"))


def narrow_names(body: tuple[Stmt, ...]) -> dict[str, bool]:
    """See the module."""
    uses: dict[str, list[Any]] = {}
    values: dict[str, Let] = {}
    for stmt in walk(body):
        if type(stmt) is Let:
            values[stmt.name] = stmt
        for name in _names(stmt):
            uses.setdefault(name, []).append(stmt)
    known: dict[str, bool] = {}

    def narrow(name: str) -> bool:
        if name not in known:
            known[name] = False
            known[name] = bool(uses.get(name)) and all(_ends(use) for use in uses[name])
        return known[name]

    def _ends(use: Any) -> bool:
        if type(use) is not Let:
            return False
        if use.op == "convert_element_type":
            return use.dtype.kind == "float" and use.dtype.itemsize == 2
        return use.op in _THROUGH and use.dtype is float32 and narrow(use.name)

    # from the end, so that the recursion is shallow
    names = [name for name in reversed(values) if values[name].dtype is float32 and narrow(name)]
    return {name: all(_adds_one(use) for use in uses[name]) for name in names}


def summed_names(body: tuple[Stmt, ...]) -> frozenset[str]:
    """float32 values that are only added up: two units in the last place of one are less than what a sum rounds."""
    uses: dict[str, list[Any]] = {}
    kinds: dict[str, str] = {}
    for stmt in walk(body):
        if type(stmt) is Loop:
            kinds |= {a.name: a.kind for a in stmt.accumulators}
        for name in _names(stmt):
            uses.setdefault(name, []).append(stmt)
    sums = {n: all(type(s) is Accumulate and kinds[s.accumulator] == "sum" for s in found) for n, found in uses.items()}
    return frozenset([name for name, only in sums.items() if only])


def _adds_one(use: Any) -> bool:
    numbers = [a for a in use.args if type(a) in (int, float)]
    return use.op in ("add", "sub") and bool(numbers) and abs(numbers[0]) >= 0.5


def _names(stmt: Any) -> Iterator[str]:
    """The values that a statement reads, by any of its parts."""
    if type(stmt) is Let:
        yield from [a for a in stmt.args if type(a) is str]
        return
    for field in ("value", "mask", "index", "expr"):
        item = getattr(stmt, field, None)
        if type(item) is str:
            yield item
        elif hasattr(item, "free_symbols"):
            yield from [s.name for s in item.free_symbols]
