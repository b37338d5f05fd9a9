"""The tuner's measurements on a GPU: a trial is compiled, run a few and a few more times, and the difference counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from lamina_fx import Graph

from ...host.gpu import GpuInfo, gpu_launcher
from .artifact import GpuArtifact
from .build import describe
from .program import TritonProgram
from .templates.trial import repeated
from .workers import compile_kernels, processes

__all__ = ["GpuMeasure"]

FEW, MANY, ROUNDS = 2, 12, 3


class GpuMeasure:
    """``Measure`` of the tuner for one device."""

    def __init__(self, info: GpuInfo, device: int = 0, allow_tf32: bool = False) -> None:
        self.info, self.device = info, device
        self.options = {"allow_tf32": allow_tf32, "cuda_graphs": True}  # the device's time, not that of launches
        self.at_once = processes()

    def prepare(self, trials: Sequence[TritonProgram]) -> None:
        """Compile all kernels into triton's cache."""
        kernels = list({k: None for t in trials for k in repeated(t, 1).kernels})
        try:
            compile_kernels(kernels, self.info.sm)
        except RuntimeError:
            return  # measuring that trial says so again

    def __call__(self, trial: TritonProgram) -> float:
        """Seconds of one run of the trial's step."""
        few, many = (self._artifact(trial, count) for count in (FEW, MANY))
        self._seconds(many)
        best = min(self._seconds(many) for _ in range(ROUNDS)) - min(self._seconds(few) for _ in range(ROUNDS))
        return max(best, 1e-9) / (MANY - FEW)

    def _artifact(self, trial: TritonProgram, count: int) -> GpuArtifact:
        graph = Graph()
        graph.output(())
        emitted = repeated(trial, count)
        compiled = compile_kernels(emitted.kernels, self.info.sm)
        description = replace(describe(graph, emitted, compiled, self.info, self.options), device=self.device)
        return GpuArtifact(description, b"".join([k.cubin for k in compiled]))

    def _seconds(self, artifact: GpuArtifact) -> float:
        launcher = gpu_launcher()
        stream = launcher.current_stream(self.device)
        start = time.perf_counter()
        (done,) = artifact()
        launcher.read_memory(done.data_ptr(), 4, stream)
        return time.perf_counter() - start
