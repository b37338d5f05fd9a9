"""What is asked at every synchronisation: errors that kernels noted on the device are found there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .activation import active_provider, device_index, is_active

__all__ = ["at_synchronize", "run_checks", "synchronize"]

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
        active_provider().synchronize(device_index(device))
    run_checks()
