"""What a candidate would take: resources, which rule it out before it is compiled, and an estimate of its time.

The time of a product is the number of waves of programs times that of one program: the largest of its arithmetic, its
loads through the second-level cache and its share of the memory's bandwidth, and behind it the epilogue, which overlaps
with arithmetic only where another program shares the multiprocessor. The numbers rank candidates; they are no forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

from .attention import estimate_attention
from .candidates import AttentionCandidate, Candidate, GemmCandidate, LibraryCandidate
from .devices import Gpu
from .problems import AttentionProblem, GemmProblem, Problem

__all__ = ["Resources", "estimate", "fits", "rank", "resources"]

_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one program: bytes of shared memory, registers of a thread, threads."""

    shared: int
    registers: int
    threads: int


def resources(problem: Problem, candidate: Candidate, gpu: Gpu) -> Resources:
    """What a program of the candidate takes, about."""
    size = _BYTES[problem.dtype]
    if isinstance(candidate, GemmCandidate):
        tile = candidate.block_m * candidate.block_n
        stage = (candidate.block_m + candidate.block_n) * candidate.block_k * size
        threads = candidate.warps * 32
        pipeline = stage * max(candidate.stages, 1)
        # The epilogue's operands lie otherwise than the sum; a persistent program's next tile is loaded meanwhile.
        exchange = tile * max(size, problem.epilogue_widest) if problem.epilogue_bytes else 0
        cut = bool(problem.epilogue) and not problem.taps and candidate.split == 1
        slices = slices_of_tile(tile // threads, _is_heavy(problem)) if cut else 1
        if candidate.overlapped:  # two groups' results, and their registers, which the compiler deals out
            return Resources(pipeline + 2 * tile * size, 168, 384)
        if candidate.persistent:
            shared = pipeline + exchange // (slices if problem.epilogue_widest > size else max(2, slices))
        else:
            shared = max(pipeline, exchange // slices)
        operands = 0 if gpu.sm >= 90 and candidate.warps % 4 == 0 else stage // 4 // threads // 2
        # wide operands of an epilogue (an optimizer's moments) are as many registers again
        wide = tile // threads // slices if candidate.split == 1 and problem.epilogue_widest > size else 0
        return Resources(shared, tile // threads + wide + operands + 48, threads)
    assert isinstance(candidate, AttentionCandidate) and isinstance(problem, AttentionProblem)
    threads = candidate.warps * 32
    keys = candidate.block_n * (problem.width + problem.value_width) * size
    scores = candidate.block_m * candidate.block_n * (2 if problem.backward else 1)
    sums = candidate.block_m * (problem.value_width + (problem.width if problem.backward else 0))
    queries = candidate.block_m * problem.width * size * (2 if problem.backward else 1)
    masks = 0 if not problem.mask else candidate.block_m * candidate.block_n * (1 if problem.mask == "bool" else 4)
    shared = keys * candidate.stages + queries + masks * candidate.stages
    wide = 2 if problem.dtype == "float32" and candidate.precision != "tf32" else 1  # operands lie in registers, too
    registers = wide * (scores * 3 // 2 + sums) // threads + 40
    return Resources(shared, min(registers, candidate.registers or registers), threads)


def slices_of_tile(held: int, heavy: bool) -> int:
    """In how many slices an epilogue finishes a tile. held: sums of a thread; heavy: it reads and writes three whole
    matrices or more. (Less fits into registers as it is, and slices cost light epilogues a twentieth.)"""
    return 4 if heavy and held >= 128 else 1


def _is_heavy(problem: GemmProblem) -> bool:
    return problem.epilogue_bytes >= 3 * _BYTES[problem.dtype]


def _is_slow_to_compile(problem: GemmProblem, candidate: GemmCandidate) -> bool:
    """Wide operands of an epilogue (an optimizer's moments) in slices: the assembler takes 12 s, for no gain."""
    held = candidate.block_m * candidate.block_n // (32 * candidate.warps)
    cut = not problem.taps and candidate.split == 1 and slices_of_tile(held, _is_heavy(problem)) > 1
    return cut and problem.epilogue_widest > _BYTES[problem.dtype]


def fits(problem: Problem, candidate: Candidate, gpu: Gpu) -> bool:
    """Can the candidate run, with registers to spare?"""
    if isinstance(candidate, LibraryCandidate):
        return True
    described = problem.described and gpu.sm >= 90
    if candidate.descriptors and not described:
        return False
    if isinstance(problem, AttentionProblem) and isinstance(candidate, AttentionCandidate) and candidate.overlapped:
        return problem.overlaps and gpu.sm == 90
    if isinstance(candidate, GemmCandidate) and candidate.overlapped and (not problem.overlaps or gpu.sm != 90):  # type: ignore[union-attr]
        return False
    if isinstance(candidate, GemmCandidate) and _is_slow_to_compile(problem, candidate):
        return False
    need = resources(problem, candidate, gpu)
    spare = 2 << 10 if isinstance(candidate, AttentionCandidate) else 0  # for the exchange of maxima and sums
    return (
        need.shared + spare <= gpu.shared and need.registers <= 255 and need.registers * need.threads <= gpu.registers
    )


def resident(need: Resources, gpu: Gpu) -> int:
    """Programs that share a multiprocessor."""
    by_registers = gpu.registers // max(1, need.registers * need.threads)
    by_shared = gpu.shared_total // (need.shared + 1024)
    return max(1, min(by_registers, by_shared, gpu.threads // need.threads))


def estimate(problem: Problem, candidate: Candidate, gpu: Gpu) -> float:
    """Seconds."""
    if isinstance(problem, AttentionProblem):
        assert isinstance(candidate, AttentionCandidate)
        need = resources(problem, candidate, gpu)
        return estimate_attention(problem, candidate, gpu, resident(need, gpu), need.registers)
    if isinstance(candidate, LibraryCandidate):
        return _library(problem, gpu)
    assert isinstance(candidate, GemmCandidate)
    return _gemm(problem, candidate, gpu)


def rank(problem: Problem, candidates: tuple[Candidate, ...], gpu: Gpu) -> list[Candidate]:
    """Those that fit, the one with the smallest estimate first; equals keep their order."""
    return sorted([c for c in candidates if fits(problem, c, gpu)], key=lambda c: estimate(problem, c, gpu))


# -- products --------------------------------------------------------------------------------------------


def _gemm(problem: GemmProblem, candidate: GemmCandidate, gpu: Gpu) -> float:
    size = _BYTES[problem.dtype]
    need = resources(problem, candidate, gpu)
    slots = resident(need, gpu)
    tiles = -(-problem.m // candidate.block_m) * -(-problem.n // candidate.block_n) * problem.batch
    programs = tiles * candidate.split
    steps = -(-problem.k // (candidate.block_k * candidate.split))
    area = candidate.block_m * candidate.block_n
    depth = steps * candidate.block_k
    if candidate.overlapped:
        return _in_turns(problem, candidate, gpu, tiles, 2.0 * area * depth)
    rate = gpu.rates[problem.arithmetic] / gpu.multiprocessors * _efficiency(problem, candidate, gpu)
    busy = min(slots, max(1, programs // gpu.multiprocessors))
    arithmetic = 2.0 * area * depth / rate * busy
    bytes_in = (candidate.block_m + candidate.block_n) * depth * size
    loads = bytes_in / (gpu.cache / gpu.multiprocessors) * busy / (1.05 if candidate.descriptors else 1.0)
    after = area * (4 if candidate.split > 1 else problem.epilogue_bytes or size) / (gpu.memory / gpu.multiprocessors)
    after *= 0.5 if candidate.persistent or busy > 1 else 1.0
    work = area * problem.epilogue_cost / (128.0 * 1.7e9) / (2 if busy > 1 or candidate.persistent else 1)
    fill = 1.0e-6 + 0.1e-6 * candidate.stages
    fill += 4.8e-6 if _is_heavy(problem) and candidate.split == 1 else 0.0  # slices wait for what they read
    fill += 3.5e-6 if slots == 1 and not candidate.persistent else 0.0  # nothing hides how a program begins and ends
    waves = -(-programs // (gpu.multiprocessors * busy))
    last = programs - (waves - 1) * gpu.multiprocessors * busy
    share = 1.0 if last >= gpu.multiprocessors * busy else max(1.0 / busy, last / (gpu.multiprocessors * busy))
    one = max(arithmetic, loads) + after + work * busy + fill
    total = one * (waves - 1 + (share if busy > 1 else 1.0))
    rows = problem.m / max(1, problem.taps)  # taps read what their neighbours have read: it is in the cache
    moved = (rows + problem.n) * problem.k * size * problem.batch / _bandwidth(candidate, size, programs, slots, gpu)
    extra = 0.0
    if candidate.split > 1:
        extra = gpu.launch + problem.m * problem.n * problem.batch * 4 * (candidate.split + 1) / gpu.memory
    return gpu.launch + max(total, moved) + extra


def _in_turns(problem: GemmProblem, candidate: GemmCandidate, gpu: Gpu, tiles: int, flops: float) -> float:
    """Seconds where two groups of warps make tiles in turn: the products follow each other without a pause, unless what
    is behind them takes longer."""
    product = flops / (gpu.rates[problem.arithmetic] / gpu.multiprocessors * 0.8)
    area = candidate.block_m * candidate.block_n
    size = problem.epilogue_bytes or _BYTES[problem.dtype]
    stored = area * size / (gpu.memory / gpu.multiprocessors)
    behind = area * problem.epilogue_cost / (32.0 * 1.7e9) / 4 + stored
    each = max(product, (product + behind) / 2, stored)
    return gpu.launch + -(-tiles // gpu.multiprocessors) * each + behind + 3e-6


def _bandwidth(candidate: GemmCandidate, size: int, programs: int, slots: int, gpu: Gpu) -> float:
    """Bytes/s from memory that the loads in flight can keep up: what waits for a latency of 0.9 us at a time."""
    resident_programs = min(programs, slots * gpu.multiprocessors)
    flying = (candidate.block_m + candidate.block_n) * candidate.block_k * size * max(1, candidate.stages - 1)
    return min(gpu.memory, resident_programs * flying / 0.9e-6)


def _efficiency(problem: GemmProblem, candidate: GemmCandidate, gpu: Gpu) -> float:
    """The part of the rate that tiles of this form reach."""
    if problem.arithmetic == "float32":  # the plain units' operands come from shared memory, again for each small tile
        return {16: 0.08, 32: 0.2}.get(min(candidate.block_m, candidate.block_n), 0.25)
    side = min(candidate.block_m, candidate.block_n)
    found = {16: 0.22, 32: 0.4, 64: 0.72}.get(side, 0.86)
    large = candidate.block_m * candidate.block_n >= 128 * 256
    if large:
        turned = problem.taps > 1 and candidate.descriptors  # such a product is made transposed
        wide = candidate.block_m > candidate.block_n if turned else candidate.block_n > candidate.block_m
        found = 0.97 if wide else 0.9
        found *= 0.97 if candidate.stages > 3 else 1.0
    elif side == 128 and candidate.warps > 4:
        found = 0.8
    if gpu.sm >= 90 and candidate.warps < 4:
        found *= 0.7
    if candidate.block_k < 64:
        found *= 0.95
    if candidate.stages < 3:
        found *= 0.9
    if candidate.persistent and not large:
        found *= 0.9
    if candidate.descriptors:
        found *= 1.015 if large else 1.08
    contiguous = bool(problem.left) and bool(problem.right)
    if problem.tf32:  # the matrix units want both with the sum's elements together
        contiguous = problem.left == problem.right == "k"
        found *= 0.85
    return found if contiguous else found * 0.5


def _library(problem: GemmProblem, gpu: Gpu) -> float:
    """The library's best kernel, about, and a kernel for the epilogue."""
    size = _BYTES[problem.dtype]
    flops = 2.0 * problem.m * problem.n * problem.k * problem.batch
    tiles = -(-problem.m // 128) * -(-problem.n // 128) * problem.batch
    filled = min(1.0, tiles / gpu.multiprocessors)
    waves = tiles / gpu.multiprocessors
    part = max(waves / -(-waves // 1), 0.8) if waves > 1 else max(filled, 0.7)  # it has other tiles, and splits sums
    compute = flops / (gpu.rates[problem.arithmetic] * gpu.library * part)
    moved = ((problem.m + problem.n) * problem.k + problem.m * problem.n) * size * problem.batch / gpu.memory
    time = gpu.launch + max(compute, moved)
    if problem.epilogue:
        elements = problem.m * problem.n * problem.batch
        time += gpu.launch + elements * (size + problem.epilogue_bytes) / (0.85 * gpu.memory)
    return time
