"""Batches made by workers: the same, in order; what workers raise, and their end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

import lamina_tensor as lt
from lamina_tensor.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

DATA = TensorDataset(lt.arange(22.0).reshape(11, 2), lt.arange(11))


class Slow(Dataset[int]):
    """Early items take longest."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        time.sleep(0.02 * (8 - index) % 0.05)
        return index


class Broken(Slow):
    def __getitem__(self, index: int) -> int:
        if index == 5:
            raise KeyError("no item 5")
        return index


class Dying(Slow):
    def __getitem__(self, index: int) -> int:
        if index == 3:
            os._exit(3)
        return index


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, 10, step))


class Drawn(Slow):
    def __getitem__(self, index: int) -> Any:
        return lt.rand(3)


@pytest.mark.parametrize("start", [None, "spawn"])
@pytest.mark.parametrize("workers", [1, 3])
def test_batches_are_those_of_one_process(workers: int, start: str | None) -> None:
    if start == "spawn" and workers > 1:
        pytest.skip("one spawned worker shows all")
    loader = DataLoader(DATA, batch_size=4, num_workers=workers, multiprocessing_context=start)
    for _ in range(2):
        got, want = list(loader), list(DataLoader(DATA, batch_size=4))
        assert len(got) == len(want) == len(loader)
        assert all(lt.equal(a, b) for g, w in zip(got, want, strict=True) for a, b in zip(g, w, strict=True))


def test_order_holds_whoever_is_first() -> None:
    assert [int(x) for x in DataLoader(Slow(), batch_size=None, num_workers=3)] == list(range(8))
    assert len(list(DataLoader(Slow(), batch_size=3, num_workers=2, drop_last=True))) == 2


def test_streams_are_divided_among_workers() -> None:
    seen = [x.tolist() for x in DataLoader(Stream(), batch_size=2, num_workers=2)]
    assert seen == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    assert [x.tolist() for x in DataLoader(Stream(), batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_what_a_worker_raises_is_raised() -> None:
    with pytest.raises(KeyError, match=r"Caught KeyError in DataLoader worker process \d.*no item 5"):
        list(DataLoader(Broken(), batch_size=2, num_workers=2))
    with pytest.raises(RuntimeError, match=r"worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(DataLoader(Dying(), batch_size=1, num_workers=1))
    with pytest.raises(ZeroDivisionError, match="Caught ZeroDivisionError"):
        list(DataLoader(Slow(), num_workers=1, worker_init_fn=lambda number: 1 / 0))


def test_persistent_workers_stay_and_forget_what_was_not_waited_for() -> None:
    loader = DataLoader(Slow(), batch_size=None, num_workers=2, persistent_workers=True)
    assert next(iter(loader)) == 0
    pids = [p.pid for p in loader._workers.processes]
    for x in loader:
        if x == 1:
            break
    assert list(loader) == list(range(8)) and [p.pid for p in loader._workers.processes] == pids
    loader._workers.stop()


def test_workers_draw_numbers_of_their_own() -> None:
    lt.manual_seed(5)
    first = lt.stack(list(DataLoader(Drawn(), batch_size=None, num_workers=2)))
    lt.manual_seed(5)
    assert lt.equal(first, lt.stack(list(DataLoader(Drawn(), batch_size=None, num_workers=2))))
    assert len({tuple(row) for row in first.tolist()}) == 8


def test_options_that_exclude_each_other() -> None:
    for options in ({"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True}):
        with pytest.raises(ValueError, match=r"num_workers|timeout"):
            DataLoader(DATA, **options)
