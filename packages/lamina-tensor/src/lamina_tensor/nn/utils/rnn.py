"""Sequences of different lengths in one tensor."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...creation import tensor
from ...namespace import root
from ...tensor import Tensor

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence(NamedTuple):
    """Sequences of different lengths without padding, step by step: ``batch_sizes[t]`` rows of ``data`` are step t.

    The sequences are sorted by falling length; ``sorted_indices`` sorts them, ``unsorted_indices`` undoes it.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """``data`` converted."""
        return self._replace(data=self.data.to(*args, **kwargs))


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0) -> Tensor:
    """Stack sequences (L_i, *) into (L, B, *) (or (B, L, *)), filled up with ``padding_value``."""
    longest = max(s.shape[0] for s in sequences)
    first = sequences[0]
    shape = (len(sequences), longest, *first.shape[1:])
    out = root.full(shape, padding_value, dtype=first.dtype, device=first.device)
    for k, sequence in enumerate(sequences):
        out[k, : sequence.shape[0]] = sequence
    return out if batch_first else out.transpose(0, 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that ``pad_sequence`` was given."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths, strict=True)]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Drop the padding of (T, B, *) (or (B, T, *)), of which sequence b has ``lengths[b]`` steps.

    Raises:
        RuntimeError: a length below 1, or (``enforce_sorted``) lengths that are not falling.
    """
    sizes = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if not sizes or min(sizes) < 1:
        raise RuntimeError("pack_padded_sequence: every length must be at least 1")
    x = input.transpose(0, 1) if batch_first else input
    order = unsorted = None
    if not enforce_sorted:
        places = sorted(range(len(sizes)), key=lambda k: -sizes[k])
        order, unsorted = tensor(places), tensor(places).argsort()
        x, sizes = x.index_select(1, order), [sizes[k] for k in places]
    elif any(a < b for a, b in itertools.pairwise(sizes)):
        raise RuntimeError(
            "pack_padded_sequence: lengths must be sorted in decreasing order; pass enforce_sorted=False otherwise"
        )
    counts = [sum(n > t for n in sizes) for t in range(sizes[0])]
    data = root.cat([x[t, :count] for t, count in enumerate(counts)], 0)
    return PackedSequence(data, tensor(counts), order, unsorted)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded (T, B, *) (or (B, T, *)) tensor and the lengths, in the order of the sequences that were packed."""
    counts = sequence.batch_sizes.tolist()
    steps = len(counts) if total_length is None else total_length
    if steps < len(counts):
        raise ValueError(f"pad_packed_sequence: total_length {steps} is less than the longest sequence, {len(counts)}")
    rest = sequence.data.shape[1:]
    rows, at = [], 0
    for count in counts:
        row = sequence.data[at : at + count]
        if count < counts[0]:
            fill = root.full((counts[0] - count, *rest), padding_value, dtype=row.dtype, device=row.device)
            row = root.cat([row, fill], 0)
        rows.append(row)
        at += count
    fill = {"dtype": sequence.data.dtype, "device": sequence.data.device}
    rows += [root.full((counts[0], *rest), padding_value, **fill)] * (steps - len(counts))
    x = root.stack(rows, 0)
    lengths = tensor([sum(count > b for count in counts) for b in range(counts[0])])
    if sequence.unsorted_indices is not None:
        x, lengths = x.index_select(1, sequence.unsorted_indices), lengths[sequence.unsorted_indices]
    return (x.transpose(0, 1) if batch_first else x), lengths


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (L_i, *)."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that ``pack_sequence`` was given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
