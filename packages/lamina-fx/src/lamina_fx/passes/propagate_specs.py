"""Infer the specs of all operator calls anew from the specs of the inputs.

>>> from lamina_fx import parse, TensorSpec
>>> class Same:
...     effect = None
...     def __init__(self, id): self.id = id
...     def infer(self, args, kwargs): return args[0]
>>> print(propagate_specs(parse("graph { %x: float32[2] = placeholder  %e = exp(%x)  return %e }"), Same))
graph {
  %x: float32[2] = placeholder
  %e: float32[2] = exp(%x)
  return %e
}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph import Graph
from ..interpreter import describe
from ..node import map_arguments
from ..spec import Spec

__all__ = ["propagate_specs"]


def propagate_specs(graph: Graph, resolver: Callable[[str], Any], *, inputs: Sequence[Spec] | None = None) -> Graph:
    """Set the spec and the effect of each ``call_function``; ``inputs`` gives the placeholders other specs first.

    Raises:
        ValueError: not as many input specs as placeholders.
        Exception: what ``infer`` raises, with a note that names the node and the user's line.
    """
    if inputs is not None:
        placeholders = graph.placeholders
        if len(placeholders) != len(inputs):
            raise ValueError(f"the graph has {len(placeholders)} inputs, got {len(inputs)} specs")
        for node, spec in zip(placeholders, inputs, strict=True):
            node.spec = spec
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        args, kwargs = map_arguments((node.args, node.kwargs), lambda n: n.spec)
        if node.target == "getitem":
            node.spec = args[0][args[1]] if isinstance(args[0], tuple) else None
            continue
        operator = resolver(node.target)
        try:
            node.spec = operator.infer(args, kwargs)
        except Exception as error:  # whatever a meta function raises; it goes on, with the place
            error.add_note(f"while inferring {describe(node)}")
            raise
        node.effect = operator.effect
    return graph
