"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ...namespace import root
from ...tensor import Tensor

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0) -> Tensor:
    """Stack sequences (L_i, *) into (L, B, *) (or (B, L, *)), filled up with ``padding_value``."""
    longest = max(s.shape[0] for s in sequences)
    first = sequences[0]
    shape = (len(sequences), longest, *first.shape[1:])
    out = root.full(shape, padding_value, dtype=first.dtype)
    for k, sequence in enumerate(sequences):
        out[k, : sequence.shape[0]] = sequence
    return out if batch_first else out.transpose(0, 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that ``pad_sequence`` was given."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths, strict=True)]
