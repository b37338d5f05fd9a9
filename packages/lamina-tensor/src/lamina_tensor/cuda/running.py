"""Operators on CUDA tensors: the reference over the device library's arrays.

Tensors of one call are brought to one device first: numbers (tensors without dimensions) and indices on the CPU may go
along with CUDA tensors, all else is an error. Arithmetic of float8, which the device holds as bytes, goes through the
host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lamina_fx import Device
from lamina_prims import Operator

from .. import _C
from .._C import TensorBase, to_arrays
from ..layouts import in_inferred_layout
from ..views import mark_view
from .activation import active_provider, cuda_device, is_float8, on_device, stored_dtype
from .memory import explaining, out_of_memory, release_held
from .transfers import host_copy, upload

__all__ = ["create_on_device", "run_on_device", "to_one_device"]

_MOVES_BYTES = frozenset(("cat", "clone", "gather", "index", "index_select", "flip", "roll", "where", "masked_fill"))
_TAKES_HOST_INDICES = frozenset(("index", "index_put"))
_MAY_BE_HERE = {"index": ("indices",), "index_put": ("indices",), "ctc_loss": ("input_lengths", "target_lengths")}
"""Arguments that may be on the CPU beside tensors on a device, by operator."""
_ANY_DEVICES = frozenset(("device_put", "to.other", "type_as"))


def specs(values: Any) -> Any:
    """Nested arguments with specs in place of tensors."""
    from ..dispatch import specs_of

    return specs_of(values)


def tensors_in(values: Any) -> Iterator[Any]:
    """The tensors among nested arguments."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif type(value) in (tuple, list):
            yield from tensors_in(value)


