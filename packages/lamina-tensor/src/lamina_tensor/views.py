"""Views: how a tensor follows from the root of its storage.

Each view carries a chain of steps ``(operator, other arguments, keywords, index among several results)``. The chain
gives the value of a traced view again after a write (``replay``), tells how a write to a view changes the root
(``scatter``), and gives a view's gradient history again after its base was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import TensorSpec
from lamina_prims import Operator, operator
from lamina_prims.operators.striding import extent

from ._C import TensorBase, is_grad_enabled

__all__ = [
    "ViewStep",
    "autograd_steps",
    "has_strided",
    "mark_view",
    "memory_of",
    "offset_of",
    "replay",
    "scatter",
    "steps_from",
]

ViewStep = tuple[Operator, tuple[Any, ...], dict[str, Any], Any]


def mark_view(parent: TensorBase, view: TensorBase, step: ViewStep) -> None:
    """Note that ``view`` follows from ``parent``, whose storage it shares, by this step."""
    chain = parent._chain
    view._chain = (step,) if chain is None else (*chain, step)
    base = parent._base
    view._base = parent if base is None else base
    view._is_view_flag = True
    if parent._inference is not view._inference:  # it is the memory that is made in inference mode, or is not
        view._inference = parent._inference
    if not is_grad_enabled() or (base is not None and parent._no_grad_view):
        view._no_grad_view = True
    view._grad_version = view._version


def autograd_steps(view: TensorBase) -> tuple[ViewStep, ...]:
    """The steps from ``view._base`` to ``view``."""
    skip = view._base._chain
    return view._chain[len(skip) :] if skip else view._chain


def replay(base: Any, steps: Sequence[ViewStep]) -> Any:
    """Take the steps from ``base``."""
    for op, args, kwargs, index in steps:
        base = op(base, *args, **kwargs)
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
    op, args, kwargs, index = step
    if op.scatter_rule is not None and index is None:
        rest = op.schema.bind((below, *args), kwargs)[1:]
        return op.scatter_rule(below, value, *rest)
    if op.is_primitive:
        raise NotImplementedError(
            f"{op.id} does not say how a write to its result changes its input; clone() the view first"
        )
    given = op.schema.gather((below, *args), op.variadic) if op.variadic else (below, *args)
    view = op.function(*given, **kwargs)  # a composite: the steps that its body takes
    if index is not None:
        view = view[index]
    inner = view._chain[len(below._chain or ()) :] if view._chain else ()
    return scatter(below, inner, value) if inner else value


def offset_of(tensor: Any) -> Any:
    """Elements between the start of the storage and the tensor's first."""
    if tensor._array is not None:
        return tensor._offset
    storage = tensor.storage
    return _moved(storage.spec, tensor._chain or (), storage.offset)


def memory_of(tensor: Any) -> tuple[Any, Any]:
    """The tensor's offset into its storage, and how many elements of its dtype that has."""
    storage = tensor.storage
    if tensor._array is not None:
        return tensor._offset, storage.nbytes // tensor.dtype.itemsize
    spec = storage.spec
    room = storage.offset + extent(spec.shape, spec.strides) if storage.room is None else storage.room
    return offset_of(tensor), room * spec.dtype.itemsize // tensor.dtype.itemsize


def _moved(spec: TensorSpec, steps: Sequence[ViewStep], offset: Any) -> Any:
    """Where a view begins whose first tensor (of this spec) begins at ``offset``. Steps are primitives."""
    for op, args, kwargs, index in steps:
        values = op.schema.bind((None, *args), kwargs)[1:]
        if op.id == "slice":
            dim, start = values[0] % max(spec.ndim, 1), values[1] or 0
            start = start + spec.shape[dim] if start < 0 else start
            start = 0 if start < 0 else spec.shape[dim] if start > spec.shape[dim] else start
            offset = offset + start * spec.strides[dim]
        elif op.id == "as_strided":
            offset = offset + (values[2] or 0)
        after: Any = op.infer((spec, *args), kwargs)
        after = after if index is None else after[index]
        if after.dtype.itemsize != spec.dtype.itemsize:
            offset = offset * spec.dtype.itemsize // after.dtype.itemsize
        spec = after
    return offset


def steps_from(base_spec: TensorSpec, base_offset: Any, view: Any, steps: Sequence[ViewStep]) -> Sequence[ViewStep]:
    """The steps that lead from a tensor to ``view``; where ``as_strided`` is one of them, that alone.

    It reaches all of the memory, also what the steps before it leave out. (As given where they change the dtype.)
    """
    if not has_strided(steps) or view.dtype is not base_spec.dtype:
        return steps
    spec = view.spec
    return ((operator("as_strided"), (spec.shape, spec.strides, offset_of(view) - base_offset), {}, None),)


def has_strided(steps: Sequence[ViewStep]) -> bool:
    """Is ``as_strided`` among the steps."""
    return any(step[0].id == "as_strided" for step in steps)
