"""Dispatch: how an operator called on tensors is carried out.

The kind of the storages decides: NumPy arrays run a kernel (or the operator's reference), fakes infer a spec, traced
tensors write a node. Composites that no kernel is given for run their body on tensors. If a gradient is wanted the
call is recorded. Everything a fast path in C cannot do comes through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_prims import Operator, operator
from lamina_prims.arrays import as_device
from lamina_prims.index_errors import raise_as_called
from lamina_prims.modes import MODES
from lamina_prims.registry import resolve

from ._C import (
    FastOp,
    TensorBase,
    alias,
    is_grad_enabled,
    restride,
    scan,
    set_grad_enabled,
    shares,
    to_arrays,
    wrap,
    wrap_view,
)
from .autograd.record import record
from .fake import run_fake
from .kernels import KERNELS, UFUNCS, VIEWS, dtype_mask
from .layouts import in_inferred_layout
from .plan import Plan, plan_of
from .storage import FakeStorage, TracedStorage
from .traced_sizes import tracer_for_sizes
from .views import mark_view

__all__ = ["FAST", "create", "dispatch", "dispatch_fast", "make_fast", "slow_call", "slow_resolved", "specs_of"]

_TENSOR, _NO_DATA, _GRAD, _DEVICE, _MIXED, _FLOAT8 = 1, 2, 4, 8, 16, 32


FAST: dict[Operator, Any] = {}
"""For operators with a fast path: the ``FastOp`` that takes it."""


def make_fast(op: Operator, name: str, spelling: str | None = None) -> Any:
    """The ``FastOp`` of an operator: with a ufunc, a kernel or a view if there is one for it."""
    rule = op.vjp_rule is not None
    ufunc = UFUNCS.get(op.id)
    if ufunc is not None and rule:
        mask = dtype_mask(ufunc.kinds)
        return FastOp(op, name, op.__doc__, ufunc.function, ufunc.arity, mask, ufunc.bool_result, spelling)
    if op.id in VIEWS and op.alias is not False:
        return FastOp(op, name, op.__doc__, VIEWS[op.id], spelling=spelling, view=True, differentiable=rule)
    if op.id in KERNELS and op.alias is False:
        return FastOp(op, name, op.__doc__, KERNELS[op.id], spelling=spelling, differentiable=rule)
    return FastOp(op, name, op.__doc__, spelling=spelling)


def dispatch_fast(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As ``dispatch``, for a call from Python: by the fast path where the operator has one."""
    entry = FAST.get(op)
    if entry is None:
        return dispatch(op, args, kwargs)
    return entry(*args, **kwargs) if kwargs else entry(*args)


_OPERANDS = (TensorBase, int, float, complex, np.ndarray, np.generic)


