"""What a tuner chooses among: block sizes, warps and pipeline stages of a template, or a library's product.

Candidates are data; the templates print them, ``model`` says what they would cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

__all__ = ["AttentionCandidate", "Candidate", "GemmCandidate", "LibraryCandidate", "label"]


@dataclass(frozen=True, slots=True)
class GemmCandidate:
    """A product (or a convolution as one) by tiles of ``block_m`` x ``block_n``, ``block_k`` of the sum at a time.

    group: rows of tiles that are walked together, so that their operands stay in the second-level cache. split: parts
    of the sum that programs of their own add up (a second kernel adds the parts, in order). persistent: one program
    for each multiprocessor walks the tiles. descriptors: operands are read through tensor descriptors (sm_90 and up).
    tf32: operands of float32 are rounded to 10 bits, for the matrix units. overlapped: two groups of four warps make
    tiles in turn, so that the epilogue of one overlaps with products of the other (sm_90 alone).
    """

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    group: int = 8
    split: int = 1
    persistent: bool = False
    descriptors: bool = False
    tf32: bool = False
    overlapped: bool = False


@dataclass(frozen=True, slots=True)
class AttentionCandidate:
    """Attention by ``block_m`` queries against ``block_n`` keys at a time.

    descriptors: rows are read through tensor descriptors (sm_90 and up). split: parts of the keys that programs of
    their own walk (a second kernel combines them, in order). precision: of products of float32: tf32 rounds the
    operands to 10 bits, tf32x3 splits each into two of these, ieee does without the matrix units. registers: most of a
    thread, so that more programs share a multiprocessor. overlapped: products are on their way while
    probabilities are made (sm_90 alone); with more than 64 queries two groups of warps share the keys.
    """

    block_m: int
    block_n: int
    warps: int
    stages: int
    descriptors: bool = False
    split: int = 1
    precision: str = "ieee"
    registers: int | None = None
    overlapped: bool = False


@dataclass(frozen=True, slots=True)
class LibraryCandidate:
    """The library's product, and what follows it as a kernel of its own."""


Candidate = Union[GemmCandidate, AttentionCandidate, LibraryCandidate]
"""Any of them."""


def label(candidate: Candidate) -> str:
    """One word for people: ``128x256x64 w8 s3``."""
    if isinstance(candidate, LibraryCandidate):
        return "library"
    if isinstance(candidate, AttentionCandidate):
        words = [f"{candidate.block_m}x{candidate.block_n} w{candidate.warps} s{candidate.stages}"]
        words += [f"split{candidate.split}"] if candidate.split > 1 else []
        words += ["overlapped"] if candidate.overlapped else []
        words += ["descriptors"] if candidate.descriptors else []
        words += [candidate.precision] if candidate.precision != "ieee" else []
        words += [f"r{candidate.registers}"] if candidate.registers is not None else []
        return " ".join(words)
    words = [f"{candidate.block_m}x{candidate.block_n}x{candidate.block_k} w{candidate.warps} s{candidate.stages}"]
    words += [f"g{candidate.group}"] if candidate.group != 8 else []
    words += [f"split{candidate.split}"] if candidate.split > 1 else []
    words += ["persistent"] if candidate.persistent else []
    words += ["overlapped"] if candidate.overlapped else []
    words += ["descriptors"] if candidate.descriptors else []
    words += ["tf32"] if candidate.tf32 else []
    return " ".join(words)
