"""What operator ids mean on ordinary Python values: the resolver when none is given.

Enough for graphs that were traced by hand from functions with Python's operators; ``wrap`` adds functions.

>>> python_operator("floor_divide")(7, 2)
3
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["WRAPPED", "python_operator"]

WRAPPED: dict[str, Callable[..., Any]] = {}
"""Functions that ``wrap`` has given ids, by id."""

_TABLE: dict[str, Callable[..., Any]] = {
    "getitem": operator.getitem, "getattr": getattr,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "matmul": operator.matmul,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift, "bitwise_right_shift": operator.rshift,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "neg": operator.neg, "positive": operator.pos, "abs": operator.abs, "bitwise_not": operator.invert,
}  # fmt: skip


def python_operator(id: str) -> Callable[..., Any]:
    """The function that Python has for this id, or that ``wrap`` registered under it.

    Raises:
        KeyError: neither; says how to give a resolver.
    """
    found = _TABLE.get(id) or WRAPPED.get(id)
    if found is None:
        raise KeyError(f"no Python operator has the id {id!r}; give a resolver, such as lamina_prims.operator")
    return found
