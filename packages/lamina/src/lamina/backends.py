"""Backends by name: those of this package, and those that other packages offer by the entry point group
``lamina.backends``.

A backend compiles a functional graph of primitives. ``reference`` interprets it with NumPy: slow, exact, no compiler.
``cudnn`` and its like are PyTorch's switches for other hardware: they may be set, and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from lamina_dynamo.errors import BreakReason, NotResumable
from lamina_fx import Graph, Interpreter, Node, TensorSpec
from lamina_prims import operator
from lamina_prims.strides import dense_order
from lamina_tensor import Tensor, from_numpy
from lamina_tensor import cuda as device_library
from lamina_tensor._C import bump
from lamina_tensor.backends import cuda, cudnn, mkldnn, mps
from lamina_tensor.cuda.activation import active_provider

from .gpu import join_gpu

__all__ = [
    "Backend",
    "BackendError",
    "DeviceBackend",
    "ReferenceBackend",
    "backend_of",
    "cuda",
    "cudnn",
    "list_backends",
    "mkldnn",
    "mps",
]

__path__: list[str] = []  # PyTorch's paths below this one (``lamina.backends.cudnn``) can be imported


class BackendError(RuntimeError):
    """A backend that cannot be loaded or used, or that failed; the message names it."""


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
        specs = [placeholder.spec for placeholder in self.graph.placeholders]
        arrays = [_array(value, spec) for value, spec in zip(inputs, specs, strict=True)]
        results = _LayingOut(self.graph, operator).run(*arrays)
        for node in self.graph.nodes:
            if node.target == "copy_to":
                for placeholder, value in zip(self.graph.placeholders, inputs, strict=True):
                    if placeholder is node.args[0]:
                        bump(value)
        return tuple(_tensor(r) if hasattr(r, "dtype") else r for r in results)


class _LayingOut(Interpreter):
    """Values lie in memory as their specs say: ``as_strided`` counts on it, references may do otherwise."""

    def call_function(self, node: Node, args: Any, kwargs: Any) -> Any:
        value, spec = super().call_function(node, args, kwargs), node.spec
        if not (isinstance(value, np.ndarray) and isinstance(spec, TensorSpec)) or value.size < 2:
            return value
        wanted = TensorSpec(value.shape, spec.dtype, self._sized(spec.strides))
        strides = tuple([n * value.itemsize for n in wanted.strides])
        pairs = zip(value.shape, value.strides, strides, strict=True)
        if all(size == 1 or a == b for size, a, b in pairs) or dense_order(wanted) is None:
            return value
        placed = np.ndarray(value.shape, value.dtype, strides=strides)
        placed[...] = value
        return placed


def _array(value: Any, spec: Any) -> Any:
    """A tensor's memory; a number of the host that the graph takes as a tensor without dimensions."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    return np.asarray(value, np.float64) if isinstance(spec, TensorSpec) else value


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


class DeviceBackend:
    """What ``compile`` uses when no backend is named: ``cpp`` for graphs of CPU tensors, ``triton`` for graphs of CUDA
    tensors. Each is loaded when a graph for it comes."""

    name = "default"
    keep: frozenset[str] = frozenset()

    @property
    def options(self) -> Mapping[str, tuple[Any, ...]]:
        """Those of ``triton``; the other backend has none."""
        from lamina_inductor.backends.triton import TritonBackend  # only where options are given

        return TritonBackend.options

    def for_graph(self, graph: Graph) -> Backend:
        """The backend for the devices of a graph's tensors."""
        if not on_gpu(graph):
            return backend_of("cpp")
        if not device_library.is_available():  # the program itself says so, in the words of eager
            raise NotResumable(BreakReason("the device 'cuda' cannot be used here", "", *_line_on_gpu(graph)))
        return backend_of("triton")

    def compile(self, graph: Graph, *, name: str, options: dict[str, Any]) -> Any:
        """Compile with the backend for the graph."""
        return self.for_graph(graph).compile(graph, name=name, options=options)


