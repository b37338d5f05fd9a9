"""The Triton backend as other layers see it: a graph of primitives in, kernels out.

>>> from lamina_fx import Graph, GraphBuilder, TensorSpec, float32
>>> from lamina_prims import ops
>>> graph = Graph()
>>> x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((4096,), float32)))
>>> _ = graph.output((ops.exp(x).node,))
>>> emitted = TritonBackend().emit(graph, name="f")
>>> [(launch.kernel.name, launch.grid) for launch in emitted.launches]
[('k0_exp', (4,))]
>>> print(emitted.kernels[0].source)
@triton.jit
def k0_exp(b0, b1, XBLOCK: tl.constexpr):
    # exp
    i0 = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    v1 = tl.load(b0 + i0)
    v2 = tl.exp(v1)
    tl.store(b1 + i0, v2)
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

from lamina_fx import Graph
from lamina_prims.hand_written_attention import fuse_attention

from ...cache.store import default_store
from ...host.gpu import GpuInfo, gpu_info
from ...ir.program import Program
from ...schedule.program import build_program
from ...schedule.style import GRID_LOOPS
from ...tune.records import Records
from ...tune.tuner import Tuner
from .artifact import GpuArtifact
from .build import artifact_key, build_artifact, device_index, find_artifact
from .compile import require_triton, toolchain
from .elementwise import supports, supports_in_order
from .emit import emit_program
from .measuring import GpuMeasure
from .products import with_dense_products
from .program import TritonKernel, TritonProgram
from .templates.expand import Planner
from .templates.planner import TemplatePlanner
from .workers import begin

__all__ = ["TritonBackend"]


_MANY_NODES = 40
"""A graph with so many has enough kernels to compile in several processes."""


class TritonBackend:
    """Generates Triton kernels (needs no triton), compiles them (needs it, but no GPU) and runs them.

    keep: composites that are passed through as they are: attention has templates (softmax and norms fuse from their
    primitives). ``planner`` chooses the templates; by default a cost model of the device does (of an H100 where none
    is asked for), or measurements with the option ``max_autotune``.
    """

    name = "triton"
    keep: frozenset[str] = frozenset(("attention_with_lse", "attention_backward", "topk"))
    options: Mapping[str, tuple[Any, ...]] = MappingProxyType({
        "allow_tf32": (True, False), "cuda_graphs": (True, False, None), "deterministic": (True, False),
        "index_bits": (32, 64), "max_autotune": (True, False),
    })  # fmt: skip
    """Names and values in ``compile(options=...)``: may products of float32 round their operands; run as a CUDA graph
    (True: even where inputs or results must be copied for it, False: never); add up by index in a certain order, by the
    reference; 32: symbolic sizes that need indices of 64 bits have a program of their own, compiled when they come;
    choose templates and their tiles by measuring."""

    def __init__(self, planner: Planner | None = None) -> None:
        self.planner = planner

    def rewrite(self, graph: Graph) -> Graph:
        """A captured graph before differentiation: attention that is spelt out becomes one operator."""
        return fuse_attention(graph)

    def program(self, graph: Graph, *, name: str = "graph", deterministic: bool = False) -> Program:
        """The kernels and steps for ``graph`` in kernel IR, with loops for a grid of programs."""
        known = supports_in_order if deterministic else supports
        return build_program(graph, name=name, supports=known, loops=GRID_LOOPS)

    def emit(
        self,
        graph: Graph,
        *,
        name: str = "graph",
        externs: bool = True,
        planner: Planner | None = None,
        deterministic: bool = False,
        made: Callable[[TritonKernel], None] | None = None,
        index_bits: int = 32,
    ) -> TritonProgram:
        """The kernels of a graph of strict primitives, and how they are launched.

        ``externs``: steps without a generated kernel (products, convolutions, operators that run by their reference,
        complex numbers) are listed; False: they are an error. ``deterministic``: no kernel adds with atomics. ``made``
        is told of the templates' kernels, which take longest to compile, before the others are printed. ``index_bits``:
        32 takes symbolic sizes for small enough (``TritonProgram.below`` says when they are), 64 does not.

        Raises:
            NotImplementedError: with ``externs=False`` there is such a step; the message names it and the user's line.
        """
        chosen = planner or self.planner or TemplatePlanner()
        program = self.program(graph, name=name, deterministic=deterministic)
        result = emit_program(with_dense_products(program), chosen, made, index_bits)
        if not externs and result.externs:
            raise result.externs[0].refuse()
        return result

    def require_device(self) -> None:
        """Called before anything is captured for this backend.

        Raises:
            RuntimeError: no driver, an old one, or no GPU.
            MissingTriton: triton is not installed or too old.
        """
        gpu_info()
        require_triton()

    def compile(self, graph: Graph, *, name: str = "graph", options: dict[str, Any] | None = None) -> GpuArtifact:
        """A ``GpuArtifact`` for a graph of strict primitives with ``copy_to`` write-backs at its end.

        Found in the cache by the graph's content (then triton is not imported), else emitted and compiled; processes
        that want the same graph meanwhile wait for the first.

        Raises:
            RuntimeError: there is no GPU to compile for, or the graph's tensors are on several.
            MissingTriton: triton is not installed.
        """
        return self._compile(graph, name, dict(options or {}), gpu_info(device_index(graph)))

    def _compile(self, graph: Graph, name: str, options: dict[str, Any], info: GpuInfo) -> GpuArtifact:
        key = artifact_key(graph, options, info)
        wider = partial(self._compile, graph, name, options | {"index_bits": 64}, info)
        if key is None:
            return self._build(graph, name, options, info, None, wider)
        found = find_artifact(key, info, wider=wider)
        if found is not None:
            return found
        with default_store().only_one(key):
            found = find_artifact(key, info, wider=wider)
            return found or self._build(graph, name, options, info, key, wider)

    def _build(
        self,
        graph: Graph,
        name: str,
        options: dict[str, Any],
        info: GpuInfo,
        key: str | None,
        wider: Callable[[], GpuArtifact],
    ) -> GpuArtifact:
        begun = begin(info.sm) if len(graph.nodes) >= _MANY_NODES else None
        planner = self.planner or _planner(info, device_index(graph), options)
        asked = {"deterministic": bool(options.get("deterministic")), "index_bits": options.get("index_bits", 32)}
        with begun or nullcontext():
            made = None if begun is None else begun.add
            emitted = self.emit(graph, name=name, planner=planner, made=made, **asked)
            return build_artifact(graph, emitted, info, options, key, begun=begun, wider=wider)


def _planner(info: GpuInfo, device: int, options: dict[str, Any]) -> Planner:
    """The planner for a device: by the model, or by measurements."""
    tf32 = bool(options.get("allow_tf32"))
    if not options.get("max_autotune"):
        return TemplatePlanner(info.sm, info.units, tf32=tf32)
    versions = f"{info.name} sm_{info.sm} {info.units} {info.driver} {toolchain()}"
    return TemplatePlanner(info.sm, info.units, Tuner(GpuMeasure(info, device, tf32), Records(versions)), tf32)
