"""The order of stages: the only place that knows how the layers follow each other.

captured graph -> joint graph -> halves -> primitives -> artifact
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from lamina_aot import compile_captured
from lamina_fx import Graph, TensorSpec
from lamina_fx.collector import collector_paused
from lamina_tensor import are_deterministic_algorithms_enabled, from_numpy, is_grad_enabled, set_grad_enabled
from lamina_tensor.amp import state_set

from .backends import Backend, BackendError, DeviceBackend, check_device, cuda
from .device_parts import DeviceProgram, gpus_of, split_devices
from .lowering import lower_graph
from .records import GraphRecord, forget, new_record

__all__ = ["GraphCompiler", "check_interfaces"]

_COUNTER = itertools.count()
_LAYERS = ("lamina_fx", "lamina_prims", "lamina_tensor", "lamina_dynamo", "lamina_aot", "lamina_inductor")


class GraphCompiler:
    """Compiles captured graphs with one backend. Called by the capture layer with a graph and example inputs."""

    def __init__(
        self,
        backend: Backend,
        *,
        memory_budget: float = 1.0,
        options: dict[str, Any] | None = None,
        preferred: dict[str, Any] | None = None,
    ) -> None:
        self.backend = backend
        self.memory_budget = memory_budget
        self.options = options or {}
        self.preferred = preferred or {}
        if options:
            _check_options(backend, options)

    def __call__(self, captured: Graph, inputs: Sequence[Any], context: Any = None) -> Callable[..., Sequence[Any]]:
        """Compile; returns a callable over the captured graph's inputs that returns its outputs as a tuple.

        ``context`` is what the capture layer tells beside the graph (the user's function).
        """
        if getattr(getattr(context, "frontend", None), "name", None) == "numpy":
            from .numpy_graphs import compile_arrays  # only for functions of NumPy's arrays

            return compile_arrays(captured, inputs, context, self._compile)
        return self._compile(captured, inputs, context)

    def _compile(self, captured: Graph, inputs: Sequence[Any], context: Any) -> Callable[..., Sequence[Any]]:
        name = getattr(context, "function", "graph")
        record = new_record(f"{_identifier(name)}_{next(_COUNTER)}")
        try:
            return self._compile_as(record, captured, inputs, context)
        except BaseException:  # an interrupt, too, leaves no record of what was not compiled
            forget(record)
            raise

    def _compile_as(
        self, record: GraphRecord, captured: Graph, inputs: Sequence[Any], context: Any
    ) -> Callable[..., Sequence[Any]]:
        record.note("captured", captured)
        rewrite = getattr(self._backend_for(captured), "rewrite", None)
        if rewrite is not None and (rewritten := rewrite(captured)) is not captured:
            record.note("rewritten", rewritten)
            captured = rewritten

        def compile_part(graph: Graph, part: str) -> Callable[..., Sequence[Any]]:
            return self.compile_functional(graph, part, record)

        # Capture may end inside a block that sets a mode: nodes outside of regions have those of the frame's entry.
        recording = getattr(context, "modes", {}).get("grad_mode", is_grad_enabled())
        with record.timed("total"), state_set(None), set_grad_enabled(recording):
            compiled = compile_captured(
                captured,
                inputs,
                compile_part,
                memory_budget=self.memory_budget,
                name=record.name,
                observe=record.note,
            )
        return compiled.entry

    def _backend_for(self, graph: Graph) -> Backend:
        choose = getattr(self.backend, "for_graph", None)  # by the device of the graph's tensors
        return self.backend if choose is None else choose(graph)

    @collector_paused
    def compile_functional(self, graph: Graph, part: str, record: GraphRecord) -> Callable[..., Sequence[Any]]:
        """Compile one functional core-level graph; a backward half comes when the first backward wants it."""
        with record.timed("total"):
            return self._compile_part(graph, part, record)

    def _compile_part(self, graph: Graph, part: str, record: GraphRecord) -> Callable[..., Sequence[Any]]:
        backend = self._backend_for(graph)
        options = _options_for(backend, self.preferred | self.options)
        with record.timed("decompose"):
            folder = record.dump_folder
            lowered = lower_graph(graph, backend.keep, folder and folder / f"passes-{part}")
        record.note(f"prims:{part}", lowered)
        check_device(backend, lowered)
        if backend.name == "triton" and len(gpus_of(lowered)) > 1:
            return DeviceProgram(
                split_devices(lowered),
                lambda graph, number: self._compile_for(backend, graph, f"{part}_step_{number}", options, record),
            )
        return self._compile_for(backend, lowered, part, options, record)

    def _compile_for(
        self, backend: Backend, lowered: Graph, part: str, options: dict[str, Any], record: GraphRecord
    ) -> Callable[..., Sequence[Any]]:
        with record.timed("backend"):
            artifact = _compiled(backend, lowered, part, options)
        record.keep(part, artifact)
        if any(isinstance(node.spec, TensorSpec) for node in lowered.placeholders):
            return getattr(artifact, "function", artifact)  # spares a Python frame
        return _giving_tensors(artifact)  # no input says which library's results are wanted


def _compiled(backend: Backend, graph: Graph, part: str, options: dict[str, Any]) -> Any:
    """What the backend makes of the graph. Failures of other packages' backends are told with their name."""
    if type(backend).__module__.partition(".")[0] in (*_LAYERS, "lamina"):
        return backend.compile(graph, name=part, options=options)
    try:
        artifact = backend.compile(graph, name=part, options=options)
    except Exception as error:  # code of another package: it may raise anything
        message = f"the backend {backend.name!r} ({type(backend).__module__}.{type(backend).__qualname__}) failed"
        raise BackendError(f"{message}: {type(error).__name__}: {error}") from error
    if not callable(artifact):
        raise BackendError(f"the backend {backend.name!r} returned no callable from compile(), but {artifact!r}")
    return artifact


def _giving_tensors(artifact: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
    """Like the artifact; results that are NumPy arrays become tensors over their memory."""

    def run(*inputs: Any) -> Sequence[Any]:
        return tuple([from_numpy(r) if isinstance(r, np.ndarray) else r for r in artifact(*inputs)])

    return run


def _check_options(backend: Backend, options: dict[str, Any]) -> None:
    """The backend's ``options`` are names, or name -> values; a backend that has none takes what is given."""
    known: Any = getattr(backend, "options", options)
    unknown = sorted(set(map(str, options)) - set(known))
    if unknown:
        takes = ", ".join(sorted(known)) or "none"
        if isinstance(backend, DeviceBackend):
            raise ValueError(f"neither 'cpp' nor 'triton' has an option {unknown[0]!r}; 'triton' takes: {takes}")
        raise ValueError(f"the backend {backend.name!r} has no option {unknown[0]!r}; it takes: {takes}")
    for name, given in options.items() if known is not options and isinstance(known, Mapping) else ():
        if not any(type(given) is type(value) and given == value for value in known[name]):
            *first, last = map(repr, known[name])
            raise TypeError(f"the option {name} must be {', '.join(first)} or {last}, got {given!r}")


def _options_for(backend: Backend, given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, of those that the backend has, and what PyTorch's switches say."""
    known: Any = getattr(backend, "options", given)
    options = {name: value for name, value in given.items() if name in known}
    if "allow_tf32" in known and cuda.matmul.allow_tf32:
        options.setdefault("allow_tf32", True)
    if "deterministic" in known and are_deterministic_algorithms_enabled():
        options.setdefault("deterministic", True)
    return options


def _identifier(name: str) -> str:
    """The user's own name of the function, without those of the functions around it."""
    return re.sub(r"\W+", "_", name.rpartition("<locals>.")[2]).strip("_") or "graph"


def check_interfaces() -> None:
    """Compare what the installed layers provide and accept.

    Raises:
        ImportError: two layers do not fit; names both, the interface, the versions and the command that mends it.
    """
    modules = [import_module(name) for name in _LAYERS]
    provided = {
        interface: (version, module.__name__)
        for module in modules
        for interface, version in getattr(module, "PROVIDES", {}).items()
    }
    for module in modules:
        for interface, accepted in getattr(module, "ACCEPTS", {}).items():
            if interface not in provided:
                raise ImportError(f"{module.__name__} needs the interface {interface!r}, which no installed layer has")
            version, owner = provided[interface]
            if version not in accepted:
                packages = f"{owner} {module.__name__}".replace("_", "-")
                raise ImportError(
                    f"{owner} provides version {version} of {interface!r}, {module.__name__} accepts "
                    f"{', '.join(map(str, accepted))}; run: pip install --upgrade {packages}"
                )
