"""In-place operators: derived from the functional ones.

``x.add_(y)`` computes ``add(x, y)``, checks that the result fits into ``x``, writes it, and gives ``x`` the result's
history. What autograd saved of ``x`` before the write is saved as a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import float8_e4m3fn
from lamina_prims import Operator, operator
from lamina_prims.arrays import converted
from lamina_prims.modes import MODES

from ._C import CudaStorage, TensorBase, alias, bump, is_grad_enabled, scan, write_ufunc
from .autograd.inplace import check_inplace, edge_before_write, note_copy, rebase_history
from .autograd.node import edge_of
from .dispatch import dispatch, slow_resolved
from .dtype_names import scalar_type_name
from .kernels import UFUNCS, dtype_mask
from .plan import plan_of
from .storage import TracedStorage, is_host, on_device

__all__ = ["add_into", "call_inplace", "copy_into", "plain_ufunc", "write_out"]

_GRAD = 4
_IN_PLACE_UFUNCS = {name: (u.function, dtype_mask(u.kinds)) for name, u in UFUNCS.items() if not u.bool_result}
_ADD_DTYPES = _IN_PLACE_UFUNCS["add"][1]
_INFERENCE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
    "tensor before doing inplace update."
)
_OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation."
)


def call_inplace(op: Operator, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``target.op_(*args, **kwargs)``; returns ``target``.

    Raises:
        RuntimeError: the result's dtype or shape does not fit, elements overlap, or autograd cannot follow.
    """
    check_inplace(target)
    if kwargs:
        kwargs = op.schema.spelled(kwargs)
    if target._inference:
        _check_inference()
    recording = is_grad_enabled() and scan(target, args, kwargs) & _GRAD
    source = _snapshot(op, target, scan(args, kwargs) & _GRAD) if recording else target
    if MODES.stack:
        value = op(source, *args, **kwargs)
    else:
        if op.variadic is not None:
            args = op.schema.gather((target, *args), op.variadic)[1:]
        value = dispatch(op, (source, *args), kwargs)
    return assign(target, value)


def _check_inference() -> None:
    from ._C import is_inference

    if not is_inference():
        raise RuntimeError(_INFERENCE)


def plain_ufunc(op: Operator) -> tuple[Any, int] | None:
    """The ufunc (and the dtypes for which it is right) that does the in-place form of ``op`` at once, or None."""
    return _IN_PLACE_UFUNCS.get(op.id)


def _snapshot(op: Operator, target: Any, needed: bool) -> Any:
    """The target as it is before the write: with its history, and a copy of the elements if the rule saves them."""
    plan = plan_of(op)
    if target._array is None:
        storage = target.storage
        if type(storage) is not TracedStorage:
            snapshot = alias(target, type(target), True)
        else:
            snapshot = storage.tracer.copy(target)
    elif plan.differentiable and (not plan.saved[0] or (plan.crossed and not needed)):
        snapshot = alias(target, type(target), True)
    else:
        from .autograd.grad_mode import no_grad

        with no_grad():
            snapshot = operator("clone")(target)
    if target._requires_grad:
        edge = edge_before_write(target)
        if type(edge) is tuple:
            snapshot._grad_fn, snapshot._output_nr = edge
    return snapshot


def assign(target: Any, value: Any, overlap: bool = False) -> Any:
    """Write ``value`` (a result computed for ``target``, with its history) into ``target``.

    ``overlap``: the elements of ``target`` may share memory (one number is written to all).
    """
    check_result(target, value)
    if not overlap:
        check_overlap(target)
    if value.dtype is not target.dtype:
        value = operator("convert_element_type")(value, target.dtype)
    if len(value._sizes) != len(target._sizes) or value._sizes != target._sizes:
        value = operator("expand")(value, target._sizes)
    write(target, value)
    bump(target)
    if not is_grad_enabled():
        return target
    if value._requires_grad:
        edge = edge_of(value)
        if type(edge) is not tuple:  # a leaf was copied as it is
            value = operator("clone")(value)
            edge = edge_of(value)
        rebase_history(target, *edge)
    elif target._requires_grad:
        rebase_history(target, None, 0)
    return target


def check_result(target: Any, value: Any) -> None:
    """Refuse a result that does not fit into the target.

    Raises:
        RuntimeError: in PyTorch's words.
    """
    have, want = value.dtype, target.dtype
    if have is not want:
        ranks = ("bool", "int", "float", "complex")
        if ranks.index(have.kind) > ranks.index(want.kind):
            result, desired = scalar_type_name(have), scalar_type_name(want)
            raise RuntimeError(f"result type {result} can't be cast to the desired output type {desired}")
    if value._sizes != target._sizes and not _expands(value._sizes, target._sizes):
        raise RuntimeError(
            f"output with shape {list(target._sizes)} doesn't match the broadcast shape {list(value._sizes)}"
        )


