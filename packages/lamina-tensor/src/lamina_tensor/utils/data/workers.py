"""Processes that make batches, and the iterator that hands them out in order.

Each worker has a queue of tasks, (number of the iteration, indices of a batch; None: the next of a stream), and does
them in order. All answer into one queue.
"""

from __future__ import annotations

import multiprocessing
import random as python_random
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ... import random
from .dataset import IterableDataset

__all__ = ["WorkerInfo", "Workers", "get_worker_info"]

_LOOK = 2.0
"""Seconds between looks at whether the workers live."""


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker is told: its number, how many there are, the seed of its generators, its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here:
    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker, who it is; None in the process that has the loader."""
    return _Here.info


@dataclass(frozen=True)
class _Failure:
    """An exception as text, which may cross to another process where the exception may not."""

    kind: type[BaseException]
    text: str

    def reraise(self) -> None:
        """Raise it here; as a RuntimeError where it cannot be made from a text."""
        try:
            made = self.kind(self.text)
        except TypeError:
            made = RuntimeError(self.text)
        raise made


class _End:
    """In place of a batch: the worker's stream has no more."""


def _work(info: WorkerInfo, make: Callable[[Any, Any], Any], tasks: Any, answers: Any, begin: Any) -> None:
    _Here.info = info
    random.manual_seed(info.seed)
    python_random.seed(info.seed)
    is_stream = isinstance(info.dataset, IterableDataset)
    failed: _Failure | None = None
    try:
        if begin is not None:
            begin(info.id)
    except Exception as error:  # noqa: BLE001 - it is raised where the batches are wanted
        failed = _failure(info, error)
    source, epoch = info.dataset, -1
    for now, indices in iter(tasks.get, None):
        try:
            if is_stream and now != epoch:
                source, epoch = iter(info.dataset), now
            made = failed or make(source, indices)
        except Exception as error:  # noqa: BLE001 - it is raised where the batches are wanted
            ended = is_stream and isinstance(error, StopIteration)
            made = _End() if ended else _failure(info, error)
        answers.put((now, info.id, made))


def _failure(info: WorkerInfo, error: Exception) -> _Failure:
    text = f"Caught {type(error).__name__} in DataLoader worker process {info.id}.\nOriginal {traceback.format_exc()}"
    return _Failure(type(error), text)


class Workers:
    """``num_workers`` processes that call ``make(data set, indices)``, or ``make(iterator of the stream, None)``.

    Args:
        begin: called in each worker with its number before anything else.
        context: how processes are started: a name, a context of ``multiprocessing``, None for Python's usual way.
        ahead: how many batches each worker is asked for before they are wanted.
        timeout: seconds after which a batch that does not come is an error; 0: never.
    """

    def __init__(
        self, dataset: Any, make: Callable[[Any, Any], Any], num_workers: int, begin: Any, context: Any, ahead: int,
        timeout: float,
    ) -> None:  # fmt: skip
        how: Any = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        seed = int(random.randint(0, 1 << 62, (1,)).item())
        self.ahead, self.timeout, self.epoch = ahead, timeout, -1
        self.is_stream = isinstance(dataset, IterableDataset)
        self.answers = how.SimpleQueue()
        self.tasks = [how.SimpleQueue() for _ in range(num_workers)]
        infos = [WorkerInfo(k, num_workers, seed + k, dataset) for k in range(num_workers)]
        self.processes = [
            how.Process(target=_work, args=(info, make, tasks, self.answers, begin), daemon=True)
            for info, tasks in zip(infos, self.tasks, strict=True)
        ]
        for process in self.processes:
            process.start()

    def batches(self, indices: Iterator[Any]) -> Iterator[Any]:
        """Batches in the order of ``indices``; of a stream, from each worker in turn.

        Raises:
            RuntimeError: a worker died, or took too long. What a worker raised.
        """
        self.epoch += 1  # answers that an earlier iteration did not wait for are dropped
        live = deque(range(len(self.tasks)))
        asked: deque[int] = deque()  # the workers of the batches to come, in order
        made: dict[int, deque[Any]] = {worker: deque() for worker in live}
        for _ in range(self.ahead * len(live)):
            self._ask(indices, live, asked)
        while asked:
            worker = asked.popleft()
            while not made[worker]:
                by, answer = self._answer()
                made[by].append(answer)
            answer = made[worker].popleft()
            if isinstance(answer, _End):
                if worker in live:
                    live.remove(worker)
                continue
            self._ask(indices, live, asked)
            if isinstance(answer, _Failure):
                answer.reraise()
            yield answer

    def _ask(self, indices: Iterator[Any], live: deque[int], asked: deque[int]) -> None:
        """One more batch, of the worker whose turn it is."""
        task = None if self.is_stream else next(indices, None)
        if live and (self.is_stream or task is not None):
            self.tasks[live[0]].put((self.epoch, task))
            asked.append(live[0])
            live.rotate(-1)

    def _answer(self) -> tuple[int, Any]:
        """(worker, what it made) of this iteration."""
        begun = time.monotonic()
        while True:
            if self.answers._reader.poll(min(_LOOK, self.timeout or _LOOK)):
                epoch, worker, answer = self.answers.get()
                if epoch == self.epoch:
                    return worker, answer
                continue
            dead = [str(p.pid) for p in self.processes if not p.is_alive()]
            if dead:
                raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(dead)}) exited unexpectedly")
            if self.timeout and time.monotonic() - begun > self.timeout:
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")

    def stop(self) -> None:
        """End the processes."""
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join()
