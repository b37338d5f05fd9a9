"""Views: how a tensor follows from the root of its storage.

Each view carries a chain of steps ``(operator, other arguments, keywords, index among several results)``. The chain
gives the value of a traced view again after a write (``replay``), tells how a write to a view changes the root
(``scatter``), and gives a view's gradient history again after its base was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_prims import Operator

from ._C import TensorBase, is_grad_enabled

__all__ = ["ViewStep", "autograd_steps", "mark_view", "replay", "scatter"]

ViewStep = tuple[Operator, tuple[Any, ...], dict[str, Any], Any]


def mark_view(parent: TensorBase, view: TensorBase, step: ViewStep) -> None:
    """Note that ``view`` follows from ``parent``, whose storage it shares, by this step."""
    chain = parent._chain
    view._chain = (step,) if chain is None else (*chain, step)
    base = parent._base
    view._base = parent if base is None else base
    view._is_view_flag = True
    if not is_grad_enabled() or (base is not None and parent._no_grad_view):
        view._no_grad_view = True
    view._grad_version = view._version


def autograd_steps(view: TensorBase) -> tuple[ViewStep, ...]:
    """The steps from ``view._base`` to ``view``."""
    skip = view._base._chain
    return view._chain[len(skip) :] if skip else view._chain


def replay(base: Any, steps: Sequence[ViewStep]) -> Any:
    """Take the steps from ``base``."""
    for operator, args, kwargs, index in steps:
        base = operator(base, *args, **kwargs)
        if index is not None:
            base = base[index]
    return base


def scatter(base: Any, steps: Sequence[ViewStep], value: Any) -> Any:
    """``base`` with the elements that the view shows replaced by ``value``.

    Raises:
        NotImplementedError: a step's operator does not say how to write through it.
    """
    seen = [base]
    for step in steps[:-1]:
        seen.append(replay(seen[-1], (step,)))
    for step, below in zip(reversed(steps), reversed(seen)):
        value = _scatter_step(step, below, value)
    return value


def _scatter_step(step: ViewStep, below: Any, value: Any) -> Any:
    operator, args, kwargs, index = step
    if operator.scatter_rule is not None and index is None:
        rest = operator.schema.bind((below, *args), kwargs)[1:]
        return operator.scatter_rule(below, value, *rest)
    if operator.is_primitive:
        raise NotImplementedError(
            f"{operator.id} does not say how a write to its result changes its input; clone() the view first"
        )
    given = operator.schema.gather((below, *args), operator.variadic) if operator.variadic else (below, *args)
    view = operator.function(*given, **kwargs)  # a composite: the steps that its body takes
    if index is not None:
        view = view[index]
    inner = view._chain[len(below._chain or ()) :] if view._chain else ()
    return scatter(below, inner, value) if inner else value
