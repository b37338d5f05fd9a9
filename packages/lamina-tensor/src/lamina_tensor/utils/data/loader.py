"""Batches from a data set, made in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ... import creation
from ...cuda.devices import is_available
from ...namespace import root
from ...tensor import Tensor
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "default_collate"]


def default_collate(batch: list[Any]) -> Any:
    """Stack tensors, arrays and numbers; go into tuples, lists and dicts.

    Raises:
        TypeError: items of another kind.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return root.stack(batch, 0)
    if isinstance(first, np.ndarray):
        return creation.from_numpy(np.stack(batch))
    if isinstance(first, bool | int | float | np.generic):
        return creation.tensor(np.asarray(batch) if isinstance(first, np.generic) else batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(parts)) for parts in zip(*batch, strict=True)))
    if isinstance(first, tuple | list):
        return [default_collate(list(parts)) for parts in zip(*batch, strict=True)]
    raise TypeError(
        f"default_collate: batch must contain tensors, arrays, numbers, dicts or lists; found {type(first)}"
    )


def pinned(batch: Any) -> Any:
    """The tensors of a batch in pinned memory, where there is a GPU to read it; containers are gone into."""
    if isinstance(batch, Tensor):
        return batch.pin_memory() if is_available() and batch.device.type == "cpu" else batch
    if isinstance(batch, Mapping):
        return {key: pinned(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(pinned(part) for part in batch))
    return type(batch)(pinned(part) for part in batch) if isinstance(batch, tuple | list) else batch


class DataLoader:
    """Iterates over batches. ``num_workers`` other than 0 is refused: loading happens in this process."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Any = None,
    ) -> None:
        if num_workers:
            raise ValueError("DataLoader loads in this process only: num_workers must be 0")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        collate = collate_fn or (default_collate if batch_size is not None else lambda item: item)
        self.collate_fn = (lambda batch: pinned(collate(batch))) if pin_memory else collate
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            return
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if self._iterable:
            yield from self._from_stream()
        elif self.batch_sampler is None:
            for index in self.sampler:
                yield self.collate_fn(self.dataset[index])
        else:
            for indices in self.batch_sampler:
                yield self.collate_fn([self.dataset[index] for index in indices])

    def _from_stream(self) -> Iterator[Any]:
        if self.batch_size is None:
            yield from map(self.collate_fn, self.dataset)
            return
        batch: list[Any] = []
        for item in self.dataset:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if self._iterable:
            raise TypeError("a DataLoader over an IterableDataset has no length")
        return len(self.sampler) if self.batch_sampler is None else len(self.batch_sampler)