def _expands(have: tuple[Any, ...], want: tuple[Any, ...]) -> bool:
    return len(have) <= len(want) and all(h == w or (type(h) is int and h == 1) for h, w in zip(have[::-1], want[::-1]))


def check_overlap(target: Any) -> None:
    """Refuse to write to an expanded tensor.

    Raises:
        RuntimeError: in PyTorch's words.
    """
    strides, sizes = target._strides, target._sizes
    if 0 not in strides or any(type(n) is int and n == 0 for n in sizes):
        return
    if any(type(s) is int and s == 0 and not (type(n) is int and n <= 1) for s, n in zip(strides, sizes)):
        raise RuntimeError(_OVERLAP)


def write(target: Any, value: Any) -> None:
    """Replace the elements of ``target`` by those of ``value`` (same shape and dtype); the version stays."""
    storage = target.storage
    array = target._array
    if array is not None:
        source = value._array
        if source is None:
            raise RuntimeError(
                "a traced or fake value was written into a real tensor, which is no input of the trace; give the "
                "tensor to the trace as an input"
            )
        if type(storage) is CudaStorage or on_device(value):
            from .cuda.transfers import copy_data

            return copy_data(target, value)
        np.copyto(array, source)
    elif type(storage) is TracedStorage:
        storage.tracer.write(target, value)


def add_into(target: Any, value: Any) -> None:
    """``target += value`` without recording (accumulation of gradients)."""
    if not write_ufunc(np.add, _ADD_DTYPES, target, (value,)):
        call_inplace(operator("add"), target, (value,), {})


def copy_into(target: Any, source: Any, non_blocking: bool = False) -> Any:
    """``target.copy_(source)``: broadcasts and converts; returns ``target``."""
    number = not isinstance(source, TensorBase)
    if number:
        source = _number(target, source)
    check_inplace(target)
    if target._inference:
        _check_inference()
    recording = is_grad_enabled() and (source._requires_grad or target._requires_grad)
    if not recording and target._array is not None and source._array is not None:
        _check_copy_shape(target, source)
        if not number:
            check_overlap(target)
        if on_device(target) or on_device(source):
            from .cuda.transfers import copy_data

            copy_data(target, source, non_blocking)
            bump(target)
            return target
        array, value = target._array, source._array
        if value.dtype.kind == "c" and array.dtype.kind != "c":
            value = value.real
        with np.errstate(all="ignore"):
            if target.dtype is float8_e4m3fn:
                value = converted(value, array.dtype)
            np.copyto(array, value, casting="unsafe")
        bump(target)
        return target
    _check_copy_shape(target, source)
    value = source
    if value.device != target.device:
        value = operator("device_put")(value, target.device)
    if value.dtype is not target.dtype:
        value = operator("convert_element_type")(value, target.dtype)
    before = edge_of(target) if recording and target._requires_grad else None
    assign(target, value, overlap=number)
    if before is not None and value._requires_grad:
        note_copy(target, before)
    return target


def _number(target: Any, value: Any) -> Any:
    from .creation import as_tensor

    if not is_host(target) and isinstance(value, (bool, int, float, complex)):
        where = {} if target.device.type == "cpu" else {"device": target.device}
        return slow_resolved(operator("full"), ((), value), {"dtype": target.dtype, **where})
    return as_tensor(value, dtype=target.dtype)


def _check_copy_shape(target: Any, source: Any) -> None:
    if source._sizes != target._sizes and not _expands(source._sizes, target._sizes):
        raise RuntimeError(
            f"The size of tensor a {list(target._sizes)} must match the size of tensor b {list(source._sizes)}: the "
            "source of copy_ does not broadcast to the destination"
        )


def write_out(value: Any, out: Any) -> Any:
    """Finish a call with ``out=``: write the result there (resizing an empty tensor); returns ``out``.

    Raises:
        RuntimeError: ``out`` takes part in autograd, or the dtype or shape does not fit.
    """
    if isinstance(out, (tuple, list)):
        for item, target in zip(value, out):
            write_out(item, target)
        return out
    if is_grad_enabled() and (out._requires_grad or value._requires_grad):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    if out._sizes != value._sizes and out.numel() == 0:
        from ._C import become

        become(out, operator("empty_like")(value, dtype=out.dtype, device=out.device), False)
    return assign(out, value)
