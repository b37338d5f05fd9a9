"""Backends by name: those of this package, and those that other packages offer by the entry point group
``lamina.backends``.

A backend compiles a functional graph of primitives. ``reference`` interprets it with NumPy: slow, exact, no compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from lamina_fx import Graph, Interpreter
from lamina_prims import operator
from lamina_tensor import Tensor, from_numpy
from lamina_tensor._C import bump

__all__ = ["Backend", "ReferenceBackend", "backend_of", "list_backends"]


class Backend(Protocol):
    """Interface ``artifact``: a graph of primitives in, a callable artifact out."""

    name: str
    keep: frozenset[str]

    def compile(self, graph: Graph, *, name: str, options: dict[str, Any]) -> Any:
        """Compile; the result is called with the placeholders' values and returns the outputs as a tuple."""
        ...


@dataclass(frozen=True)
class ReferenceBackend:
    """Interprets the graph with the operators' references."""

    name: str = "reference"
    keep: frozenset[str] = frozenset()

    def compile(self, graph: Graph, *, name: str, options: dict[str, Any]) -> ReferenceArtifact:
        """Nothing to compile."""
        return ReferenceArtifact(graph)


@dataclass(frozen=True)
class ReferenceArtifact:
    """A graph to interpret. Calls take and return tensors."""

    graph: Graph
    kernels: tuple[Any, ...] = ()

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """Run node by node on the tensors' arrays; writes go to the inputs' own memory."""
        arrays = [value.detach().numpy() if isinstance(value, Tensor) else value for value in inputs]
        results = Interpreter(self.graph, operator).run(*arrays)
        for node in self.graph.nodes:
            if node.target == "copy_to":
                for placeholder, value in zip(self.graph.placeholders, inputs, strict=True):
                    if placeholder is node.args[0]:
                        bump(value)
        return tuple(_tensor(r) if hasattr(r, "dtype") else r for r in results)


def _tensor(array: Any) -> Tensor:
    """A tensor over a copy, with the strides that the array has: expanded dimensions stay so."""
    array = np.asarray(array)
    expanded = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    dense = np.array(array[expanded], order="K")
    return from_numpy(dense).expand(array.shape) if dense.shape != array.shape else from_numpy(dense)


@cache
def _offered() -> dict[str, Any]:
    from importlib.metadata import entry_points  # loads the e-mail package; most programs name no such backend

    return {point.name: point for point in entry_points(group="lamina.backends")}


def list_backends() -> list[str]:
    """Names that ``compile(backend=...)`` takes."""
    return sorted({"cpp", "reference", "triton", *_offered()})


def backend_of(name: str | Backend) -> Backend:
    """The backend of this name; a backend object is returned as it is.

    Raises:
        ValueError: there is no such backend; the message lists those there are.
        NotImplementedError: the backend cannot run anything here yet.
    """
    if not isinstance(name, str):
        if not hasattr(name, "compile"):
            raise TypeError(f"backend must be a name or an object with compile(graph, name=, options=); got {name!r}")
        return name
    if name == "reference":
        return ReferenceBackend()
    if name == "cpp":
        from lamina_inductor import CppBackend  # the code generator is loaded when something is compiled

        return CppBackend()
    if name == "triton":
        from lamina_inductor.backends.triton import TritonBackend  # as above

        backend = TritonBackend()
        backend.require_device()
        return backend
    point = _offered().get(name)
    if point is None:
        raise ValueError(f"no backend named {name!r}; there are: {', '.join(list_backends())}")
    return point.load()()
