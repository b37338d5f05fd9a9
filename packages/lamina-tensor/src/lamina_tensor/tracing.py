"""Tracing: operators called on traced tensors write nodes of a graph, through the engine that eager code uses.

In-place operators and views are functional by the storage: ``tracer.value(tensor)`` is what the tensor holds now.

>>> from lamina_fx import Graph, TensorSpec, float32
>>> graph = Graph()
>>> node = graph.placeholder("x", spec=TensorSpec((3,), float32))
>>> with trace(graph) as tracer:
...     x = tracer.input(node)
...     _ = x.add_(1)
...     _ = graph.output(tracer.value(x))
>>> [n.target for n in graph.nodes]
['x', 'add', 'output']
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lamina_fx import Graph, Node, Spec, TensorSpec
from lamina_prims import Operator, operator
from lamina_prims.modes import MODES

from ._C import TensorBase, set_grad_enabled, wrap
from .autograd.engine import STEPS
from .autograd.node import next_sequence
from .fake import alias_without_data
from .storage import FakeStorage, TracedStorage, tensor_without_data
from .views import ViewStep, has_strided, offset_of, replay, scatter, steps_from

__all__ = ["Tracer", "trace"]


class Tracer:
    """Writes what is called on its tensors into ``graph``.

    ``meta`` is copied to each new node (for instance ``{"source": (file, line, function)}``). Nodes of a backward
    pass get what ``meta`` was when the step was recorded that they derive from.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._marks: list[int] = []
        self._metas: list[dict[str, Any]] = []
        self.meta = {}
        self._constants: dict[int, tuple[Any, Node]] = {}

    @property
    def meta(self) -> dict[str, Any]:
        """What new nodes carry."""
        return self._meta

    @meta.setter
    def meta(self, meta: dict[str, Any]) -> None:
        self._meta = meta
        self._marks.append(next_sequence())
        self._metas.append(meta)

    def enter_step(self, node: Any) -> None:
        """A step of a backward pass begins: what it writes carries the meta of what it derives from."""
        self._meta = self._metas[max(bisect_left(self._marks, node.sequence) - 1, 0)]

    # -- tensors in and out ----------------------------------------------------------------------------

    def input(self, node: Node, requires_grad: bool = False, offset: int = 0) -> Any:
        """A leaf tensor whose value is ``node``'s (a node with a ``TensorSpec``), ``offset`` elements into its memory.

        Raises:
            TypeError: the node has no tensor spec.
        """
        if not isinstance(node.spec, TensorSpec):
            raise TypeError(f"node {node.name!r} has no tensor spec (it is {node.spec}): it cannot be a traced tensor")
        tensor = self._fresh(node, node.spec)
        tensor.storage.offset = offset
        if requires_grad:
            tensor._requires_grad = True
        return tensor

    def alias(self, base: Any, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = 0) -> Any:
        """A second input over the memory of traced tensor ``base``: writes to one show in the other."""
        before = set_grad_enabled(False)
        try:
            view = operator("as_strided")(base.detach(), tuple(size), tuple(stride), storage_offset)
        finally:
            set_grad_enabled(before)
        view._base = None
        view._is_view_flag = False
        view._no_grad_view = False
        return view

    def value(self, tensor: Any) -> Node:
        """The node of a tensor's present value (a real tensor becomes a constant of the graph)."""
        storage = tensor.storage
        if type(storage) is not TracedStorage:
            return self.constant(tensor)
        if storage.tracer is not self:
            raise RuntimeError("a tensor of another trace was used; give it to this trace as an input")
        steps = tensor._chain
        if not steps:
            return storage.node
        cache = tensor._cache
        if cache is not None and cache[0] == storage.generation:
            return cache[1]
        node = self._derive(tensor)
        tensor._cache = (storage.generation, node)
        return node

    def value_in_memory(self, tensor: Any) -> Node:
        """Like ``value``, with the elements in memory as the tensor's strides say where it is dense."""
        node = self.value(tensor)
        spec = tensor.spec
        if node.spec.strides == spec.strides or not _is_dense(spec):  # type: ignore[union-attr]
            return node
        return self._laid_out(node, spec)

    def root(self, tensor: Any) -> Any:
        """A tensor of its own with the present value of the whole memory that ``tensor`` is a view of."""
        storage = tensor.storage
        return self._fresh(self._laid_out(storage.node, storage.spec), storage.spec)

    def mutated(self, tensor: Any) -> bool:
        """Was the memory of this tensor written since it was made."""
        return type(tensor.storage) is TracedStorage and tensor.storage.generation > 0

    def constant(self, tensor: Any) -> Node:
        """The ``get_attr`` node of a real tensor.

        Raises:
            RuntimeError: the tensor is fake: it has no value.
        """
        if isinstance(tensor.storage, FakeStorage):
            raise RuntimeError(f"a fake tensor {tensor.spec} was used while tracing; it has no value")
        found = self._constants.get(id(tensor))
        if found is None:
            name = f"_constant{len(self._constants)}"
            self.graph.attributes[name] = tensor
            found = self._constants[id(tensor)] = (tensor, self.graph.get_attr(name, spec=tensor.spec))
        return found[1]

    # -- operators -------------------------------------------------------------------------------------

    def call(
        self,
        op: Operator,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        spec: Spec,
        specs: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Write a call whose result has ``spec``; returns traced tensors."""
        parent = args[0] if args else None
        if op.id == "as_strided":
            node = self._strided(op, args, kwargs, spec)
        else:
            node = self._node(op, args, kwargs, spec)
        traced = isinstance(parent, TensorBase) and type(parent.storage) is TracedStorage
        if op.alias is not False and traced and op.views(specs, named):
            views = alias_without_data(op, parent, args[1:], kwargs, spec)
            self._remember(views, node, spec)
            return views
        return self._results(node, spec)

    def _strided(self, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Spec) -> Node:
        """An ``as_strided`` of the whole memory: it may show what its argument, a view, does not."""
        parent = args[0]
        if type(parent.storage) is TracedStorage and parent._chain:
            storage = parent.storage
            if storage.spec.dtype is parent.dtype:
                size, stride, offset = op.schema.bind(args, kwargs)[1:]
                offset = offset_of(parent) - storage.offset + (offset or 0)
                root = self._fresh(self._laid_out(storage.node, storage.spec), storage.spec)
                return self._node(op, (root, size, stride, offset), {}, spec)
        return self._node(op, (self._as_in_memory(parent), *args[1:]), kwargs, spec)

    def create(self, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Write a call that has no tensor among its arguments."""
        if not op.is_primitive and op.vjp_rule is None:
            return op.function(*args, **kwargs)
        spec = op.infer(args, kwargs)
        return self._results(self._node(op, args, kwargs, spec), spec)

    def copy(self, tensor: Any) -> Any:
        """A tensor with memory of its own and the present value of ``tensor``; writes no node."""
        made = self._fresh(self.value(tensor), tensor.spec)
        if type(tensor.storage) is TracedStorage and not tensor._chain:
            made.storage.offset = tensor.storage.offset
        return made

    def write(self, tensor: Any, value: Any) -> None:
        """Let the memory of ``tensor`` hold ``value`` (of its shape and dtype)."""
        storage = tensor.storage
        node = self.value(value)
        steps = tensor._chain
        if steps:
            root = self._root(storage, steps)
            steps = steps_from(storage.spec, storage.offset, tensor, steps)
            before = set_grad_enabled(False)
            try:
                node = self.value(scatter(root, steps, value))
            finally:
                set_grad_enabled(before)
        spec = storage.spec
        if node.spec.strides != spec.strides and _is_dense(spec):  # type: ignore[union-attr]
            node = self._laid_out(node, spec)  # what is computed from it later lies in memory as in eager
        storage.node = node
        storage.generation += 1

    def _derive(self, tensor: Any) -> Node:
        storage, steps = tensor.storage, tensor._chain
        before = set_grad_enabled(False)
        try:
            view = replay(self._root(storage, steps), steps_from(storage.spec, storage.offset, tensor, steps))
        finally:
            set_grad_enabled(before)
        return view._cache[1] if view._cache is not None else view.storage.node

    def _root(self, storage: TracedStorage, steps: Sequence[ViewStep]) -> Any:
        """A tensor with the present value of the whole storage, from which these steps can be taken."""
        node = storage.node
        if has_strided(steps):
            node = self._laid_out(node, storage.spec)
        return self._fresh(node, node.spec)

    def _as_in_memory(self, tensor: Any) -> Any:
        """The tensor with its elements where its own strides say, whatever the present value's are."""
        storage = tensor.storage
        if type(storage) is not TracedStorage:
            return tensor
        node = self._laid_out(storage.node, storage.spec)
        if node is storage.node:
            return tensor
        before = set_grad_enabled(False)
        try:
            return replay(self._fresh(node, storage.spec), tensor._chain or ())
        finally:
            set_grad_enabled(before)

    def _laid_out(self, node: Node, spec: TensorSpec) -> Node:
        """The node's value with its elements in memory as ``spec`` says: ``as_strided`` depends on that."""
        if node.spec.strides == spec.strides:  # type: ignore[union-attr]
            return node
        order = tuple(sorted(range(spec.ndim), key=lambda d: -spec.strides[d]))
        before = set_grad_enabled(False)
        try:
            turned = operator("permute")(self._fresh(node, node.spec), order)
            dense = operator("clone")(turned, memory_format="contiguous_format")
            return self.value(operator("permute")(dense, tuple(order.index(d) for d in range(len(order)))))
        finally:
            set_grad_enabled(before)

    def _fresh(self, node: Node, spec: Any) -> Any:
        storage = TracedStorage()
        storage.tracer = self
        storage.node = node
        storage.spec = spec
        storage.generation = 0
        storage.offset = 0
        return tensor_without_data(storage, spec)

    def _node(self, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Spec) -> Node:
        node = self.graph.call_function(op.id, self._lower(args), self._lower(kwargs), spec=spec, effect=op.effect)
        if self.meta:
            node.meta.update(self.meta)
        return node

    def _lower(self, value: Any) -> Any:
        """Nested arguments with nodes in place of tensors."""
        kind = type(value)
        if kind is tuple:
            return tuple([self._lower(v) for v in value])
        if kind is list:
            return [self._lower(v) for v in value]
        if kind is dict:
            return {k: self._lower(v) for k, v in value.items()}
        if isinstance(value, TensorBase):
            return self.value(value)
        if kind is np.ndarray:
            return self.constant(wrap(value))
        return tuple(self._lower(v) for v in value) if isinstance(value, tuple) else value

    def _results(self, node: Node, spec: Spec) -> Any:
        if isinstance(spec, TensorSpec):
            return self._fresh(node, spec)
        if not isinstance(spec, (tuple, list)):
            return None
        return tuple(self._results(item, part) for item, part in self._items(node, spec))

    def _items(self, node: Node, spec: Sequence[Any]) -> list[tuple[Node, Any]]:
        return [
            (self.graph.call_function("getitem", (node, index), spec=part), part) for index, part in enumerate(spec)
        ]

    def _remember(self, views: Any, node: Node, spec: Any) -> None:
        """Note the node that just computed these views."""
        if isinstance(views, tuple):
            for view, (item, _) in zip(views, self._items(node, spec)):
                view._cache = (view.storage.generation, item)
        else:
            views._cache = (views.storage.generation, node)


def _is_dense(spec: TensorSpec) -> bool:
    """Are the elements without gaps or overlaps, in some order of the dimensions."""
    expected: Any = 1
    for dim in sorted(range(spec.ndim), key=lambda d: (spec.strides[d], spec.shape[d])):
        if spec.shape[dim] != 1 and spec.strides[dim] != expected:
            return False
        expected = expected * spec.shape[dim]
    return True


@contextmanager
def trace(graph: Graph) -> Iterator[Tracer]:
    """A tracer into ``graph``; inside, tensors made from nothing (``zeros(3)``) are traced, too."""
    tracer = Tracer(graph)
    saved, MODES.creator = MODES.creator, tracer.create
    entering, STEPS.entering = STEPS.entering, tracer.enter_step
    try:
        yield tracer
    finally:
        MODES.creator = saved
        STEPS.entering = entering