def slow_call(entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a ``FastOp`` from the namespace that the fast path declined."""
    op = entry.operator
    spelling = entry.spelling
    out = kwargs.pop("out", None)
    if spelling is not None:
        if spelling.startswith("Tensor.__") and len(args) == 2 and not _is_operand(args[1]):
            return NotImplemented
        op = resolve(spelling, args, kwargs)
    result = slow_resolved(op, args, kwargs)
    if out is None:
        return result
    from .inplace import write_out

    return write_out(result, out)


def _is_operand(value: Any) -> bool:
    return isinstance(value, _OPERANDS) or hasattr(value, "__lamina_operator__") or hasattr(value, "expr")


def slow_resolved(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of the operator that was meant."""
    if kwargs and ("axis" in kwargs or "keepdims" in kwargs):
        kwargs = op.schema.spelled(kwargs)
    if op.variadic is not None:
        args = op.schema.gather(args, op.variadic)
    if MODES.stack:
        return MODES.handle(op, args, kwargs)
    return dispatch(op, args, kwargs)


def dispatch(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out a call among whose arguments tensors may be."""
    bits = scan(args, kwargs)
    if not bits:
        return _without_tensors(op, args, kwargs)
    if op.id == "copy_to":
        return _copy_to(*args, **kwargs)
    if bits & _MIXED and bits & _DEVICE and not bits & _NO_DATA:
        from .cuda.running import to_one_device

        moved = to_one_device(op, args, kwargs)
        if moved is not None:
            return dispatch(op, *moved)
    plan = plan_of(op)
    grad = bits & _GRAD and is_grad_enabled()
    if not op.is_primitive and (
        (bits & _NO_DATA and not plan.differentiable) or plan.runs_body or (grad and not plan.differentiable)
    ):
        if not plan.differentiable:
            return _run_body(op, args, kwargs)
        if not (bits & _NO_DATA and op.alias is False):
            return _run_body_recorded(op, args, kwargs, grad)
    if bits & _NO_DATA or (MODES.creator is not None and tracer_for_sizes(args, kwargs) is not None):
        out = _run_without_data(op, args, kwargs)
    else:
        out = _run_arrays(plan, args, kwargs, bits)
    if grad and plan.differentiable:
        record(op, args, kwargs, out)
    return out


def _copy_to(input: Any, value: Any) -> None:
    """The write-back of a graph: no history, but the version counts."""
    from .inplace import copy_into

    before = set_grad_enabled(False)
    try:
        copy_into(input, value)
    finally:
        set_grad_enabled(before)


def _without_tensors(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from lamina_prims.operator import find_handler

    handler = find_handler(args, kwargs)
    if handler is not None:  # a proxy
        return handler(op, args, kwargs)
    creator = MODES.creator
    return create(op, args, kwargs) if creator is None else creator(op, args, kwargs)


def create(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call without tensors, such as ``full((2,), 1.0)``: tensors over new arrays."""
    device = kwargs.get("device")
    if device is not None and (where := as_device(device)).type != "cpu":
        if where.type == "meta":
            from .fake import create_fake

            return create_fake(op, args, kwargs)
        if op.is_primitive or op.reference is not None:
            from .cuda.running import create_on_device

            return create_on_device(op, args, kwargs, where)
    if op.is_primitive or op.reference is not None:
        return _wrap_fresh(op, op.run_arrays(args, kwargs), ())
    return _run_body(op, args, kwargs)


def _run_body(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    saved = MODES.creator
    if saved is None:
        MODES.creator = create
    try:
        out = op.function(*args, **kwargs)
    except (IndexError, RuntimeError) as problem:
        raise_as_called(problem, op.id)
        raise
    finally:
        MODES.creator = saved
    return named_results(op, out) if op.result_names and type(out) is tuple else out


def _run_body_recorded(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Any) -> Any:
    """Run the body without recording, and record the composite by its own rule."""
    before = set_grad_enabled(False)
    try:
        out = _run_body(op, args, kwargs)
    finally:
        set_grad_enabled(before)
    if grad and isinstance(out, TensorBase) and any(out is t for t in _tensors_of(args)):
        out = alias(out, type(out), False)  # the body gave its argument back: that one keeps its own history
    parent = args[0] if args else None
    if before and op.alias is not False and isinstance(parent, TensorBase):  # recording was off only for the body
        for view in (out,) if isinstance(out, TensorBase) else out:
            if view._base is not None:
                view._no_grad_view = parent._base is not None and parent._no_grad_view
    if grad:
        record(op, args, kwargs, out)
    return out


# -- arrays --------------------------------------------------------------------------------------------


def _run_arrays(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], bits: int) -> Any:
    op = plan.op
    if op.id == "device_put":
        return _put(*args, **kwargs)
    if bits & _DEVICE:
        return _run_device(op, args, kwargs, bits & _FLOAT8)
    arrays = to_arrays(args)
    named = {k: to_arrays(v) for k, v in kwargs.items()} if kwargs else kwargs
    try:
        value = op.run_arrays(arrays, named)
    except Exception as error:  # an array library raises what it likes; the operator may know a better error
        _raise_better(op, args, kwargs, error)
        raise
    if op.alias is not False and isinstance(args[0], TensorBase):
        return _wrap_alias(op, value, args, kwargs)
    value = in_inferred_layout(op, value, (arrays, *named.values()), lambda: specs_of(args), lambda: specs_of(kwargs))
    return _wrap_fresh(op, value, args)


def _put(input: Any, device: Any) -> Any:
    target = as_device(device)
    if target.type == "meta":
        from .fake import fake_tensor

        return fake_tensor(operator("device_put").infer((input.spec, target), {}))
    from .cuda.transfers import place

    return place(input, target)


def _run_device(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], float8: int) -> Any:
    from .cuda.running import run_on_device

    value = run_on_device(op, args, kwargs, float8, _raise_better)
    if op.alias is not False and isinstance(args[0], TensorBase) and not isinstance(value, TensorBase):
        return _wrap_alias(op, value, args, kwargs)
    return named_results(op, value) if type(value) is tuple else value


def _raise_better(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> None:
    """Raise what the operator's own rule says about these arguments, if it objects to them.

    Without the array library's own error before it: users would read that one first.
    """
    if isinstance(error, TypeError):
        op.check_arguments(args, kwargs)
    if op.meta is not None:
        try:
            op.infer(specs_of(args), specs_of(kwargs))
        except Exception as better:  # of the kind that the rule chose, in PyTorch's words
            raise better from None


def specs_of(value: Any) -> Any:
    """Nested arguments with each tensor (and array) replaced by its spec."""
    kind = type(value)
    if kind is tuple:
        return tuple([specs_of(v) for v in value])
    if kind is list:
        return [specs_of(v) for v in value]
    if kind is dict:
        return {k: specs_of(v) for k, v in value.items()}
    if isinstance(value, TensorBase):
        return value.spec
    if kind is np.ndarray:
        return wrap(value).spec
    return value


def _wrap_fresh(op: Operator, value: Any, args: tuple[Any, ...]) -> Any:
    """Tensors over arrays that are not views of anything; a kernel that returned its input is made to."""
    if type(value) is np.ndarray:
        if value.base is not None or _is_input(value, args):
            for tensor in _tensors_of(args):
                if tensor._array is not None and shares(tensor, value):
                    value = value.copy("K")
                    break
        return wrap(value)
    if isinstance(value, np.generic):
        return wrap(value)
    if type(value) in (tuple, list) or isinstance(value, tuple):
        parts = [_wrap_fresh(op, v, args) for v in value]
        return named_results(op, parts) if isinstance(value, tuple) else parts
    return value


def _is_input(value: Any, args: Any) -> bool:
    return any(t._array is value for t in _tensors_of(args))


def _tensors_of(args: Any) -> Any:
    for value in args:
        if isinstance(value, TensorBase):
            yield value
        elif type(value) in (tuple, list):
            yield from _tensors_of(value)


def _wrap_alias(op: Operator, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    parent = args[0]
    if type(value) in (tuple, list):
        parts = []
        for index, part in enumerate(value):
            view = wrap_view(parent, part)
            if view.storage is parent.storage:
                mark_view(parent, view, (op, args[1:], kwargs, index))
            parts.append(view)
        return type(value)(parts)
    view = wrap_view(parent, value)
    if view.storage is parent.storage:
        mark_view(parent, view, (op, args[1:], kwargs, None))
        if 0 in view._sizes and view._array is not None:
            spec = op.infer(specs_of(args), specs_of(kwargs))
            restride(view, tuple(spec.strides))  # type: ignore[union-attr]  # arrays without elements have none
    return view


_result_types: dict[Operator, Callable[..., Any]] = {}


def named_results(op: Operator, parts: Any) -> Any:
    """Several results: a named tuple where the operator names them."""
    if not op.result_names:
        return tuple(parts)
    make = _result_types.get(op)
    if make is None:
        from collections import namedtuple

        make = _result_types[op] = namedtuple(op.id.replace(".", "_"), op.result_names)._make  # type: ignore[misc]
    return make(parts)


# -- without data ----------------------------------------------------------------------------------------


def _run_without_data(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tracer = None
    for tensor in _tensors_of((*args, *kwargs.values())):
        if type(tensor.storage) is TracedStorage:
            tracer = tensor.storage.tracer
            break
    specs, named = specs_of(args), specs_of(kwargs)
    spec = op.infer(specs, named)
    if tracer is None:
        tracer = tracer_for_sizes(args, kwargs)
    if tracer is None:
        out = run_fake(op, args, kwargs, spec, specs, named)
    else:
        out = tracer.call(op, args, kwargs, spec, specs, named)
    if type(out) is tuple and op.result_names:
        return named_results(op, list(out))
    return out


def is_fake(tensor: TensorBase) -> bool:
    """True for a tensor without data that is not traced."""
    return isinstance(tensor.storage, FakeStorage)
