"""Run a graph node by node.

An operator id is turned into a callable by a resolver, so the graph layer knows no operator itself.

>>> from lamina_fx import Graph
>>> g = Graph()
>>> x = g.placeholder("x")
>>> _ = g.output(g.call_function("add", (x, 1)))
>>> Interpreter(g).run(41)
42
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .expect import expect
from .graph import Graph
from .node import Node, map_arguments
from .python_operators import python_operator
from .spec import ScalarSpec, Spec, TensorSpec
from .symbolic import Expr, Symbol, SymInt

__all__ = ["Interpreter", "Resolver", "read_attribute"]

Resolver = Callable[[str], Callable[..., Any]]
"""From an operator id to what is called for it."""

Hook = Callable[[Node, Any], None]


class Interpreter:
    """Runs ``graph``; override ``run_node`` or one of the six kind methods to do something else.

    Values are dropped after their last use. An error gets a note that names the node and the user's line. Symbolic
    sizes among the arguments become the sizes that the inputs have.

    Args:
        graph: what to run.
        resolver: from an operator id to a callable; by default Python's own operators and wrapped functions.
        owner: object whose attributes ``get_attr`` and ``call_module`` read when the graph has none of that name.
        before: called with (node, (args, kwargs)) before each node.
        after: called with (node, value) behind each node.
    """

    def __init__(
        self,
        graph: Graph,
        resolver: Resolver | None = None,
        *,
        owner: Any = None,
        before: Hook | None = None,
        after: Hook | None = None,
    ) -> None:
        expect("Interpreter", graph, Graph, "a Graph")
        self.graph = graph
        self.resolver = python_operator if resolver is None else resolver
        self.owner = owner
        self.before = before
        self.after = after
        self.env: dict[Node, Any] = {}
        self.sizes: dict[Expr, int] = {}
        """Values of symbols; ``run`` adds those that are sizes of the inputs."""

    def run(self, *inputs: Any, initial: Mapping[Node, Any] | None = None) -> Any:
        """Run with these values for the placeholders, in order; returns the graph's result.

        ``initial`` gives values of nodes that are then not computed.

        Raises:
            TypeError: not as many inputs as placeholders (one with a default may be left out).
        """
        self._check_inputs(inputs)
        self.inputs = iter(inputs)
        self.env = dict(initial) if initial else {}
        last_use = last_uses(self.graph)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            value = self._run_noted(node)
            if node.op == "output":
                self.env = {}
                return value
            self.env[node] = value
            for dead in last_use.get(node, ()):
                self.env.pop(dead, None)
        return None

    def _check_inputs(self, inputs: tuple[Any, ...]) -> None:
        placeholders = self.graph.placeholders
        if len(inputs) > len(placeholders) or any(not p.args for p in placeholders[len(inputs) :]):
            names = ", ".join(p.name for p in placeholders)
            raise TypeError(f"the graph takes {len(placeholders)} inputs ({names}), got {len(inputs)}")

    def _run_noted(self, node: Node) -> Any:
        try:
            return self.run_node(node)
        except Exception as error:  # whatever an operator raises; it goes on, with the place
            error.add_note(f"while running {describe(node)}")
            raise

    def run_node(self, node: Node) -> Any:
        """Compute one node from ``self.env``."""
        args = map_arguments(node.args, self.env.__getitem__)
        kwargs = map_arguments(node.kwargs, self.env.__getitem__) if node.kwargs else {}
        if self.sizes and node.op != "placeholder":
            args, kwargs = self._sized(args), self._sized(kwargs)
        if self.before is not None:
            self.before(node, (args, kwargs))
        value = getattr(self, node.op)(node, args, kwargs)
        if self.after is not None:
            self.after(node, value)
        return value

    def _sized(self, value: Any) -> Any:
        """``value`` with each symbolic size whose symbols are known replaced by the number."""
        kind = type(value)
        if kind is SymInt:
            expr = value.expr
            return expr.evaluate(self.sizes) if expr.free_symbols <= self.sizes.keys() else value
        if kind is tuple or kind is list:
            return kind([self._sized(v) for v in value])
        if kind is dict:
            return {k: self._sized(v) for k, v in value.items()}
        if kind is slice:
            return slice(self._sized(value.start), self._sized(value.stop), self._sized(value.step))
        return value

    def placeholder(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The next input, or the default."""
        value = next(self.inputs, *args)
        if node.spec is not None:
            bind_sizes(node.spec, value, self.sizes)
        return value

    def get_attr(self, node: Node, args: Any, kwargs: Any) -> Any:
        """An attribute of the graph or its owner."""
        return read_attribute(self.graph, self.owner, node.target)

    def call_function(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Call the operator."""
        if node.target == "getitem":
            return args[0][args[1]]
        return self.resolver(node.target)(*args, **kwargs)

    def call_method(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], node.target)(*args[1:], **kwargs)

    def call_module(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Call a module among the graph's or the owner's attributes."""
        module = read_attribute(self.graph, self.owner, node.target)
        if isinstance(module, Graph):
            return Interpreter(module, self.resolver, owner=self.owner).run(*args, **kwargs)
        return module(*args, **kwargs)

    def output(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The result."""
        return args[0]


def bind_sizes(spec: Spec, value: Any, sizes: dict[Expr, int]) -> None:
    """Note in ``sizes`` the values of the symbols that are a size of ``spec``, or the number itself."""
    if isinstance(spec, TensorSpec):
        for size, actual in zip(spec.shape, getattr(value, "shape", ()), strict=False):
            _bind(size, actual, sizes)
    elif isinstance(spec, ScalarSpec):
        _bind(spec.value, value, sizes)


def _bind(size: Any, actual: Any, sizes: dict[Expr, int]) -> None:
    if type(size) is SymInt and type(actual) is int and isinstance(size.expr, Symbol):
        sizes[size.expr] = actual


def read_attribute(graph: Graph, owner: Any, path: str) -> Any:
    """The attribute at a dotted path: of the graph if it has it, otherwise of ``owner``.

    Raises:
        AttributeError: neither has it.
    """
    if path in graph.attributes:
        return graph.attributes[path]
    if owner is None:
        known = ", ".join(graph.attributes) or "none"
        raise AttributeError(f"the graph has no attribute {path!r} (it has: {known})")
    value = owner
    for part in path.split("."):
        if hasattr(value, part):
            value = getattr(value, part)
        elif part.isdigit():
            value = value[int(part)]
        else:
            raise AttributeError(f"{type(owner).__name__} has no attribute {path!r}")
    return value


def describe(node: Node) -> str:
    """A node as a line of text, with the user's line when known."""
    args = ", ".join([f"%{a.name}" if type(a) is Node else repr(a) for a in node.args])
    args += "".join([f", {k}={v!r}" for k, v in node.kwargs.items()])
    source = node.meta.get("source")
    where = f", from {source[0]}:{source[1]} in {source[2]}" if source else ""
    return f"%{node.name} = {node.target}({args}){where}"


def last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For each node, the nodes whose values nothing needs after it."""
    seen: set[Node] = set()
    last: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        for used in (*node.all_input_nodes, node):
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last
