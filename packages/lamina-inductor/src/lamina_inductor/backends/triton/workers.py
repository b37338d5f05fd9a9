"""Compile many kernels at once: in this process when there are few, in processes of their own otherwise.

Triton holds the interpreter's lock while it compiles, so threads gain nothing. The processes are started once and kept;
they are programs of their own, not forks (the driver does not survive one) and not copies of the user's main module.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from lamina_fx.collector import collect_young

from . import worker
from .compile import CompiledKernel, compile_ptx, compiled_kernel, request_for
from .program import TritonKernel
from .worker import receive, send

__all__ = ["Compilation", "begin", "compile_kernels", "processes", "warm_up"]

FEW = 3
"""As many kernels are compiled here: a process takes a second to start."""

MOST = 12
"""Processes at most."""

_idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
_started: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


def compile_kernels(
    kernels: Sequence[TritonKernel],
    sm: int,
    begun: Compilation | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> list[CompiledKernel]:
    """Machine code of each kernel for compute capability ``sm``, in order. ``begun``: what has some of them already.
    ``meanwhile``: called when processes have work and this one would wait for them.

    Raises:
        MissingTriton: triton is not installed.
        RuntimeError: a kernel wants more shared memory than the device has, or does not compile.
    """
    if begun is None or not begun.kernels:
        few = len(kernels) <= (1 if _started else FEW)
        if few or processes() < 2:
            return [compile_ptx(kernel, sm, usage=False) for kernel in kernels]
    with begun or Compilation(sm) as compilation:
        return compilation.finish(kernels, meanwhile)


def begin(sm: int) -> Compilation | None:
    """Start processes, and what takes the first kernels; None where kernels are compiled in this one."""
    warm_up()
    return Compilation(sm) if _started and processes() > 1 else None


class Compilation:
    """Kernels that processes compile while others are still made: the dearest of those that wait goes first.

    A context: what waits when it is left is given up.
    """

    def __init__(self, sm: int) -> None:
        self.sm = sm
        self.kernels: dict[TritonKernel, int] = {}
        self._results: dict[int, Any] = {}
        self._waiting: queue.PriorityQueue[tuple[int, int, TritonKernel | None]] = queue.PriorityQueue()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *error: object) -> None:
        self._end(_FIRST)

    def add(self, kernel: TritonKernel) -> None:
        """Compile it as soon as there is a process for it."""
        if kernel in self.kernels:
            return
        number = self.kernels[kernel] = len(self.kernels)
        self._waiting.put((-_work_of(kernel), number, kernel))
        if len(self._threads) < processes():
            self._threads.append(threading.Thread(target=self._run))
            self._threads[-1].start()

    def finish(
        self, kernels: Sequence[TritonKernel], meanwhile: Callable[[], object] | None = None
    ) -> list[CompiledKernel]:
        """Wait for all of these; before that, call ``meanwhile``."""
        for kernel in sorted(kernels, key=_work_of, reverse=True):
            self.add(kernel)
        collect_young()  # while others work
        if meanwhile is not None:
            meanwhile()
        self._end(_LAST)
        results = [self._results[self.kernels[kernel]] for kernel in kernels]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    def _end(self, when: int) -> None:
        for _ in self._threads:
            self._waiting.put((when, len(self.kernels), None))
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self) -> None:
        process = _take()
        while (kernel := (waited := self._waiting.get())[2]) is not None:
            process, self._results[waited[1]] = _compiled(process, kernel, self.sm)
        _idle.put(process)


_FIRST, _LAST = -(1 << 62), 1
"""Places of the end among kernels, which have that of their work below zero."""


def _work_of(kernel: TritonKernel) -> int:
    """How long a kernel takes to compile, about: its length, and pipelines with products three times that."""
    return len(kernel.source) * (3 if "tl.dot(" in kernel.source else 1)


def processes() -> int:
    """How many kernels are compiled at a time."""
    return min(MOST, _processors())


def warm_up() -> None:
    """Start some processes, if there are none: they import triton while this one makes the kernels' text."""
    with _lock:
        started = bool(_started)
    if not started and importlib.util.find_spec("triton") is not None:
        for _ in range(min(MOST, _processors() - 1)):
            _idle.put(_start())


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _compiled(
    process: subprocess.Popen[bytes], kernel: TritonKernel, sm: int
) -> tuple[subprocess.Popen[bytes], CompiledKernel | Exception]:
    """The process for the next kernel, and the code of this one or why there is none."""
    try:
        send(process.stdin, request_for(kernel, sm))  # type: ignore[arg-type]
        found = receive(process.stdout)  # type: ignore[arg-type]
    except (EOFError, OSError):  # it was ended from outside; this kernel is compiled here
        process, found = _start(), None
    try:
        return process, compile_ptx(kernel, sm, usage=False) if found is None else _read(kernel, sm, found)
    except Exception as error:  # noqa: BLE001 - raised by whoever waits for the kernel
        return process, error


def _read(kernel: TritonKernel, sm: int, found: Any) -> CompiledKernel:
    if isinstance(found, str):
        raise RuntimeError(f"{kernel.name} does not compile for sm_{sm}: {found}")
    return compiled_kernel(kernel, sm, found)


def _take() -> subprocess.Popen[bytes]:
    try:
        return _idle.get_nowait()
    except queue.Empty:
        return _start()


def _start() -> subprocess.Popen[bytes]:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    process = subprocess.Popen(
        [sys.executable, "-c", f"import runpy; runpy.run_path({worker.__file__!r}, run_name='__main__')"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    with _lock:
        if not _started:
            atexit.register(_end)
        _started.append(process)
    return process


def _end() -> None:
    for process in _started:
        if process.stdin is not None:
            process.stdin.close()
    for process in _started:
        process.terminate()
        process.wait()
