"""Fake tensors: everything a tensor has but data.

>>> from lamina_fx import TensorSpec, float32
>>> (fake_tensor(TensorSpec((2, 3), float32)) + 1).shape
lamina.Size([2, 3])
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lamina_fx import Spec, TensorSpec
from lamina_prims import Operator
from lamina_prims.modes import MODES

from ._C import TensorBase
from .storage import FakeStorage, tensor_without_data
from .views import mark_view

__all__ = ["create_fake", "fake_creation", "fake_tensor", "run_fake"]


def fake_tensor(spec: TensorSpec, requires_grad: bool = False, *, offset: int = 0, room: int | None = None) -> Any:
    """A tensor of this spec without data. Sizes may be symbolic.

    ``offset``: elements of its storage before its first; ``room``: elements of the storage (None: no more than needed).
    """
    tensor = tensor_without_data(FakeStorage(spec, offset, room), spec)
    if requires_grad:
        tensor._requires_grad = True
    return tensor


@contextmanager
def fake_creation() -> Iterator[None]:
    """While the block runs, operators called without tensors (``zeros(2, 3)``) give fake tensors."""
    saved, MODES.creator = MODES.creator, create_fake
    try:
        yield
    finally:
        MODES.creator = saved


def create_fake(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call without tensors that gives fakes."""
    return _from_spec(op.infer(args, kwargs))


def run_fake(
    op: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    spec: Spec,
    specs: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """The fake results of a call."""
    parent = args[0] if args else None
    if op.alias is not False and isinstance(parent, TensorBase) and op.views(specs, named):
        return alias_without_data(op, parent, args[1:], kwargs, spec)
    return _from_spec(spec)


def alias_without_data(op: Operator, parent: Any, rest: tuple[Any, ...], kwargs: dict[str, Any], spec: Any) -> Any:
    """The views that a view operator makes of a tensor without data."""
    if isinstance(spec, (tuple, list)):
        views = []
        for index, part in enumerate(spec):
            view = tensor_without_data(parent.storage, part)
            mark_view(parent, view, (op, rest, kwargs, index))
            views.append(view)
        return tuple(views)
    view = tensor_without_data(parent.storage, spec)
    mark_view(parent, view, (op, rest, kwargs, None))
    return view


def _from_spec(spec: Any) -> Any:
    if isinstance(spec, TensorSpec):
        return tensor_without_data(FakeStorage(spec), spec)
    if isinstance(spec, (tuple, list)):
        return tuple(_from_spec(s) for s in spec)
    return spec
