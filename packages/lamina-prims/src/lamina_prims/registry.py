"""The table of all operators, by id and by front-end name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .operator import Operator

__all__ = ["composite", "operator", "operators", "primitive", "register"]

_OPERATORS: dict[str, Operator] = {}


def register(op: Operator) -> Operator:
    """Add an operator.

    Raises:
        ValueError: the id is taken.
    """
    if op.id in _OPERATORS:
        raise ValueError(f"an operator with the id {op.id!r} exists already (in {_OPERATORS[op.id].__module__})")
    _OPERATORS[op.id] = op
    return op


def operator(id: str) -> Operator:
    """The operator of this id.

    Raises:
        KeyError: there is none; the message names the nearest ids.
    """
    try:
        return _OPERATORS[id]
    except KeyError:
        import difflib

        near = ", ".join(difflib.get_close_matches(id, _OPERATORS, 3)) or "none is near"
        raise KeyError(f"no operator {id!r} ({near})") from None


def operators() -> dict[str, Operator]:
    """All operators by id."""
    return dict(_OPERATORS)


def primitive(
    *,
    names: Iterable[str] = (),
    meta: Any,
    reference: Any,
    id: str | None = None,
    **facets: Any,
) -> Callable[[Callable[..., Any]], Operator]:
    """Declare a primitive. ``meta`` may be an elementwise rule, which also wraps ``reference``."""

    def declare(function: Callable[..., Any]) -> Operator:
        rule = meta if hasattr(meta, "wrap_reference") else None
        ref = rule.wrap_reference(reference) if rule is not None else reference
        return register(
            Operator(
                id or function.__name__,
                function,
                primitive=True,
                names=tuple(names),
                meta=meta,
                reference=ref,
                elementwise=rule,
                **facets,
            )
        )

    return declare


def composite(
    *, names: Iterable[str] = (), id: str | None = None, **facets: Any
) -> Callable[[Callable[..., Any]], Operator]:
    """Declare a composite: the function's body, written with other operators, is its decomposition."""

    def declare(function: Callable[..., Any]) -> Operator:
        return register(
            Operator(id or function.__name__, function, primitive=False, names=tuple(names), **facets)
        )

    return declare
