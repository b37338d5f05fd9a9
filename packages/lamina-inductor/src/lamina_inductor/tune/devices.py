"""What the cost model knows of GPUs: numbers of one table, by compute capability.

Rates are peaks of the arithmetic units at the clock that long products reach; bandwidths are what a copy and a walk
through the second-level cache reach. Sources: CUDA C++ Programming Guide (limits by compute capability), NVIDIA's
data sheets of the largest GPU of each kind, and copies and products measured on an H200 (the numbers of 90 alone are
fitted to measurements).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["GPUS", "Gpu", "gpu_of"]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU.

    shared: bytes of shared memory for one program; shared_total: of a multiprocessor. rates: FLOP/s of matrix
    products by element type (float32: without the matrix units; tf32: with them). memory, cache: bytes/s. launch:
    seconds that a kernel takes at least.
    """

    sm: int
    multiprocessors: int
    shared: int
    shared_total: int
    registers: int
    threads: int
    rates: dict[str, float]
    memory: float
    cache: float
    cache_bytes: int
    launch: float
    library: float

    def with_multiprocessors(self, count: int) -> Gpu:
        """The same with fewer or more multiprocessors, and the rates that these have."""
        factor = count / self.multiprocessors
        rates = {name: rate * factor for name, rate in self.rates.items()}
        return replace(self, multiprocessors=count, rates=rates, cache=self.cache * factor)


def _rates(half: float, single: float) -> dict[str, float]:
    return {"float16": half, "bfloat16": half, "float32": single, "tf32": half / 2}


GPUS: dict[int, Gpu] = {
    80: Gpu(
        80, 108, 163 << 10, 164 << 10, 65536, 2048, _rates(290e12, 18e12), 1.75e12, 4.5e12, 40 << 20, 3e-6, 0.92
    ),
    86: Gpu(86, 84, 99 << 10, 100 << 10, 65536, 1536, _rates(140e12, 25e12), 0.85e12, 3e12, 6 << 20, 3e-6, 0.9),
    89: Gpu(89, 128, 99 << 10, 100 << 10, 65536, 1536, _rates(300e12, 60e12), 0.92e12, 5e12, 72 << 20, 3e-6, 0.9),
    90: Gpu(
        90, 132, 227 << 10, 228 << 10, 65536, 2048, _rates(840e12, 50e12), 4.3e12, 10.7e12, 50 << 20, 2e-6, 0.95
    ),
    100: Gpu(
        100, 148, 227 << 10, 228 << 10, 65536, 2048, _rates(1900e12, 60e12), 7.2e12, 20e12, 120 << 20, 2e-6, 0.97
    ),
    120: Gpu(
        120, 170, 99 << 10, 100 << 10, 65536, 1536, _rates(200e12, 90e12), 1.6e12, 8e12, 96 << 20, 2e-6, 0.95
    ),
}  # fmt: skip
"""By compute capability; ``library``: the part of the rate that the library's products reach on large matrices."""


def gpu_of(sm: int, multiprocessors: int | None = None) -> Gpu:
    """The entry for a compute capability, or the nearest older one."""
    known = max((k for k in GPUS if k <= sm), default=80)
    found = replace(GPUS[known], sm=sm)
    return found if multiprocessors is None else found.with_multiprocessors(multiprocessors)
