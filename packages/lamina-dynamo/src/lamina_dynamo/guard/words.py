"""Why a guard fails, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..source import FrameScope
from .kinds import GuardKind
from .values import short

if TYPE_CHECKING:
    from .data import Guard

__all__ = ["describe"]


def describe(guard: Guard, scope: FrameScope) -> str:
    """What is there instead of what `guard` expects."""
    values: list[object] = []
    for source in guard.sources:
        try:
            values.append(source.fetch(scope))
        except Exception as error:  # noqa: BLE001  (reading may run user code; the failure is the answer)
            return f"{source} can not be read: {type(error).__name__}: {error}"
    kind = guard.kind
    if kind is GuardKind.NAME_ABSENT:
        return f"it is {short(scope.globals.get(str(guard.expected)))}"
    if kind is GuardKind.AMBIENT:
        return f"it is {short(guard.expected[0].read())}"  # type: ignore[index]
    if kind is GuardKind.TYPE:
        return f"it is {type(values[0]).__qualname__}"
    if kind is GuardKind.LENGTH:
        return f"it is {len(values[0])}"  # type: ignore[arg-type]
    if kind is GuardKind.DICT_KEYS:
        return f"the keys are {short(list(values[0]))}"  # type: ignore[call-overload]
    if kind in (GuardKind.TENSOR, GuardKind.ARRAY):
        return f"it is {describe_array(values[0])}"
    if kind in (GuardKind.DICT_HAS, GuardKind.ATTR):
        return "it is not so"
    if kind in (GuardKind.SAME, GuardKind.DISTINCT, GuardKind.NO_OVERLAP, GuardKind.OVERLAP):
        return "the objects are related otherwise"
    return "it is " + ", ".join(map(short, values))


def describe_array(value: object) -> str:
    """dtype, shape and flags of an array of any kind."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return f"{type(value).__qualname__}: {short(value)}"
    text = f"{str(dtype).rpartition('.')[2]}[{', '.join(map(str, shape))}]"
    if getattr(value, "requires_grad", False):
        text += " requires_grad"
    return text
