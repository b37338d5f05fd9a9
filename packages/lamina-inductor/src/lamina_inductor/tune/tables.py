"""The candidates of each template, before any is ruled out."""

from __future__ import annotations

from dataclasses import replace

from .attention import attention_candidates
from .candidates import Candidate, GemmCandidate, LibraryCandidate
from .problems import AttentionProblem, GemmProblem, Problem

__all__ = ["candidates"]

_HALF = (
    # block_m, block_n, block_k, warps, stages
    (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (256, 128, 64, 8, 4), (128, 128, 64, 8, 4),
    (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 128, 32, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4),
    (64, 256, 64, 4, 3), (64, 64, 64, 4, 4), (64, 64, 32, 4, 4), (64, 32, 64, 4, 4), (32, 64, 64, 4, 4),
    (128, 32, 64, 4, 4), (32, 128, 64, 4, 4), (16, 64, 128, 4, 4), (16, 128, 64, 4, 4), (64, 16, 128, 4, 4),
    (32, 32, 64, 2, 4), (16, 32, 128, 2, 4), (16, 16, 128, 2, 3),
)  # fmt: skip

_SINGLE = (
    # without the matrix units a tile's operands stay in registers: larger ones spill, and compile for long
    (64, 64, 16, 4, 3), (64, 32, 16, 4, 3), (32, 64, 16, 4, 3), (32, 32, 32, 4, 3), (16, 64, 32, 2, 3),
    (64, 16, 32, 2, 3), (16, 16, 32, 1, 3),
)  # fmt: skip

_IN_TURNS: tuple[tuple[int, int, int, int, int], ...] = ((128, 128, 64, 4, 5),)
"""Of a group of warps; its results have shared memory of their own. (More than two results or operands beside the
product are no faster than the library's product and a kernel, and take longer to compile.)"""

_SPLITS = (2, 4, 8, 16, 32)


def candidates(problem: Problem) -> tuple[Candidate, ...]:
    """All that may be tried for a problem, without those whose tiles are far larger than it."""
    if isinstance(problem, AttentionProblem):
        return attention_candidates(problem)
    result: list[Candidate] = []
    for base in _bases(problem):
        if not _is_sized(base.block_m, problem.m) or not _is_sized(base.block_n, problem.n):
            continue
        result.append(base)
        result.extend(_variants(problem, base))
    if problem.overlaps and problem.epilogue_bytes <= 4:
        found = [GemmCandidate(*row, descriptors=True, overlapped=True) for row in _IN_TURNS]
        result.extend(c for c in found if _is_sized(c.block_m, problem.m) and _is_sized(c.block_n, problem.n))
    if not problem.taps:
        result.append(LibraryCandidate())
    return tuple(result)


def _bases(problem: GemmProblem) -> list[GemmCandidate]:
    """Tiles. Numbers of twice the width come half as many at a time."""
    if problem.tf32:
        wide = [(m, n, max(32, k // 2), w, s) for m, n, k, w, s in _HALF]
        return [GemmCandidate(*row, tf32=True) for row in dict.fromkeys(wide)]
    return [GemmCandidate(*row) for row in (_SINGLE if problem.dtype == "float32" else _HALF)]


def _is_sized(block: int, size: int) -> bool:
    return block <= 16 or block < 2 * size


def _variants(problem: GemmProblem, base: GemmCandidate) -> list[Candidate]:
    found: list[Candidate] = []
    tiles = -(-problem.m // base.block_m) * -(-problem.n // base.block_n) * problem.batch
    large = base.block_m * base.block_n >= 128 * 128
    if not problem.taps and large and tiles > 132:
        found.append(replace(base, persistent=True))
    fills = not problem.taps or problem.k // problem.taps % base.block_k == 0  # no block has two taps
    if problem.described and problem.arithmetic != "float32" and fills and base.warps % 4 == 0:
        found.append(replace(base, descriptors=True))
        if large and tiles > 132:
            found.append(replace(base, descriptors=True, persistent=True))
    if tiles < 264 and (not problem.taps or problem.batch == 1):
        steps = -(-problem.k // base.block_k)
        found.extend(replace(base, split=s) for s in _SPLITS if steps >= 4 * s and tiles * s <= 1056)
    return found
