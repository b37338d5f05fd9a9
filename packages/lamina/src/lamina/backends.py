"""Backends by name: those of this package, and those that other packages offer by the entry point group
``lamina.backends``.

A backend compiles a functional graph of primitives. ``reference`` interprets it with NumPy: slow, exact, no compiler.
``cudnn`` and its like are PyTorch's switches for other hardware: they may be set, and change nothing.
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
from lamina_tensor.backends import cuda, cudnn, mkldnn, mps

__all__ = ["Backend", "ReferenceBackend", "backend_of", "cuda", "cudnn", "list_backends", "mkldnn", "mps"]

__path__: list[str] = []  # PyTorch's paths below this one (``lamina.backends.cudnn``) can be imported


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
    options: frozenset[str] = frozenset()

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
    """A tensor over a copy, with the strides that the array has: expanded dimensions and gaps stay."""
    array = np.asarray(array)
    if array.flags.forc or not array.size or min(array.strides) < 0:
        return from_numpy(np.array(array, order="K"))
    extent = 1 + sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)) // array.itemsize
    placed = np.lib.stride_tricks.as_strided(np.zeros(extent, array.dtype), array.shape, array.strides)
    placed[...] = array
    return from_numpy(placed)


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
