"""A graph to a ``GpuArtifact``: from the cache, or emitted, compiled and stored.

A key says what the artifact was made from; the description in the file says by which compiler and for which GPU. An
artifact of another triton is made anew, unless there is no triton here: then it runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lamina_fx import CPU, Graph, Node, TensorSpec

from ...artifact import ArtifactError
from ...cache.keys import graph_key
from ...cache.store import ArtifactStore, default_store
from ...host.description import KernelInfo
from ...host.encoding import NotStorable
from ...host.gpu import GpuInfo, open_cublas
from ...ir.program import Gemm
from .artifact import GpuArtifact, GpuDescription, images_of, to_bytes
from .compile import CompiledKernel, toolchain
from .gpu_plan import make_plan
from .program import TritonKernel, TritonProgram
from .workers import Compilation, compile_kernels

__all__ = ["artifact_key", "build_artifact", "device_index", "find_artifact"]


def device_index(graph: Graph) -> int:
    """Number of the GPU that the graph's tensors are on.

    Raises:
        RuntimeError: they are on several.
    """
    found = {spec.device.index or 0 for node in graph.nodes for spec in _specs(node) if spec.device.type == "cuda"}
    if len(found) > 1:
        names = " and ".join(f"cuda:{index}" for index in sorted(found))
        raise RuntimeError(
            f"a compiled graph runs on one GPU, this one has tensors on {names}; compile the parts apart"
        )
    return found.pop() if found else 0


def _specs(node: Node) -> list[TensorSpec]:
    specs = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    return [s for s in specs if isinstance(s, TensorSpec)]


def artifact_key(graph: Graph, options: dict[str, Any], info: GpuInfo) -> str | None:
    """Name of the graph's entry in the cache; None when it cannot have one."""
    key = graph_key(graph, options | {"target": f"cuda {info.sm} {info.units}"})
    return None if key is None else f"{key}-gpu"


def find_artifact(
    key: str,
    info: GpuInfo,
    store: ArtifactStore | None = None,
    wider: Callable[[], GpuArtifact] | None = None,
) -> GpuArtifact | None:
    """The stored artifact, if there is one that is whole, for this GPU, and made by the triton that is here. ``wider``
    compiles one for larger sizes."""
    entry = (store or default_store()).find(key)
    if entry is None:
        return None
    try:
        found = GpuArtifact.open(entry, wider=wider)
    except ArtifactError:
        return None
    here, made = toolchain(), found.description
    return found if made.sm == info.sm and here in (None, made.toolchain) else None


def build_artifact(
    graph: Graph,
    emitted: TritonProgram,
    info: GpuInfo,
    options: dict[str, Any],
    key: str | None,
    store: ArtifactStore | None = None,
    begun: Compilation | None = None,
    wider: Callable[[], GpuArtifact] | None = None,
) -> GpuArtifact:
    """Compile the kernels, and store the artifact under ``key``. ``begun``: what compiles some of them already;
    ``wider`` compiles an artifact for larger sizes.

    Raises:
        MissingTriton: triton is not installed.
    """
    multiplies = any(type(extern.step) is Gemm for extern in emitted.externs)
    meanwhile = partial(open_cublas, device_index(graph)) if multiplies else None
    compiled = compile_kernels(emitted.kernels, info.sm, begun, meanwhile)
    description = describe(graph, emitted, compiled, info, options)
    code = b"".join([k.cubin for k in compiled])
    try:
        stored = to_bytes(description)
    except NotStorable:
        return GpuArtifact(description, code, wider=wider)

    def write(path: Path) -> bytes:
        path.write_bytes(code)
        return stored

    entry = (store or default_store()).add(key, write) if key else None
    return GpuArtifact(description, code, entry, wider)


def describe(
    graph: Graph,
    emitted: TritonProgram,
    compiled: list[CompiledKernel],
    info: GpuInfo,
    options: dict[str, Any],
) -> GpuDescription:
    """The description of a program whose kernels are compiled."""
    program = emitted.program
    plan = make_plan(
        emitted,
        compiled,
        host_inputs=_host_inputs(graph),
        host_outputs=_host_outputs(graph),
        allow_tf32=bool(options.get("allow_tf32")),
    )
    return GpuDescription(
        name=emitted.name,
        toolchain=toolchain() or "",
        sm=info.sm,
        device=device_index(graph),
        plan=plan,
        images=images_of(compiled),
        labels=tuple(
            [None if b is None else node.name for b, node in zip(program.inputs, graph.placeholders, strict=True)]
        ),
        symbols=tuple([s.symbol.name for s in program.sizes]),
        checks=tuple([(c.number, c.error, c.template, c.size) for c in program.checks]),
        constants=tuple([_on_host(c) for c in program.constants]),
        kernels=tuple([_kernel_info(emitted, k) for k in emitted.kernels]),
        source=emitted.source,
        captured=_graph_use(options.get("cuda_graphs")),
    )


def _graph_use(asked: Any) -> int:
    """See ``GpuDescription.captured``."""
    if asked is not None and type(asked) is not bool:
        raise TypeError(f"the option cuda_graphs must be True, False or None, got {asked!r}")
    return 1 if asked is None else 2 * asked


def _kernel_info(emitted: TritonProgram, kernel: TritonKernel) -> KernelInfo:
    roles = {p.name: p.role for k in emitted.program.kernels if kernel.name.startswith(k.name) for p in k.params}
    names = [name for name, _ in kernel.parameters if name in roles]
    reads = tuple([n for n in names if roles[n] != "out"])
    writes = tuple([n for n in names if roles[n] != "in"])
    note = ", ".join(f"{k}={v}" for k, v in (kernel.constants | kernel.options).items())
    return KernelInfo(kernel.name, kernel.source, kernel.origins, reads, writes, note)


def _host_inputs(graph: Graph) -> frozenset[int]:
    placeholders = enumerate(graph.placeholders)
    return frozenset(k for k, node in placeholders if isinstance(node.spec, TensorSpec) and node.spec.device == CPU)


def _host_outputs(graph: Graph) -> frozenset[int]:
    (output,) = [node for node in graph.nodes if node.op == "output"]
    results = output.args[0] if isinstance(output.args[0], (tuple, list)) else (output.args[0],)
    tensors = [r.spec for r in results if isinstance(r, Node) and isinstance(r.spec, TensorSpec)]
    return frozenset(k for k, spec in enumerate(tensors) if spec.device == CPU)


def _on_host(array: Any) -> Any:
    """A constant as an array of NumPy's."""
    return np.ascontiguousarray(array.get() if hasattr(array, "get") else array).reshape(array.shape)
