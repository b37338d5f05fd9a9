"""Nodes of the backward graph.

A node knows how to turn the gradients of an operation's results into those of its inputs. Its ``edges`` say where
those go: ``(node, index of its output)``, a leaf tensor, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from .._C import TensorBase, alias, is_grad_enabled
from ..plan import Plan
from .reduce_gradient import reduce_gradient
from .stale import StaleValue

__all__ = ["MODIFIED", "Edge", "Node", "OperatorNode", "check_version", "edge_of", "next_sequence"]

Edge = Any
_sequence = count()
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation: "
_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class Node:
    """One step of the backward graph.

    ``hooks`` maps an output's index to functions that see, and may replace, its gradient; ``retained`` maps it to
    weak references to tensors that keep their gradient.
    """

    __slots__ = (
        "__weakref__",
        "edges",
        "hooks",
        "metadata",
        "metas",
        "post_hooks",
        "pre_hooks",
        "retained",
        "sequence",
    )

    def __init__(self, edges: Sequence[Edge], metas: Sequence[Any]) -> None:
        self.edges = edges
        self.metas = metas
        self.sequence = next(_sequence)
        self.hooks: dict[int, dict[int, Callable[..., Any]]] | None = None
        self.retained: dict[int, list[Any]] | None = None
        self.pre_hooks: dict[int, Callable[..., Any]] | None = None
        self.post_hooks: dict[int, Callable[..., Any]] | None = None

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        """Gradients for the edges from those of the outputs (None: no gradient)."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop what was saved for the backward pass."""

    @property
    def released(self) -> bool:
        """True once the backward pass has gone through and dropped what was saved."""
        return False

    def name(self) -> str:
        """Name that ``print(tensor)`` shows."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes (and leaf tensors) that receive this node's gradients."""
        return tuple((None, 0) if e is None else e if type(e) is tuple else (e, 0) for e in self.edges)

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node ran; a returned tuple replaces grad_inputs."""
        from .hooks import add_hook

        self.post_hooks = {} if self.post_hooks is None else self.post_hooks
        return add_hook(self.post_hooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(grad_outputs)`` before this node runs; a returned tuple replaces them."""
        from .hooks import add_hook

        self.pre_hooks = {} if self.pre_hooks is None else self.pre_hooks
        return add_hook(self.pre_hooks, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


def next_sequence() -> int:
    """A number above those of all nodes there are, below those of nodes to come."""
    return next(_sequence)


def edge_of(tensor: Any) -> Edge:
    """Where the gradient of a tensor that requires it goes."""
    if tensor._base is not None and not tensor._no_grad_view and tensor._grad_version != tensor._version:
        from .inplace import refresh_view  # a view whose base was written since

        refresh_view(tensor)
    node = tensor._grad_fn
    return tensor if node is None else (node, tensor._output_nr)


def check_version(name: str, tensor: Any, version: int, shape: Any) -> None:
    """Refuse a saved tensor that was written since.

    Raises:
        RuntimeError: in PyTorch's words; names the operation and both versions.
    """
    if tensor._version != version:
        raise RuntimeError(
            f"{MODIFIED}[lamina.{_type_name(tensor)} {list(shape)}], which is an input or output of {name}, is at "
            f"version {tensor._version}; expected version {version} instead. Hint: clone() it before the write, or "
            "do the write out of place."
        )


def _type_name(tensor: Any) -> str:
    from ..dtype_names import legacy_type_name

    return legacy_type_name(tensor.dtype)


class OperatorNode(Node):
    """The backward step of an operator: calls its vjp rule."""

    __slots__ = ("out", "plan", "specs", "values", "versions")

    def __init__(self, plan: Plan, edges: list[Edge], metas: list[Any], values: list[Any], versions: list[Any]) -> None:
        self.edges = edges
        self.metas = metas
        self.sequence = next(_sequence)
        self.hooks = self.retained = self.pre_hooks = self.post_hooks = None
        self.plan = plan
        self.values: list[Any] | None = values
        self.versions = versions
        self.out: Any = None
        self.specs: dict[int, Any] | None = None

    def name(self) -> str:
        """The operator's name and ``Backward``."""
        return f"{self.plan.name}0"

    def save_out(self, out: Any) -> None:
        """Keep the results, without keeping this node alive through them."""
        self.out = tuple([(alias(o, type(o), False), o._version) if isinstance(o, TensorBase) else o for o in out])

    def release(self) -> None:
        """Drop saved values."""
        self.values = self.out = None

    @property
    def released(self) -> bool:
        """True after ``release``."""
        return self.values is None

    def saved_out(self) -> Any:
        """The results as they were, with their history when a graph of the backward pass is made."""
        found = []
        for index, (tensor, version) in enumerate(self.out):
            checked = self.checked(tensor, version)
            if checked is not tensor:  # written since: matters only if the rule uses it (batch norm wants the others)
                found.append(checked)
                continue
            if is_grad_enabled() and tensor.dtype.kind in ("float", "complex"):
                tensor = alias(tensor, type(tensor), False)
                tensor._grad_fn = self
                tensor._output_nr = index
            found.append(tensor)
        return found[0] if self.plan.outputs == 1 and len(found) == 1 else tuple(found)

    def saved_value(self, index: int) -> Any:
        """An input as it was."""
        values = self.values
        assert values is not None
        if index >= len(values):
            return self.plan.defaults[index]
        version = self.versions[index]
        value = values[index]
        if version is None:
            return value
        if type(version) is list:
            return [v if each is None else self.checked(v, each) for v, each in zip(value, version)]
        return self.checked(value, version)

    def checked(self, value: Any, version: int) -> Any:
        """A saved input; what stands for it when it was written since."""
        if value._version == version:
            return value
        try:
            check_version(self.name(), value, version, value._sizes)
        except RuntimeError as error:
            return StaleValue(value, error)

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        """Call the rule; bring its results to the shapes and dtypes of the inputs."""
        if self.values is None:
            raise RuntimeError(_FREED)
        plan = self.plan
        if len(grads) < plan.outputs:
            grads = [*grads, *[None] * (plan.outputs - len(grads))]
        arguments: list[Any] = []
        for want in plan.rule_arguments:
            if want == "ct":
                arguments.append(grads[0] if plan.outputs == 1 and len(grads) == 1 else tuple(grads))
            elif want == "out":
                arguments.append(self.saved_out())
            elif want == "needs":
                arguments.append(self.needs())
            elif want < 0:
                arguments.append(self.specs[~want])  # type: ignore[index]
            else:
                arguments.append(self.saved_value(want))
        results = plan.op.vjp_rule(*arguments)  # type: ignore[misc]
        return self.flatten(results if type(results) in (tuple, list) else (results,))

    def needs(self) -> tuple[bool, ...]:
        """For each tensor parameter, whether its gradient is wanted."""
        needs: list[bool] = []
        at = 0
        for kind, value in zip(self.plan.kinds, self.lengths()):
            if kind == 1:
                needs.append(self.edges[at] is not None)
                at += 1
            elif kind == 2:
                needs.append(any(e is not None for e in self.edges[at : at + value]))
                at += value
        return tuple(needs)

    def lengths(self) -> list[int]:
        """For each parameter the number of edges it has."""
        count_of = []
        assert self.values is not None
        for index, kind in enumerate(self.plan.kinds):
            if kind != 2:
                count_of.append(kind)
            else:
                value = self.values[index] if index < len(self.values) else None
                count_of.append(len(value) if type(value) in (list, tuple) else 0 if value is None else 1)
        return count_of

    def flatten(self, results: Sequence[Any]) -> list[Any]:
        """One gradient per edge, reduced to its input's shape and dtype."""
        flat: list[Any] = []
        at = 0
        for kind, length in zip(self.plan.kinds, self.lengths()):
            if kind == 0:
                continue
            result = results[at] if at < len(results) else None
            at += 1
            if kind == 2:
                flat.extend(result if result is not None else [None] * length)
            else:
                flat.append(result)
        metas = self.metas
        for index, gradient in enumerate(flat):
            meta = metas[index]
            if meta is None:
                flat[index] = None
            elif gradient is not None:
                sizes, wanted = gradient._sizes, meta[0]  # lengths first: items of symbols are compared by a guard
                if len(sizes) != len(wanted) or sizes != wanted or gradient.dtype is not meta[1]:
                    flat[index] = reduce_gradient(gradient, wanted, meta[1], self.name())
        return flat
