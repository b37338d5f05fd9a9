"""Specs of a composite's result, by running its body on the specs themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx import Spec

from .modes import MODES, Mode

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["infer_composite"]


class _Infer(Mode):
    """Every operator called in the body infers; this also catches calls that have no tensor argument."""

    stays = True

    def handle(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec:
        return operator.infer(args, kwargs)


_INFER = _Infer()


def infer_composite(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Spec:
    """Run ``operator``'s body on specs; returns the spec of what it returns."""
    stack = MODES.stack
    if stack and stack[-1] is _INFER:
        result = operator.function(*args, **kwargs)
    else:
        MODES.stack = (*stack, _INFER)
        try:
            result = operator.function(*args, **kwargs)
        finally:
            MODES.stack = stack
    return tuple(result) if type(result) is list else result
