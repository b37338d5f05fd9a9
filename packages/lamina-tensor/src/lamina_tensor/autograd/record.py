"""Recording: make the backward node of an operator's call and hang the results on it."""

from __future__ import annotations

from typing import Any

from lamina_prims import Operator

from .._C import TensorBase, collect
from ..plan import Plan, plan_of
from .node import OperatorNode, edge_of

__all__ = ["INFERENCE", "record", "set_history"]

INFERENCE = (
    "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor and "
    "use it in autograd."
)


def record(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any] | None, out: Any) -> None:
    """Note that ``out`` came from ``op`` called with these arguments."""
    plan = plan_of(op)
    if not plan.differentiable:
        return
    if kwargs:
        args = plan.bind(args, kwargs)
    node = make_node(plan, args)
    if plan.saves_out:
        node.save_out((out,) if isinstance(out, TensorBase) else out)
    for item in (out,) if isinstance(out, TensorBase) else out:
        if isinstance(item, TensorBase) and item._base is not None:
            _forget_inner_base(item, args)
    set_history(node, out)


def _forget_inner_base(out: Any, args: tuple[Any, ...]) -> None:
    """A composite with a rule of its own may end in a view of what it made: for autograd that is no view."""
    storage = out.storage
    for value in args:
        for item in value if type(value) in (tuple, list) else (value,):
            if isinstance(item, TensorBase) and item.storage is storage:
                return
    out._base = None
    out._chain = None
    out._is_view_flag = False
    out._no_grad_view = False


def make_node(plan: Plan, args: tuple[Any, ...]) -> OperatorNode:
    """The node of one call, with what its rule wants saved."""
    saved = plan.saved
    if plan.crossed and isinstance(args[0], TensorBase) and isinstance(args[1], TensorBase):
        saved = (args[1]._requires_grad, args[0]._requires_grad)
    elif plan.crossed:
        saved = (False, False)
    if len(args) < len(plan.kinds):
        args = (*args, *plan.defaults[len(args) :])
    found = collect(args, plan.kinds, saved)
    if found is None:
        found = _collect(plan, args, saved)
    node = OperatorNode(plan, *found)
    if plan.wants_specs:
        node.specs = _specs(plan, args)
    return node


def _collect(plan: Plan, args: tuple[Any, ...], saved: tuple[bool, ...]) -> tuple[list[Any], ...]:
    """Edges, shapes and dtypes of the inputs, saved values and their versions; for all cases."""
    edges: list[Any] = []
    metas: list[Any] = []
    values: list[Any] = []
    versions: list[Any] = []
    for index, (value, kind) in enumerate(zip(args, plan.kinds)):
        version = None
        if kind == 1 and isinstance(value, TensorBase):
            if value._requires_grad:
                edges.append(edge_of(value))
                metas.append((value._sizes, value.dtype))
            else:
                edges.append(None)
                metas.append(None)
            if not saved[index]:
                value = None
            else:
                version = value._version
                if value._inference:
                    raise RuntimeError(INFERENCE)
        elif kind == 1:
            edges.append(None)
            metas.append(None)
        elif kind == 2:
            value, version = _save_list(value, saved[index], edges, metas)
        values.append(value)
        versions.append(version)
    return edges, metas, values, versions


def _save_list(items: Any, save: bool, edges: list[Any], metas: list[Any]) -> tuple[Any, Any]:
    if items is None:
        return None, None
    if isinstance(items, TensorBase):
        items = (items,)
    versions: list[Any] = []
    for item in items:
        wanted = isinstance(item, TensorBase) and item._requires_grad
        edges.append(edge_of(item) if wanted else None)
        metas.append((item._sizes, item.dtype) if wanted else None)
        versions.append(item._version if isinstance(item, TensorBase) else None)
    return (list(items), versions) if save else ([None] * len(items), None)


def _specs(plan: Plan, args: tuple[Any, ...]) -> dict[int, Any]:
    specs: dict[int, Any] = {}
    for index, (wanted, value) in enumerate(zip(plan.spec_wanted, args)):
        if wanted:
            if type(value) in (list, tuple):
                specs[index] = [getattr(v, "spec", v) for v in value]
            else:
                specs[index] = getattr(value, "spec", value)
    for index in range(len(args), len(plan.spec_wanted)):
        specs[index] = None
    return specs


def set_history(node: Any, out: Any) -> None:
    """Let the differentiable results among ``out`` come from ``node``."""
    if isinstance(out, TensorBase):
        if out.dtype.kind in ("float", "complex"):
            out._grad_fn = node
        return
    for index, item in enumerate(out):
        if isinstance(item, TensorBase) and item.dtype.kind in ("float", "complex"):
            item._grad_fn = node
            item._output_nr = index
