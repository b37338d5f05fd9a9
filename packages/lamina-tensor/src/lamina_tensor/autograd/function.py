"""Custom operations with a gradient of their own.

>>> from lamina_tensor import tensor
>>> class Double(Function):
...     @staticmethod
...     def forward(ctx, x):
...         return x * 2
...     @staticmethod
...     def backward(ctx, grad):
...         return grad * 2
>>> x = tensor([1.0], requires_grad=True)
>>> Double.apply(x).backward()
>>> x.grad
tensor([2.])
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._C import TensorBase, alias, is_grad_enabled, set_grad_enabled
from ..creator import calling_user_code
from .node import _FREED, Node, check_version, edge_of
from .record import set_history
from .reduce_gradient import reduce_gradient

__all__ = ["Function", "FunctionNode", "once_differentiable"]


class FunctionNode(Node):
    """Backward node and context (``ctx``) of a custom function. Attributes may be set on it freely."""

    function: type[Function]

    def __init__(self, function: type[Function], edges: list[Any], metas: list[Any], needs: tuple[bool, ...]) -> None:
        super().__init__(edges, metas)
        self._function = function
        self.needs_input_grad = needs
        self._places: list[int] = []
        self._to_save: tuple[Any, ...] = ()
        self._saved: list[Any] | None = None
        self._materialize = True
        self._no_grad: set[int] = set()
        self._dirty: tuple[Any, ...] = ()
        self._out_specs: list[Any] = []

    def name(self) -> str:
        """Name of the function and ``Backward``."""
        return f"{self._function.__name__}Backward"

    def save_for_backward(self, *tensors: Any) -> None:
        """Save inputs and outputs for the backward pass (other values may be attributes of ``ctx``)."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Accepted for compatibility; forward mode does not exist."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs the forward wrote in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        self._no_grad = {id(t) for t in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Should missing gradients of outputs be given to ``backward`` as zeros (the default) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` saved.

        Raises:
            RuntimeError: freed by an earlier backward, or written in place since.
        """
        if self._saved is None:
            if self._to_save or self._function is None:
                raise RuntimeError(_FREED)
            return ()
        values = []
        for tensor, version, output in self._saved:
            if tensor is not None:
                check_version(self.name(), tensor, version, tensor._sizes)
                if output is not None and is_grad_enabled():
                    tensor = alias(tensor, type(tensor), False)
                    tensor._grad_fn, tensor._output_nr = self, output
            values.append(tensor)
        return tuple(values)

    saved_variables = saved_tensors

    def keep_saved(self, outputs: Sequence[Any]) -> None:
        """Take what was saved; outputs are kept without their history, which would be a cycle."""
        place = {id(o): i for i, o in enumerate(outputs)}
        kept = []
        for tensor in self._to_save:
            if tensor is None:
                kept.append((None, 0, None))
            elif not isinstance(tensor, TensorBase):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {len(kept)} is of type "
                    f"{type(tensor).__name__}"
                )
            elif id(tensor) in place:
                kept.append((alias(tensor, type(tensor), False), tensor._version, place[id(tensor)]))
            else:
                kept.append((tensor, tensor._version, None))
        self._saved = kept if kept else None
        self._to_save = (True,) if kept else ()

    def release(self) -> None:
        """Drop what was saved."""
        self._saved = None

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        """Call the function's backward; check and reduce what it returns."""
        from lamina_prims import operator

        full = [grads[i] if i < len(grads) else None for i in range(len(self._out_specs))]
        if self._materialize:
            for i, spec in enumerate(full):
                if spec is None and self._out_specs[i] is not None:
                    shape, dtype = self._out_specs[i]
                    full[i] = operator("zeros")(shape, dtype=dtype)
        with calling_user_code():
            results = self._function.backward(self, *full)
        results = results if isinstance(results, (tuple, list)) else (results,)
        extra = [r for r in results[len(self.needs_input_grad) :] if r is not None]
        if len(results) < len(self.needs_input_grad) or extra:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{len(self.needs_input_grad)}, got {len(results)})"
            )
        flat = []
        for place, meta in zip(self._places, self.metas):
            gradient = results[place]
            if meta is None or gradient is None:
                flat.append(None)
            else:
                flat.append(reduce_gradient(gradient, *meta, self.name()))
        return flat


class Function:
    """Subclass with static ``forward`` and ``backward`` (and ``setup_context``); call through ``apply``."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """``forward(ctx, *args)``, or ``forward(*args)`` beside a ``setup_context``."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save for the backward pass what it needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """One gradient (or None) for each argument of ``forward``."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the forward and record the function."""
        record = is_grad_enabled()
        needs = tuple(isinstance(a, TensorBase) and a._requires_grad for a in args)
        edges, metas, places = [], [], []
        for index, (value, need) in enumerate(zip(args, needs)):
            if isinstance(value, TensorBase):
                places.append(index)
                edges.append(edge_of(value) if need and record else None)
                metas.append((value._sizes, value.dtype) if need else None)
        node = FunctionNode(cls, edges, metas, needs)
        node._places = places
        before = set_grad_enabled(False)
        try:
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(node, args, output)
            else:
                output = cls.forward(node, *args, **kwargs)
        finally:
            set_grad_enabled(before)
        return _finish(node, args, output, record and any(needs))


def _finish(node: FunctionNode, args: tuple[Any, ...], output: Any, record: bool) -> Any:
    """Give the outputs their history. An input returned as it is comes back as another tensor object."""
    if output is None:
        return None
    outputs = [output] if isinstance(output, TensorBase) else list(output)
    inputs = {id(a) for a in args if isinstance(a, TensorBase)}
    dirty = {id(t) for t in node._dirty}
    for index, item in enumerate(outputs):
        if isinstance(item, TensorBase) and id(item) in inputs and id(item) not in dirty:
            fresh = alias(item, type(item), False)
            node._no_grad = {id(fresh) if i == id(item) else i for i in node._no_grad}
            outputs[index] = fresh
    if record:
        node._out_specs = [(o._sizes, o.dtype) if isinstance(o, TensorBase) else None for o in outputs]
        node.keep_saved(outputs)
        _set_outputs(node, outputs, dirty)
    return (
        outputs[0]
        if isinstance(output, TensorBase)
        else type(output)(outputs)
        if type(output) is list
        else tuple(outputs)
    )


def _set_outputs(node: FunctionNode, outputs: list[Any], dirty: set[int]) -> None:
    from .inplace import check_inplace, rebase_history

    for index, item in enumerate(outputs):
        if not isinstance(item, TensorBase) or id(item) in node._no_grad or item.dtype.kind not in ("float", "complex"):
            continue
        if id(item) in dirty:
            check_inplace(item)
            rebase_history(item, node, index)
        else:
            item._grad_fn, item._output_nr = node, index


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that is not itself differentiable: a second derivative through it is an error."""

    @functools.wraps(backward)
    def run(ctx: Any, *grads: Any) -> Any:
        recording = is_grad_enabled()
        before = set_grad_enabled(False)
        try:
            results = backward(ctx, *grads)
        finally:
            set_grad_enabled(before)
        if not recording or not any(isinstance(g, TensorBase) and g._requires_grad for g in grads):
            return results
        wrapped = results if isinstance(results, tuple) else (results,)
        fixed = tuple(_forbid(r) if isinstance(r, TensorBase) else r for r in wrapped)
        return fixed if isinstance(results, tuple) else fixed[0]

    return run


class _ForbiddenNode(Node):
    """Raises when a gradient reaches it."""

    __slots__ = ()

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _forbid(tensor: Any) -> Any:
    result = alias(tensor, type(tensor), False)
    set_history(_ForbiddenNode([None], [None]), result)
    return result
