"""A graph together with what it reads, as something to call.

>>> from lamina_fx import parse
>>> m = GraphModule({"w": 10}, parse("graph { %x = placeholder  %w = get w  %mul = mul(%x, %w)  return %mul }"))
>>> m(4)
40
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .codegen import compile_python, python_code
from .expect import expect
from .graph import Graph
from .interpreter import Resolver, read_attribute
from .python_operators import python_operator

__all__ = ["GraphModule"]


class GraphModule:
    """Calls the Python code of ``graph``.

    Args:
        root: object or mapping whose attributes ``get_attr`` and ``call_module`` nodes name; copied into
            ``graph.attributes`` when a mapping.
        graph: what to run. After changing it, call ``recompile`` (assigning ``graph`` does so).
        resolver: from an operator id to a callable; Python's own operators by default.
        class_name: for messages.
    """

    def __init__(
        self,
        root: Any,
        graph: Graph,
        resolver: Resolver | None = None,
        class_name: str = "GraphModule",
    ) -> None:
        expect("GraphModule", graph, Graph, "a root and a Graph")
        if isinstance(root, Mapping):
            for name, value in root.items():
                graph.attributes.setdefault(name, value)
            root = None
        elif root is not None:
            graph.has_owner = True
        self.root = root
        self.resolver = python_operator if resolver is None else resolver
        self.class_name = class_name
        self._graph = graph
        self.recompile()

    @property
    def graph(self) -> Graph:
        """The graph; assign another one to run that."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        graph.has_owner = self.root is not None
        self._graph = graph
        self.recompile()

    @property
    def code(self) -> str:
        """The Python that is run."""
        return self._code.source

    def recompile(self) -> str:
        """Generate the code again; returns it."""
        self._function, self._code = compile_python(self._graph, self.resolver)
        return self._code.source

    def readable(self) -> str:
        """The Python without the bookkeeping of memory."""
        return python_code(self._graph).source

    def print_readable(self) -> str:
        """Print ``readable()`` and return it."""
        text = self.readable()
        print(text)
        return text

    def attribute(self, path: str) -> Any:
        """What ``get_attr`` reads at this path."""
        return read_attribute(self._graph, self.root, path)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        return self._function(self, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        return self._function(self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        graph = self.__dict__.get("_graph")
        if graph is None or name[:2] == "__":
            raise AttributeError(name)
        if name in graph.attributes:
            value = graph.attributes[name]
            return GraphModule(self.root, value, self.resolver, name) if isinstance(value, Graph) else value
        if any(key.startswith(f"{name}.") for key in graph.attributes):
            return _Prefix(self, name)
        return read_attribute(graph, self.root, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        return GraphModule(self.root, self._graph.copy(), self.resolver, self.class_name)

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphModule, (self.root, self._graph, self.resolver, self.class_name)

    def __repr__(self) -> str:
        return f"{self.class_name}(\n{self.readable()}\n)"


class _Prefix:
    """The start of a dotted path among the graph's attributes."""

    def __init__(self, owner: GraphModule, path: str) -> None:
        self._owner = owner
        self._path = path

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        attributes = self._owner.graph.attributes
        if path not in attributes and any(key.startswith(f"{path}.") for key in attributes):
            return _Prefix(self._owner, path)
        return self._owner.attribute(path)
