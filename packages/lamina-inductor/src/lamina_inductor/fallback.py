"""Graphs without a compiler: the reference interpreter behind the interface of ``Artifact``. Right, and slow.

``interpreted(graph, name)`` says once per process why it runs and what would make it fast.
"""

from __future__ import annotations

import functools
import os
import warnings
from typing import Any

import numpy as np

from lamina_fx import Graph, Interpreter
from lamina_prims import operator

from .host.description import KernelInfo
from .host.threads import launcher

__all__ = ["InterpretedArtifact", "interpreted"]


class InterpretedArtifact:
    """A graph that runs operator by operator on arrays. No kernels, no source; cannot be saved."""

    __slots__ = ("graph", "kernels", "name", "source")

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name
        self.kernels: tuple[KernelInfo, ...] = ()
        self.source = ""

    @property
    def function(self) -> Any:
        """What a call runs."""
        return self.__call__

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the graph; results are of the kind of the first tensor input."""
        host = launcher()
        tensors = [
            i for i, node in enumerate(self.graph.placeholders) if hasattr(node.spec, "shape") and i < len(inputs)
        ]
        arrays = [host.array_of(v) if i in tensors else v for i, v in enumerate(inputs)]
        results = Interpreter(self.graph, operator).run(*arrays)
        flat = results if isinstance(results, (tuple, list)) else (results,)
        owners = {id(array): value for array, value in zip(arrays, inputs, strict=True)}
        like = inputs[tensors[0]] if tensors else None
        return tuple([owners.get(id(r), _wrap(host, r, like)) for r in flat])

    def __repr__(self) -> str:
        return f"<InterpretedArtifact {self.name}: {len(self.graph.nodes)} nodes>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Not possible.

        Raises:
            RuntimeError: always: nothing was compiled.
        """
        raise RuntimeError(f"{self.name} was not compiled (there is no C++ compiler), so it cannot be saved to {path}")


def _wrap(host: Any, result: Any, like: Any) -> Any:
    if isinstance(result, np.generic):
        result = np.asarray(result)
    return host.like(result, like) if isinstance(result, np.ndarray) and like is not None else result


@functools.cache
def _note(reason: str) -> None:
    warnings.warn(f"compiled functions run on the slow reference interpreter: {reason}", stacklevel=4)


def interpreted(graph: Graph, name: str, reason: str) -> InterpretedArtifact:
    """The fallback for ``graph``; ``reason`` is said once."""
    _note(reason)
    return InterpretedArtifact(graph, name)
