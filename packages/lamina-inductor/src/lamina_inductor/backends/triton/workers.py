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
from collections.abc import Sequence
from typing import Any

from . import worker
from .compile import CompiledKernel, compile_ptx, compiled_kernel, request_for
from .program import TritonKernel
from .worker import receive, send

__all__ = ["compile_kernels", "processes", "warm_up"]

FEW = 3
"""As many kernels are compiled here: a process takes a second to start."""

MOST = 12
"""Processes at most."""

_idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
_started: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


def compile_kernels(kernels: Sequence[TritonKernel], sm: int) -> list[CompiledKernel]:
    """Machine code of each kernel for compute capability ``sm``, in order.

    Raises:
        MissingTriton: triton is not installed.
        RuntimeError: a kernel wants more shared memory than the device has, or does not compile.
    """
    workers = min(len(kernels), processes())
    if len(kernels) <= (1 if _started else FEW) or workers < 2:
        return [compile_ptx(kernel, sm, usage=False) for kernel in kernels]
    results: list[Any] = [None] * len(kernels)
    waiting: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    for number in sorted(range(len(kernels)), key=lambda k: -_work_of(kernels[k])):  # the dearest ones first
        waiting.put(number)
    threads = [threading.Thread(target=_work, args=(kernels, sm, waiting, results)) for _ in range(workers)]
    for thread in threads:
        waiting.put(None)
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


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


def _work(kernels: Sequence[TritonKernel], sm: int, waiting: Any, results: list[Any]) -> None:
    process = _take()
    for number in iter(waiting.get, None):
        kernel = kernels[number]
        try:
            send(process.stdin, request_for(kernel, sm))  # type: ignore[arg-type]
            found = receive(process.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError):  # it was ended from outside; this kernel is compiled here
            process, found = _start(), None
        try:
            results[number] = compile_ptx(kernel, sm, usage=False) if found is None else _read(kernel, sm, found)
        except Exception as error:  # noqa: BLE001 - raised by compile_kernels
            results[number] = error
    _idle.put(process)


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
