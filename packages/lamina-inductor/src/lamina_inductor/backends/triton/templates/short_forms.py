"""Statements of an epilogue that shorter functions can stand for when its results are bfloat16.

An epilogue on a tile overlaps with nothing: the accurate functions cost a tenth of a product of 4096 x 4096. In
``1 + erf(x)`` and ``1 + tanh(x)`` the functions ``lm_erf_narrow`` and ``lm_tanh_narrow`` are as good, and the chain of
the exact gelu is one function (see ``prelude``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lamina_fx import DType, bfloat16, float32

from ....ir.kernel import Let, Stmt, Store

__all__ = ["Short", "short_forms"]

_HALF_ROOT = 0.7071067811865476


@dataclass(frozen=True, slots=True)
class Short:
    """The value is ``lm_<function>_narrow(argument)``; nothing is printed where ``function`` is empty."""

    function: str
    argument: str


def short_forms(statements: Sequence[Stmt], buffers: dict[str, DType]) -> dict[str, Short]:
    """Values by name that are printed in another way, or not at all. ``buffers``: types of the parameters."""
    if any(type(s) is Store and buffers[s.buffer] is not bfloat16 for s in statements):
        return {}
    uses = Counter(name for stmt in statements for name in _names(stmt))
    lets = {s.name: s for s in statements if type(s) is Let}
    found: dict[str, Short] = {}
    for stmt in lets.values():
        if stmt.op == "mul":
            found.update(_gelu(stmt, lets, uses))
    for stmt in lets.values():
        inner = _other(stmt, 1.0) if stmt.op == "add" else None
        function = lets.get(inner) if inner is not None else None
        if function is not None and function.op in ("erf", "tanh") and function.dtype is float32:
            argument = function.args[0]
            if uses[function.name] == 1 and function.name not in found and type(argument) is str:
                found[function.name] = Short(function.op, argument)
    return found


def _gelu(last: Let, lets: dict[str, Let], uses: Counter[str]) -> dict[str, Short]:
    """``x * ((erf(x * sqrt(1/2)) + 1) * 0.5)``, whose inner values nothing else reads."""
    for x, half in (last.args, last.args[::-1]):
        chain: list[str] = []
        name: Any = half
        for op, number in (("mul", 0.5), ("add", 1.0), ("erf", None), ("mul", _HALF_ROOT)):
            stmt = lets.get(name)
            if stmt is None or stmt.op != op or uses[stmt.name] != 1 or stmt.dtype is not float32:
                break
            chain.append(stmt.name)
            name = stmt.args[0] if number is None else _other(stmt, number)
        else:
            if name == x and type(x) is str:
                return {last.name: Short("gelu", x)} | {inner: Short("", x) for inner in chain}
    return {}


def _other(stmt: Let, number: float) -> str | None:
    """The name beside a constant."""
    a, b = stmt.args if len(stmt.args) == 2 else (None, None)
    if type(a) is str and b == number:
        return a
    return b if type(b) is str and a == number else None


def _names(stmt: Stmt) -> list[str]:
    """The values that a statement reads."""
    given = (*getattr(stmt, "args", ()), getattr(stmt, "value", None), getattr(stmt, "mask", None))
    return [a for a in given if type(a) is str]