def on_gpu(graph: Graph) -> bool:
    """Has the graph a CUDA tensor."""
    return any(map(_is_on_gpu, graph.nodes))


def _is_on_gpu(node: Node) -> bool:
    specs = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    return any(isinstance(s, TensorSpec) and s.device.type == "cuda" for s in specs)


def _line_on_gpu(graph: Graph) -> tuple[str, int, str]:
    lines = [node.meta["source"] for node in graph.nodes if _is_on_gpu(node) and "source" in node.meta]
    return lines[0] if lines else ("", 0, "")


def check_device(backend: Backend, graph: Graph) -> None:
    """Refuse a graph of CPU tensors for the backend of GPUs.

    Raises:
        BackendError: says which backend takes it.
    """
    if backend.name != "triton" or on_gpu(graph):
        return
    if any(isinstance(node.spec, TensorSpec) for node in graph.placeholders):
        raise BackendError(
            "backend='triton' compiles functions of CUDA tensors, and these tensors are on the CPU: use backend='cpp', "
            "or name no backend"
        )


def list_backends() -> list[str]:
    """Names that ``compile(backend=...)`` takes."""
    return sorted({"cpp", "reference", "triton", *_offered()})


def backend_of(name: str | Backend | None) -> Backend:
    """The backend of this name; a backend object is returned as it is; None: by the tensors' device.

    Raises:
        ValueError: there is no such backend; the message lists those there are.
        TypeError: an object that is no backend; the message says what it lacks.
        BackendError: the entry point of another package does not load, or gives no backend; the message names it.
        RuntimeError, ImportError: the backend cannot run anything here; the message says what to install, or that the
            stub provider runs eager code only.
    """
    if name is None:
        return DeviceBackend()
    if not isinstance(name, str):
        return _checked(name, f"the backend {getattr(name, 'name', None) or type(name).__name__!r}")
    if name == "reference":
        return ReferenceBackend()
    if name == "cpp":
        from lamina_inductor import CppBackend  # the code generator is loaded when something is compiled

        return CppBackend()
    if name == "triton":
        return _triton()
    point = _offered().get(name)
    if point is None:
        raise ValueError(f"no backend named {name!r}; there are: {', '.join(list_backends())}")
    return _loaded(name, point)


def _triton() -> Backend:
    from lamina_inductor.backends.triton import TritonBackend  # the code generator is loaded when it is asked for

    join_gpu()
    backend = TritonBackend()
    try:
        backend.require_device()
    except (RuntimeError, ImportError) as error:
        if device_library.is_available() and active_provider().name == "stub":
            raise BackendError(
                "the CUDA provider 'stub' (LAMINA_CUDA_PROVIDER=stub) runs eager code only: compiled CUDA code needs a "
                "GPU, its driver and Triton"
            ) from None
        if isinstance(error, ImportError):
            raise
        raise RuntimeError(
            f"{error}. backend='triton' needs a GPU: for CPU tensors use backend='cpp', or name no backend"
        ) from None
    return backend


def _loaded(name: str, point: Any) -> Backend:
    """The backend of an entry point, which names a class or a function without parameters that makes it."""
    where = f"the backend {name!r} (entry point {point.value!r}{_package_of(point)})"
    try:
        backend = point.load()()
    except Exception as error:  # importing another package's code may raise anything
        raise BackendError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    return _checked(backend, where)


def _package_of(point: Any) -> str:
    package = getattr(point, "dist", None)
    return f" of the package {package.name!r}" if package is not None else ""


def _checked(backend: Any, where: str) -> Any:
    if not callable(getattr(backend, "compile", None)):
        raise TypeError(f"{where} is no backend: it has no method compile(graph, *, name, options)")
    if not isinstance(getattr(backend, "name", None), str):
        raise TypeError(f"{where} has no attribute 'name', a str")
    if not isinstance(getattr(backend, "keep", None), (set, frozenset)):
        raise TypeError(
            f"{where} has no attribute 'keep', the set of ids of composites that it takes whole: "
            "keep = frozenset() when all are to be decomposed"
        )
    return backend
