"""Deep copies and pickles of tensors."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from lamina_fx import Device, DType
from lamina_prims import operator
from lamina_prims.arrays import numpy_dtype

from ._C import TensorBase, alias, wrap
from .autograd.grad_mode import no_grad

__all__ = ["deep_copy", "reduce"]


def deep_copy(tensor: Any, memo: dict[int, Any]) -> Any:
    """A copy with memory, gradient and attributes of its own.

    Raises:
        RuntimeError: the tensor is no leaf: its history cannot be copied.
    """
    if id(tensor) in memo:
        return memo[id(tensor)]
    if tensor.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "If you were attempting to deepcopy a module, this may be because of a tensor attribute that is a result "
            "of a computation; detach() it."
        )
    with no_grad():
        made = alias(operator("clone")(tensor.detach()), type(tensor), False)
    memo[id(tensor)] = made
    if tensor._requires_grad:
        made._requires_grad = True
    if tensor._grad is not None:
        made._grad = copy.deepcopy(tensor._grad, memo)
    for name, value in vars(tensor).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def reduce(tensor: Any) -> tuple[Any, ...]:
    """What pickle keeps of a tensor: class, dtype, values, device, requires_grad and the attributes set on it."""
    if tensor._array is None:
        raise RuntimeError(f"a tensor without data ({tensor.spec}) cannot be pickled")
    array = np.ascontiguousarray(tensor._values("pickle"))
    state = (type(tensor), tensor.dtype, tensor._sizes, array.tobytes(), tensor._requires_grad)
    where = (str(tensor.device),) if tensor.device.type != "cpu" else ()
    return _rebuild, (*state, dict(vars(tensor)), *where)


def _rebuild(
    cls: type,
    dtype: DType,
    sizes: tuple[int, ...],
    data: bytes,
    requires_grad: bool,
    attributes: dict[str, Any],
    device: str | None = None,
) -> TensorBase:
    made = wrap(np.frombuffer(bytearray(data), dtype=numpy_dtype(dtype)).reshape(sizes))
    made = alias(made if device is None else operator("device_put")(made, Device(device)), cls, False)
    if requires_grad:
        made._requires_grad = True
    vars(made).update(attributes)
    return made
