"""The C++ backend as other layers see it: a graph of primitives in, a callable artifact out.

>>> from lamina_fx import Graph, GraphBuilder, TensorSpec, float32
>>> from lamina_prims import ops
>>> graph = Graph()
>>> x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((4,), float32)))
>>> _ = graph.output((ops.exp(x).node,))
>>> artifact = CppBackend().compile(graph, name="f")      # doctest: +SKIP
>>> [k.name for k in artifact.kernels]                    # doctest: +SKIP
['k0_exp']
"""

from __future__ import annotations

from typing import Any

from lamina_fx import Graph
from lamina_prims.hand_written_attention import fuse_attention

from .backends import cpp
from .cache.keys import graph_key
from .fallback import interpreted
from .ir.program import Program

__all__ = ["CppBackend"]


class CppBackend:
    """Compiles graphs to C++ kernels.

    keep: composites that are passed through as they are: attention (softmax and norms fuse from their primitives).
    """

    name = "cpp"
    keep: frozenset[str] = frozenset({"attention_with_lse", "attention_backward"})
    options: frozenset[str] = frozenset()
    """Names that ``compile(options=...)`` may hold: none yet."""

    def rewrite(self, graph: Graph) -> Graph:
        """A captured graph before differentiation: attention that is spelt out becomes one operator."""
        return fuse_attention(graph)

    def program(self, graph: Graph, *, name: str = "graph") -> Program:
        """The kernels and steps for ``graph``, before any C++ is made: for inspection and tests."""
        from .schedule.program import build_program  # a program all of whose graphs are in the cache needs no scheduler

        return build_program(graph, name=name, supports=cpp.supports)

    def compile(self, graph: Graph, *, name: str = "graph", options: dict[str, Any] | None = None) -> Any:
        """An ``Artifact`` for a graph of strict primitives with ``copy_to`` write-backs at its end.

        Found in the cache by the graph's content, else lowered, printed and compiled. Without a C++ compiler the
        result is an ``InterpretedArtifact``: right, slow, and said once.
        """
        options = options or {}
        key = graph_key(graph, options)
        try:
            found = cpp.find_compiled(key, name=name) if key else None
            return found or cpp.compile_program(self.program(graph, name=name), key=key or "", **options)
        except cpp.NoCompiler as reason:
            return interpreted(graph, name, str(reason))
