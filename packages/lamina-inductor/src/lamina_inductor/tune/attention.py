"""Attention's candidates, and what they would cost: parts of ``tables`` and ``model`` that know of queries and keys."""

from __future__ import annotations

from dataclasses import replace

from .candidates import AttentionCandidate
from .devices import Gpu
from .problems import AttentionProblem

__all__ = ["attention_candidates", "estimate_attention"]

_FORWARD = (
    # block_m (queries), block_n (keys), warps, stages
    (128, 128, 8, 3), (128, 64, 4, 3), (128, 64, 8, 3), (64, 128, 4, 3), (64, 64, 4, 3), (64, 64, 4, 2),
    (128, 32, 4, 3), (64, 32, 4, 3), (32, 64, 4, 2), (32, 32, 4, 2), (16, 64, 4, 2), (16, 32, 4, 2), (16, 16, 2, 1),
)  # fmt: skip

_FEW_QUERIES = ((16, 128, 4, 3), (16, 64, 4, 4), (32, 128, 4, 3), (32, 64, 4, 3), (64, 128, 4, 3))
"""Over many keys: what counts is how much of these is on its way."""

_BACKWARD = (
    # block_m (queries walked), block_n (keys kept)
    (32, 64, 4, 3), (64, 64, 4, 3), (64, 128, 8, 3), (64, 64, 4, 2), (128, 128, 8, 2), (64, 32, 4, 2),
    (32, 64, 4, 2), (32, 32, 4, 2), (32, 32, 4, 1), (16, 32, 4, 1), (16, 16, 2, 1),
)  # fmt: skip

_OVERLAPPED = {64: ((64, 128, 4, 2),), 128: ((128, 128, 4, 2), (64, 64, 4, 2))}
"""By the width of a head, of the kernels whose products overlap with probabilities. Of 128 queries: of two groups of
warps, which share keys."""

_OVERLAPPED_BACKWARD = (64, 64, 4, 2)

_SPLIT_FORWARD = ((64, 64, 4, 2), (64, 32, 4, 2), (128, 32, 8, 2), (32, 32, 4, 2), (16, 32, 4, 2))
_SPLIT_BACKWARD = ((32, 64, 4, 2), (16, 64, 4, 2), (32, 64, 8, 2), (32, 32, 4, 2))
"""Of float32 on the matrix units, by three products of numbers of half the digits (which lie in registers, too)."""

_PLAIN = ((32, 32, 4, 2), (32, 32, 8, 1), (16, 32, 4, 1), (16, 16, 4, 1))
"""Of float32 without the matrix units, forward and backward."""

FEW = 64
"""Queries up to which parts of the keys may be walked by programs of their own."""

_SPLITS = (2, 4, 8, 16, 32, 64)


def attention_candidates(problem: AttentionProblem) -> tuple[AttentionCandidate, ...]:
    """All that may be tried."""
    found = _tiles(problem)
    if problem.backward:
        if problem.dtype != "float32":
            limit = 168 if problem.width <= 64 else 255  # three programs, or two, on a multiprocessor
            found += [replace(c, registers=limit) for c in found[:4]]
        found += [replace(c, descriptors=True) for c in found] if problem.described else []
        if problem.overlaps:
            found.append(AttentionCandidate(*_OVERLAPPED_BACKWARD, descriptors=True, overlapped=True))
        return tuple(found)
    if problem.mask and problem.dtype != "float32":
        found.append(AttentionCandidate(128, 128, 8, 2, registers=128))
    if problem.overlaps and problem.queries > FEW:
        tiles = [tile for tile in _OVERLAPPED[problem.width] if problem.queries % tile[0] == 0]
        found += [AttentionCandidate(*tile, descriptors=True, overlapped=True) for tile in tiles]
    if problem.queries > FEW or problem.causal:
        return tuple(found)
    parted = [replace(c, split=s) for c in found for s in _SPLITS if problem.keys >= 2 * c.block_n * s]
    return tuple(found + parted)


