"""The namespace ``cuda`` where there is no GPU: questions are answered, harmless requests do nothing, all else raises.

>>> is_available(), device_count()
(False, 0)
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_name", "is_available", "is_bf16_supported",
    "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated", "memory_allocated",
    "reset_peak_memory_stats", "set_device", "synchronize",
]  # fmt: skip

_NONE = "no GPU: lamina's eager tensors live on the CPU; guard with lamina.cuda.is_available()"


def is_available() -> bool:
    """False."""
    return False


def is_bf16_supported() -> bool:
    """False: there is no GPU."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing: there is no generator to seed."""


def empty_cache() -> None:
    """Nothing: there is no cache."""


def synchronize(device: Any = None) -> None:
    """Nothing is pending."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing is counted."""


def memory_allocated(device: Any = None) -> int:
    """0 bytes."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0 bytes."""
    return 0


def current_device() -> int:
    """RuntimeError: there is none."""
    raise RuntimeError(_NONE)


def set_device(device: Any) -> None:
    """RuntimeError: there is none."""
    raise RuntimeError(_NONE)


def get_device_name(device: Any = None) -> str:
    """RuntimeError: there is none."""
    raise RuntimeError(_NONE)
