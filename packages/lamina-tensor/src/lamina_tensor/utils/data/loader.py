"""Batches from a data set, made in this process or in workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ... import creation
from ...cuda.devices import is_available
from ...namespace import root
from ...tensor import Tensor
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .workers import Workers

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


def _itself(item: Any) -> Any:
    return item


@dataclass(frozen=True)
class _Fetch:
    """Makes one batch, here or in a worker: of a data set by indices, or of a stream.

    single: items are no batches. size: of a batch of a stream, None where they are single.
    """

    collate: Callable[[Any], Any]
    single: bool
    size: int | None
    drop_last: bool

    def __call__(self, source: Any, indices: Any) -> Any:
        """Raises StopIteration at the end of a stream."""
        if indices is not None:
            return self.collate(source[indices] if self.single else [source[index] for index in indices])
        if self.size is None:
            return self.collate(next(source))
        batch = list(islice(source, self.size))
        if not batch or (self.drop_last and len(batch) < self.size):
            raise StopIteration
        return self.collate(batch)


class DataLoader:
    """Iterates over batches, made here or by ``num_workers`` processes ahead of time.

    Args:
        timeout: seconds to wait for a worker's batch; 0: for ever.
        worker_init_fn: called in each worker with its number.
        multiprocessing_context: how workers are started (``"fork"``, ``"spawn"``, ``"forkserver"``).
        prefetch_factor: batches that each worker makes ahead; 2 where there are workers.
        persistent_workers: workers live for all iterations.

    Raises:
        ValueError: options that exclude each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if not num_workers and (prefetch_factor is not None or persistent_workers):
            raise ValueError("prefetch_factor and persistent_workers need num_workers > 0")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self.dataset, self.batch_size, self.drop_last, self.pin_memory = dataset, batch_size, drop_last, pin_memory
        self.num_workers, self.prefetch_factor = num_workers, 2 if prefetch_factor is None else prefetch_factor
        self.timeout, self.worker_init_fn, self.persistent_workers = timeout, worker_init_fn, persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self.collate_fn = collate_fn or (default_collate if batch_size is not None else _itself)
        self._workers: Workers | None = None
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
        batches = self._by_workers() if self.num_workers else self._here()
        return map(pinned, batches) if self.pin_memory else batches

    def _fetch(self) -> _Fetch:
        single = not self._iterable and self.batch_sampler is None
        return _Fetch(self.collate_fn, single, self.batch_size, self.drop_last)

    def _indices(self) -> Iterator[Any]:
        if self._iterable:
            return iter(())
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def _here(self) -> Iterator[Any]:
        fetch = self._fetch()
        if not self._iterable:
            for indices in self._indices():
                yield fetch(self.dataset, indices)
            return
        stream = iter(self.dataset)
        while True:
            try:
                batch = fetch(stream, None)
            except StopIteration:
                return
            yield batch

    def _by_workers(self) -> Iterator[Any]:
        workers = self._workers
        if workers is None:
            workers = Workers(
                self.dataset, self._fetch(), self.num_workers, self.worker_init_fn, self.multiprocessing_context,
                self.prefetch_factor, self.timeout,
            )  # fmt: skip
        self._workers = workers if self.persistent_workers else None
        try:
            yield from workers.batches(self._indices())
        except Exception:
            self._workers = None
            raise
        finally:
            if self._workers is not workers:
                workers.stop()

    def __del__(self) -> None:
        workers = getattr(self, "_workers", None)
        if workers is not None:
            workers.stop()

    def __len__(self) -> int:
        if self._iterable:
            raise TypeError("a DataLoader over an IterableDataset has no length")
        return len(self.sampler) if self.batch_sampler is None else len(self.batch_sampler)
