"""Tensors as capture sees them: fakes, guards, memory, gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from lamina_aot.outputs import is_alive
from lamina_dynamo.frontend import DataDependent, SizePolicy
from lamina_dynamo.guard import Guard, is_none, length, shape_holds, tensor_matches
from lamina_dynamo.source import (
    Attr,
    FrameScope,
    Grad,
    InstanceAttr,
    Item,
    Source,
    TensorProperty,
    base_of,
    chain,
)
from lamina_fx import Device, DType, TensorSpec
from lamina_fx.symbolic import ShapeEnv
from lamina_prims import operator
from lamina_prims.operators.striding import extent
from lamina_tensor import Tensor, fake_tensor, no_grad
from lamina_tensor.autograd.node import Node
from lamina_tensor.namespace import Namespace
from lamina_tensor.nn import Module, Parameter
from lamina_tensor.optim import Optimizer
from lamina_tensor.views import autograd_steps, offset_of, scatter

__all__ = ["FrontendTensors", "check_write"]

_HISTORY = Node((), ())
"""Stands for the history of inputs that are no leaves: such inputs may be written in place."""

_STATE: dict[str, type] = {"_buffers": Module, "state": Optimizer}
"""Where modules and optimizers have tensors that go with their parameters."""


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
        offset, room = value.__lamina_memory__()
        made = fake_tensor(spec, offset=offset, room=room)
        if type(value) is not Tensor:
            made = Tensor._make_subclass(type(value), made, False)
        if value._requires_grad:
            made._requires_grad = True
            if not value._is_leaf:
                made._grad_fn = _HISTORY
        return made

    def keeps_sizes(self, value: Any, source: Source, scope: FrameScope) -> bool:
        """Parameters and their gradients, buffers of modules, the state of optimizers."""
        if isinstance(value, Parameter):
            return True
        base = base_of(source)
        if base is None:
            return False
        if isinstance(source, Grad):
            return self.keeps_sizes(base.fetch(scope), base, scope)
        return any(
            isinstance(step, InstanceAttr)
            and step.attr in _STATE
            and isinstance(step.base.fetch(scope), _STATE[step.attr])
            for step in chain(base)
        )

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

    def memory_guards(
        self, id: str, args: Sequence[Any], kwargs: dict[str, Any], inputs: Iterable[tuple[Any, Source, Any]]
    ) -> list[Guard]:
        """``as_strided`` counts from the start of the storage: where an input begins in it must stay so."""
        if id != "as_strided.storage":
            return []
        view, size, stride, offset = operator(id).schema.bind(args, kwargs)
        owners = [(source, fake) for _, source, fake in inputs if fake.storage is view.storage]
        if not owners:
            return []
        storage = view.storage
        begin, end = storage.offset, storage.offset + extent(storage.spec.shape, storage.spec.strides)
        first = offset_of(view) if offset is None else offset
        if view.dtype is not storage.spec.dtype or first < begin or first + extent(size, stride) > end:
            raise DataDependent("it shows memory of an input's storage that the input does not")
        if offset is None:
            return []
        where = [TensorProperty(source, "storage_offset") for source, _ in owners]
        return [shape_holds(f"o == {begin}", {"o": each}) for each in where]

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
            return np.shares_memory(_addresses(first), _addresses(second), max_work=10_000)
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
        return is_alive(fake)

    def gradient(self, value: Any) -> Any:
        """The gradient that a tensor of the caller has."""
        return value.grad

    def backward_guards(self, value: Any, source: Source, fake: Any) -> list[Guard] | str:
        """It stays a leaf; where nobody hooks into its gradient, that stays so."""
        if not value._requires_grad:
            return []
        if not value._is_leaf:
            return "was computed outside of the graph"
        hooks = Attr(source, "_hooks")
        if value._hooks is None:
            quiet = [is_none(hooks)]
        elif any(value._hooks):
            quiet = []  # see `gradient_hooks`
        else:
            quiet = [length(Item(hooks, place), 0) for place in range(2)]
        return [tensor_matches(source, value, fake.spec, flag_mask=3, flag_values=3), *quiet]

    def gradient_hooks(self, value: Any) -> list[tuple[str, list[Any]]]:
        """The hooks on a leaf's gradient: before it is accumulated, and after; nothing when there are none."""
        if value._hooks is None or not any(value._hooks):
            return []
        kinds = ("register_hook", "register_post_accumulate_grad_hook")
        return [(kind, list(hooks.values())) for kind, hooks in zip(kinds, value._hooks, strict=True)]

    def attach_gradient(self, fake: Any, gradient: Any) -> None:
        """Let the fake have this gradient."""
        fake._grad = gradient


def check_write(view: Any) -> None:
    """Whether a write to a view can be followed to its base: not through an expanded tensor, for example.

    Raises:
        DataDependent: why it cannot.
    """
    base = view._base
    if base is None or base is view:
        return
    try:
        with no_grad():
            scatter(base, autograd_steps(view), fake_tensor(view.spec))
    except (RuntimeError, NotImplementedError) as error:
        raise DataDependent(f"a write that cannot be followed to the memory behind the view ({error})") from None


def _addresses(tensor: Any) -> np.ndarray[Any, Any]:
    """An array over the tensor's memory, on whatever device it is: to be compared, not to be read."""
    size = tensor.dtype.itemsize
    strides = tuple([stride * size for stride in tensor._strides])
    memory = {"version": 3, "typestr": f"|V{size}", "data": (tensor.data_ptr(), True)}
    return np.asarray(SimpleNamespace(__array_interface__=memory | {"shape": tuple(tensor._sizes), "strides": strides}))


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
