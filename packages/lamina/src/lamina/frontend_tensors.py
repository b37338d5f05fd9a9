"""Tensors as capture sees them: fakes, guards, memory, gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina_dynamo.frontend import SizePolicy
from lamina_dynamo.guard import Guard, is_none, length, tensor_matches
from lamina_dynamo.source import Attr, Item, Source
from lamina_fx import Device, DType, TensorSpec
from lamina_fx.symbolic import ShapeEnv
from lamina_tensor import Tensor, fake_tensor
from lamina_tensor.autograd.node import Node
from lamina_tensor.namespace import Namespace

__all__ = ["FrontendTensors"]

_HISTORY = Node((), ())
"""Stands for the history of inputs that are no leaves: such inputs may be written in place."""


class FrontendTensors:
    """The part of the front end about tensors."""

    def is_array(self, value: object) -> bool:
        """Tensors with data."""
        return isinstance(value, Tensor) and value._array is not None

    def is_constant(self, value: object) -> bool:
        """dtypes, devices, namespaces of functions."""
        return isinstance(value, (DType, Device, Namespace))

    def is_fake(self, value: object) -> bool:
        """Tensors without data."""
        return isinstance(value, Tensor) and value._array is None

    def fake(self, value: Any, shape_env: ShapeEnv, policy: SizePolicy) -> Any:
        """A tensor of the same class, spec and gradient needs, without data."""
        sizes, strides = value._sizes, value._strides
        order = _dense_order(sizes, strides)
        if order is None:
            spec = TensorSpec(sizes, value.dtype, strides, value.device)
        else:
            shape = [policy(dim, size) for dim, size in enumerate(sizes)]
            spec = TensorSpec(shape, value.dtype, _strides_in_order(shape, order), value.device)
        made = fake_tensor(spec)
        if type(value) is not Tensor:
            made = Tensor._make_subclass(type(value), made, False)
        if value._requires_grad:
            made._requires_grad = True
            if not value._is_leaf:
                made._grad_fn = _HISTORY
        return made

    def array_type(self, fake: Any) -> type:
        """The fake's own class."""
        return type(fake)

    def spec(self, fake: Any) -> TensorSpec:
        """Shape, dtype, strides, device."""
        return fake.spec

    def truth(self, fake: Any) -> bool | None:
        """It depends on the data; of a tensor with several elements it is an error."""
        return None

    def guards(self, value: Any, source: Source, fake: Any) -> list[Guard]:
        """Class, dtype, device, fixed sizes and strides, requires_grad; that it is no leaf.

        A leaf's program is right for other tensors, too (what a leaf forbids is not in it), but not the other way.
        """
        if value._requires_grad and not value._is_leaf:
            return [tensor_matches(source, value, fake.spec, flag_mask=3, flag_values=1)]
        return [tensor_matches(source, value, fake.spec, flag_mask=1, flag_values=int(value._requires_grad))]

    def memory_bounds(self, value: Any) -> tuple[int, int]:
        """First and one past the last byte of a tensor's elements."""
        start = value.data_ptr()
        extent = 1
        for size, stride in zip(value._sizes, value._strides, strict=True):
            if size == 0:
                return start, start
            extent += (size - 1) * stride
        return start, start + extent * value.dtype.itemsize

    def shares_memory(self, first: Any, second: Any) -> bool:
        """Whether two tensors have an element in common."""
        try:
            return np.shares_memory(first.detach().numpy(), second.detach().numpy(), max_work=10_000)
        except np.exceptions.TooHardError:
            return True

    def memory_key(self, fake: Any) -> int:
        """Equal for fakes over the same memory."""
        return id(fake.storage)

    # -- gradients -------------------------------------------------------------------------------------

    def takes_gradient(self, fake: Any) -> bool:
        """Whether a backward pass accumulates into it."""
        return bool(fake._requires_grad) and fake.is_leaf

    def is_new_leaf(self, fake: Any) -> bool:
        """Of an array that the graph makes: whether it is a leaf, to be known as such to whoever gets it."""
        return bool(fake._requires_grad) and fake.is_leaf

    def has_history(self, fake: Any) -> bool:
        """Whether it can still be differentiated: a backward pass uses the history up."""
        return bool(fake._requires_grad) and (fake.grad_fn is None or not fake.grad_fn.released)

    def gradient(self, value: Any) -> Any:
        """The gradient that a tensor of the caller has."""
        return value.grad

    def backward_guards(self, value: Any, source: Source, fake: Any) -> list[Guard] | str:
        """It stays a leaf, and nobody hooks into its gradient."""
        if not value._requires_grad:
            return []
        if not value._is_leaf:
            return "was computed outside of the graph"
        hooks = Attr(source, "_hooks")
        if value._hooks is None:
            quiet = [is_none(hooks)]
        elif any(value._hooks):
            return "has hooks on its gradient"
        else:
            quiet = [length(Item(hooks, place), 0) for place in range(2)]
        return [tensor_matches(source, value, fake.spec, flag_mask=3, flag_values=3), *quiet]

    def attach_gradient(self, fake: Any, gradient: Any) -> None:
        """Let the fake have this gradient."""
        fake._grad = gradient


def _dense_order(sizes: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """Dimensions from outermost to innermost of a tensor without gaps or overlaps; None for others."""
    order = sorted(range(len(sizes)), key=lambda d: (-strides[d], -sizes[d]))
    expected = 1
    for dim in reversed(order):
        if sizes[dim] != 1 and strides[dim] != expected:
            return None
        expected *= max(sizes[dim], 1)
    if all(sizes[d] == 1 or strides[d] == e for d, e in zip(range(len(sizes)), _row_major(sizes), strict=True)):
        return list(range(len(sizes)))
    return order


def _row_major(sizes: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def _strides_in_order(shape: Sequence[Any], order: list[int]) -> list[Any]:
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for dim in reversed(order):
        strides[dim] = step
        size = shape[dim]
        step = step * (size if type(size) is not int or size > 1 else 1)
    return strides
