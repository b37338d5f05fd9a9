"""The Triton backend: pointwise and reduction kernels for GPUs, as text that compiles without one.

``TritonBackend().emit(graph)`` gives a ``TritonProgram``; ``compile_ptx(kernel, sm)`` compiles one of its kernels (this
needs the extra ``lamina-inductor[triton]``, the rest does not). ``TritonBackend().compile(graph)`` gives a callable
that runs on a GPU, through the launcher in ``lamina_inductor.host``.
"""

from __future__ import annotations

from .artifact import GpuArtifact
from .backend import TritonBackend
from .compile import CompiledKernel, MissingTriton, compile_ptx, load_function
from .elementwise import supports
from .program import ExternStep, Scratch, TensorDescriptor, TritonKernel, TritonLaunch, TritonProgram

__all__ = [
    "CompiledKernel", "ExternStep", "GpuArtifact", "MissingTriton", "Scratch", "TensorDescriptor", "TritonBackend",
    "TritonKernel", "TritonLaunch", "TritonProgram", "compile_ptx", "load_function", "supports",
]  # fmt: skip
