"""The table of all operators, by id and by front-end name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lamina_fx import Proxy
from lamina_fx.expect import expect

from .operator import Operator

__all__ = [
    "both",
    "by_name",
    "composite",
    "method",
    "names",
    "operator",
    "operators",
    "ops",
    "primitive",
    "register",
    "resolve",
]

_OPERATORS: dict[str, Operator] = {}
_BY_NAME: dict[str, tuple[Operator, ...]] = {}
_RESOLVED: dict[tuple[Any, ...], Operator] = {}


def both(*names: str) -> tuple[str, ...]:
    """Spellings as a function and as a method.

    >>> both("sin")
    ('sin', 'Tensor.sin')
    """
    return tuple(spelling for name in names for spelling in (name, f"Tensor.{name}"))


def register(op: Operator) -> Operator:
    """Add an operator.

    Raises:
        ValueError: the id is taken.
    """
    if op.id in _OPERATORS:
        raise ValueError(f"an operator with the id {op.id!r} exists already (in {_OPERATORS[op.id].__module__})")
    _OPERATORS[op.id] = op
    for name in op.names:
        _BY_NAME[name] = (*_BY_NAME.get(name, ()), op)
        _RESOLVED.clear()
    return op


def operator(id: str) -> Operator:
    """The operator of this id.

    Raises:
        KeyError: there is none; the message names the nearest ids.
    """
    try:
        return _OPERATORS[id]
    except KeyError:
        expect("operator", id, str, "an operator's id, such as 'add'")
        import difflib

        near = ", ".join(difflib.get_close_matches(id, _OPERATORS, 3)) or "none is near"
        raise KeyError(f"no operator {id!r} ({near})") from None


def operators() -> dict[str, Operator]:
    """All operators by id."""
    return dict(_OPERATORS)


class Namespace:
    """Operators as attributes, found at their first use: bodies and rules need no imports of one another.

    >>> ops.add is operator("add")
    True
    """

    def __getattr__(self, id: str) -> Operator:
        try:
            op = operator(id)
        except KeyError as error:
            raise AttributeError(str(error)) from None
        setattr(self, id, op)
        return op


ops: Any = Namespace()


def names() -> dict[str, tuple[Operator, ...]]:
    """All front-end spellings, each with its overloads in the order in which they are tried."""
    return dict(_BY_NAME)


def by_name(name: str) -> tuple[Operator, ...]:
    """The operators with this front-end spelling, such as ``"nn.functional.softmax"``; empty when there is none."""
    return _BY_NAME.get(name, ())


def method(name: str) -> tuple[Operator, ...]:
    """The operators of ``Tensor``'s method ``name``; empty when there is none."""
    return _BY_NAME.get(f"Tensor.{name}", ())


def resolve(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operator:
    """The overload of ``name`` that these arguments mean: the first that accepts them.

    Raises:
        KeyError: nothing has this name.
        TypeError: no overload takes these arguments; the message lists what each takes.
    """
    key = (name, *map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else (name, *map(type, args))
    found = _RESOLVED.get(key)
    if found is None:
        found = _choose(name, args, kwargs)
        if Proxy not in key:  # what a proxy stands for is not in its type
            _RESOLVED[key] = found
    return found


def _choose(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operator:
    overloads = _BY_NAME.get(name)
    if overloads is None:
        expect("resolve", name, str, "an operator's name, such as 'add' or 'Tensor.add'")
        raise KeyError(f"no operator is called {name!r}")
    if len(overloads) == 1:
        return overloads[0]
    for op in overloads:
        given = op.schema.gather(args, op.variadic) if op.variadic is not None else args
        if op.schema.accepts(given, kwargs):
            return op
    shown = ", ".join([_kind(a) for a in args] + [f"{k}={_kind(v)}" for k, v in kwargs.items()])
    listed = "; ".join(str(op.schema) for op in overloads)
    raise TypeError(f"{name.removeprefix('Tensor.')}({shown}) fits none of: {listed}")


operator.method = method  # type: ignore[attr-defined]  # a resolver of lamina_fx.GraphBuilder has these two
operator.resolve = resolve  # type: ignore[attr-defined]


def _kind(value: Any) -> str:
    return "Tensor" if hasattr(value, "shape") and hasattr(value, "dtype") else type(value).__name__


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
        return register(Operator(id or function.__name__, function, primitive=False, names=tuple(names), **facets))

    return declare
