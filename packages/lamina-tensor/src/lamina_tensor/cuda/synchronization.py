"""What is asked at every synchronisation: errors that kernels noted on the device are found there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .activation import active_provider, device_index, is_active

__all__ = ["CAPTURING", "at_synchronize", "refuse_while_capturing", "run_checks", "synchronize"]


class _Capturing(threading.local):
    now = False


CAPTURING = _Capturing()
"""``now``: is this thread capturing a CUDA graph."""


def refuse_while_capturing(what: str) -> None:
    """Refuse what no graph can hold.

    Raises:
        RuntimeError: a graph is being captured by this thread.
    """
    if CAPTURING.now:
        raise RuntimeError(f"a CUDA graph is being captured: {what}; do it before or after")


_CHECKS: list[Callable[[], None]] = []


def at_synchronize(check: Callable[[], None]) -> Callable[[], None]:
    """Call ``check`` after every synchronisation (also of a stream or an event, and after each copy to the host).

    It raises what it finds. Returns a function that takes it away again.
    """
    _CHECKS.append(check)

    def remove() -> None:
        if check in _CHECKS:
            _CHECKS.remove(check)

    return remove


def run_checks() -> None:
    """Call the registered checks."""
    for check in tuple(_CHECKS):
        check()


def synchronize(device: Any = None) -> None:
    """Wait until all work of a device is done; raises what the checks find. Nothing when no device was used."""
    if is_active():
        refuse_while_capturing("the host cannot wait for the device")
        active_provider().synchronize(device_index(device))
    run_checks()