def to_one_device(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments on one device, or None when they are there already (or the operator takes any).

    Raises:
        RuntimeError: they are on several; PyTorch's words.
    """
    found: Any = None
    mixed = False
    for tensor in tensors_in((*args, *kwargs.values())):
        device = tensor.device
        if found is None:
            found = device
        elif device != found:
            mixed = True
            if found.type == "cpu":
                found = device
    if not mixed or op.id in _ANY_DEVICES:
        return None
    _check(op, args, kwargs, found)
    from lamina_prims import operator

    put = operator("device_put")

    def move(value: Any) -> Any:
        if isinstance(value, TensorBase):
            return value if value.device == found else put(value, found)
        return type(value)([move(v) for v in value]) if type(value) in (tuple, list) else value

    return tuple([move(a) for a in args]), {k: move(v) for k, v in kwargs.items()}


def _check(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], target: Device) -> None:
    """Refuse tensors on other devices, but for numbers and indices on the CPU."""
    values = (*args, *kwargs.values())
    names = [p.name for p in op.schema.parameters[: len(args)]] + list(kwargs)
    indices = list(tensors_in([v for n, v in zip(names, values) if n in _MAY_BE_HERE.get(op.id, ())]))
    for tensor in tensors_in(values):
        if tensor.device == target:
            continue
        if tensor.device.type == "cpu" and (not tensor._sizes or any(tensor is i for i in indices)):
            continue
        if op.meta is not None:
            op.infer(specs(args), specs(kwargs))  # raises, with the operator's name in front
        raise RuntimeError(
            f"{op.id}: Expected all tensors to be on the same device, but found at least two devices, {target} and "
            f"{tensor.device}!"
        )


def run_on_device(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], float8: int, better: Callable[..., None]
) -> Any:
    """The results of a call on CUDA tensors of one device, without history; of a view operator, arrays.

    ``float8``: such a tensor is among them. ``better`` raises what the operator's own rule says about the arguments.

    Raises:
        OutOfMemoryError: of the device. Otherwise what the operator raises.
    """
    first = args[0] if args and isinstance(args[0], TensorBase) else next(tensors_in((*args, *kwargs.values())))
    index = first.device.index
    views = op.alias is not False and isinstance(args[0], TensorBase)
    provider = active_provider()
    if op.id == "convert_element_type" and (float8 or is_float8(args[1])):
        return _convert_float8(provider, index, *args, **kwargs)
    if op.id == "bitcast" and (float8 or is_float8(args[1])):
        return _see_float8(op, *args)
    if float8 and not (views or op.id in _MOVES_BYTES):
        return through_host(op, args, kwargs, index)
    arrays = to_arrays(args)
    if op.id in _TAKES_HOST_INDICES:
        arrays = (arrays[0], _uploaded(arrays[1], provider), *arrays[2:])
    named = {k: to_arrays(v) for k, v in kwargs.items()} if kwargs else kwargs
    before = provider.current_device()
    if before != index:
        provider.set_device(index)
    try:
        value = _run(provider, op, arrays, named)
        if views:
            return value
        given = (arrays, *named.values())
        value = in_inferred_layout(op, value, given, lambda: specs(args), lambda: specs(kwargs))
        inputs = args if type(value) is provider.array_type and not kwargs else (*args, *kwargs.values())
        return wrap_results(value, inputs, first if float8 else None)
    except provider.out_of_memory as error:
        raise out_of_memory(index, error) from None
    except Exception as error:
        better(op, args, kwargs, error)
        raise
    finally:
        if before != index:
            provider.set_device(before)


def _run(provider: Any, op: Operator, arrays: Any, named: Any) -> Any:
    """The reference; once more with what memory is held for later use, where there is too little."""
    try:
        return op.run_arrays(arrays, named)
    except provider.out_of_memory:
        if not release_held():
            raise
        return op.run_arrays(arrays, named)


def _convert_float8(provider: Any, index: int, input: Any, dtype: Any) -> Any:
    from .float8 import decode, encode

    xp = provider.namespace
    with explaining(index), on_device(provider, index):
        numbers = decode(xp, input._array, input.dtype) if is_float8(input.dtype) else input._array
        if is_float8(dtype):
            real = numbers.real if numbers.dtype.kind == "c" else numbers
            return _C.wrap_device(encode(xp, real, dtype), dtype.code)
        return _C.wrap_device(numbers.astype(stored_dtype(dtype), order="K"))


def _see_float8(op: Operator, input: Any, dtype: Any) -> Any:
    """The same bytes as another dtype of one byte."""
    made = _C.wrap_device(input._array.view(stored_dtype(dtype)), dtype.code, input)
    mark_view(input, made, (op, (dtype,), {}, None))
    return made


def _uploaded(indices: Any, provider: Any) -> Any:
    """Index arrays of NumPy (constants of a graph) on the device."""
    if isinstance(indices, np.ndarray):
        return provider.namespace.asarray(indices)
    return type(indices)([_uploaded(i, provider) for i in indices]) if type(indices) in (tuple, list) else indices


def through_host(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], index: int) -> Any:
    """Run an operator on the host's copies of its arguments; its results on the device."""

    def home(value: Any) -> Any:
        if isinstance(value, TensorBase):
            return host_copy(value)
        return type(value)([home(v) for v in value]) if type(value) in (tuple, list) else value

    with np.errstate(all="ignore"):
        value = op.run_arrays(home(args), {k: home(v) for k, v in kwargs.items()})

    def away(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            host = _C.wrap(np.asarray(value))
            return upload(host._array, host.dtype, index)
        return type(value)([away(v) for v in value]) if type(value) in (tuple, list) else value

    return away(value)


def wrap_results(value: Any, inputs: Sequence[Any], like: Any = None) -> Any:
    """Tensors over the arrays of a result; one that lies in an input's memory is copied.

    ``inputs``: the arguments. ``like``: a float8 tensor whose bytes were moved.
    """
    kind = active_provider().array_type
    if isinstance(value, kind):
        code = like.dtype.code if like is not None and value.dtype == np.uint8 else -1
        made = _C.wrap_device(value, code)
        if any(_C.starts_inside(made, tensor) for tensor in tensors_in(inputs)):
            made = _C.wrap_device(value.copy(order="K"), code)
        return made
    if isinstance(value, (np.ndarray, np.generic)):  # asked for: ones_like(x, device="cpu")
        return _C.wrap(value)
    if isinstance(value, tuple):
        return tuple([wrap_results(v, inputs, like) for v in value])
    return [wrap_results(v, inputs, like) for v in value] if type(value) is list else value


def create_on_device(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], device: Device) -> Any:
    """A call without tensors whose result is on a device, such as ``full((2,), 1.0, device="cuda")``."""
    from .activation import device_index

    index = device_index(device)
    dtype = kwargs.get("dtype")
    if dtype is not None and is_float8(dtype):
        made = _C.wrap(op.run_arrays(args, {**kwargs, "device": None}))
        return upload(made._array, made.dtype, index)
    kwargs = {**kwargs, "device": cuda_device(index)}
    with explaining(index), on_device(active_provider(), index):
        return wrap_results(_run(active_provider(), op, args, kwargs), [])