def _tiles(problem: AttentionProblem) -> list[AttentionCandidate]:
    """Without variants."""
    few = not problem.backward and problem.queries <= FEW and not problem.causal
    rows = _BACKWARD if problem.backward else (*(_FEW_QUERIES if few else ()), *_FORWARD)
    if problem.dtype != "float32" or problem.tf32:
        return [AttentionCandidate(*row, precision="tf32" if problem.tf32 else "ieee") for row in rows]
    rows = _SPLIT_BACKWARD if problem.backward else _SPLIT_FORWARD
    split = [AttentionCandidate(*row, precision="tf32x3") for row in rows]
    return split + [AttentionCandidate(*row) for row in _PLAIN]


def estimate_attention(
    problem: AttentionProblem, candidate: AttentionCandidate, gpu: Gpu, resident: int, registers: int
) -> float:
    """Seconds; ``resident``: programs that a multiprocessor can hold, ``registers``: of a thread."""
    kept, walked = candidate.block_m, candidate.block_n
    length, other = problem.queries, problem.keys
    if problem.backward:  # the gradients of keys and values cost most: they keep keys and walk queries
        kept, walked, length, other = walked, kept, other, length
    programs = -(-length // kept) * problem.heads * candidate.split
    busy = min(resident, 4, max(1, programs // gpu.multiprocessors))
    steps = float(-(-other // (walked * candidate.split)) * walked)
    if problem.causal:  # and the tiles that the diagonal cuts
        steps = steps / 2 + (kept + walked) / 2
    products = 6 if problem.backward else 2
    rate = gpu.rates["tf32" if candidate.precision != "ieee" else problem.dtype] / gpu.multiprocessors
    if problem.dtype == "float32" and candidate.precision == "ieee":
        rate *= {16: 0.1, 32: 0.3, 64: 0.5}.get(min(kept, walked), 0.5)
    elif candidate.precision == "tf32x3":
        rate *= {16: 0.1, 32: 0.14}.get(min(kept, walked), 0.16) * (1.25 if max(kept, walked) >= 64 else 1.0)
    else:
        rate *= {16: 0.2, 32: 0.63}.get(min(kept, walked), 0.75) if problem.backward else _forward_rate(candidate)
    arithmetic = products * kept * steps * (problem.width + problem.value_width) / rate
    elementwise = kept * steps * (30 if problem.backward else 20) / (128 * 1.7e9)
    overlap = max(0.0, 0.7 - 0.15 * (busy - 1))  # of the smaller part, what other programs do not hide
    one = (max(arithmetic, elementwise) + overlap * min(arithmetic, elementwise)) * busy
    one *= 1.1 if candidate.stages < 3 else 1.0
    one *= 1.15 if problem.backward and registers > 200 else 1.0
    one *= 1.3 if problem.backward and resident == 1 else 1.0
    one *= 0.8 if problem.mask and candidate.registers == 128 else 1.0  # most tiles of a mask are whole, or empty
    one *= 0.8 if candidate.descriptors and kept == walked == 64 else 1.0
    start = 1.5e-6
    if candidate.overlapped:  # faster tiles, which are waited for longer in the beginning
        one, start = one * (0.6 if problem.backward else 0.45 if kept > 64 else 0.7), 2e-6
    waves = -(-programs // (gpu.multiprocessors * busy))
    time = waves * (one + start)
    if not problem.backward:
        time = max(time, _moved(problem, candidate, programs, resident, gpu))
    if candidate.split > 1:
        parts = problem.heads * candidate.split * problem.queries * (problem.value_width + 2) * 4
        time += gpu.launch + 2 * parts / gpu.memory
    return gpu.launch * (3 if problem.backward else 1) + time


def _moved(problem: AttentionProblem, candidate: AttentionCandidate, programs: int, resident: int, gpu: Gpu) -> float:
    """Seconds that keys and values are on their way: what waits for a latency of 0.9 us at a time."""
    size = 4 if problem.dtype == "float32" else 2
    row = (problem.width + problem.value_width) * size
    flying = candidate.block_n * row * max(1, candidate.stages - 1) * min(programs, resident * gpu.multiprocessors)
    return problem.heads * problem.keys * row / min(gpu.memory, flying / 0.9e-6)


def _forward_rate(candidate: AttentionCandidate) -> float:
    """The part of the rate that a forward pass with these tiles reaches."""
    part = {16: 0.15, 32: 0.25}.get(min(candidate.block_m, candidate.block_n), 0.75)
    return part * (1.6 if candidate.block_m >= 128 and candidate.warps >= 8 else 1.0)
