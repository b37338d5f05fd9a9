"""Data sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeVar

from ...random import randperm
from ...tensor import Tensor

__all__ = ["ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset", "random_split"]

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Something with ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: int) -> T:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Something that is only iterated."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors of equal length.

    Raises:
        ValueError: lengths differ.
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise ValueError(f"size mismatch between tensors: {[t.shape[0] for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Subset(Dataset[Any]):
    """Chosen indices of a data set."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[Any]):
    """Data sets one after the other."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("datasets should not be an empty list")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} items")
        index %= len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = None) -> list[Subset]:
    """Split at random into parts of these lengths (or shares that add up to 1)."""
    total = len(dataset)
    if abs(sum(lengths) - 1.0) < 1e-9 and any(isinstance(n, float) for n in lengths):
        counts = [int(total * share) for share in lengths]
        for k in range(total - sum(counts)):
            counts[k % len(counts)] += 1
    else:
        counts = [int(n) for n in lengths]
    if sum(counts) != total:
        raise ValueError("sum of input lengths does not equal the length of the input dataset")
    order = randperm(total, generator=generator).tolist()
    starts = [0, *accumulate(counts)]
    return [Subset(dataset, order[a:b]) for a, b in pairwise(starts)]
