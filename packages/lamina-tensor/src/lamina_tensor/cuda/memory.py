"""Memory of devices: how much tensors hold, how much is kept, and what is said when there is not enough."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _C
from .activation import active_provider, device_index, is_active

__all__ = [
    "OutOfMemoryError", "at_empty_cache", "empty_cache", "explaining", "max_memory_allocated", "max_memory_reserved",
    "mem_get_info", "release_held",
    "memory_allocated", "memory_reserved", "memory_stats", "memory_summary", "reset_max_memory_allocated",
    "reset_peak_memory_stats",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """A device has not enough memory: says how much was asked, what is free, and who holds most."""


def memory_allocated(device: Any = None) -> int:
    """Bytes that the storages of tensors hold on a device."""
    return _C.memory_account(device_index(device), False)[0] if is_active() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that the storages of tensors held at a time, since the start or ``reset_peak_memory_stats``."""
    return _C.memory_account(device_index(device), False)[1] if is_active() else 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let ``max_memory_allocated`` begin anew."""
    if is_active():
        index = device_index(device)
        _C.memory_account(index, True)
        _MOST_RESERVED.pop(index, None)


def reset_max_memory_allocated(device: Any = None) -> None:
    """The older name of ``reset_peak_memory_stats``."""
    reset_peak_memory_stats(device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the memory pool holds: used, or kept for reuse."""
    return _reserved(device_index(device)) if is_active() else 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the memory pool held at a time, since the start or ``reset_peak_memory_stats``.

    The pool gives nothing back but in ``empty_cache`` (and when there is not enough), which looks at it before.
    """
    if not is_active():
        return 0
    index = device_index(device)
    _reserved(index)
    return _MOST_RESERVED[index]


_MOST_RESERVED: dict[int, int] = {}
"""By device: the most that its pool was seen to hold."""


def _reserved(index: int) -> int:
    found = active_provider().memory(index).reserved
    _MOST_RESERVED[index] = max(found, _MOST_RESERVED.get(index, 0))
    return found


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a device, by the driver's count: other processes and kept memory are taken."""
    state = active_provider().memory(device_index(device))
    return state.free, state.total


_RELEASES: list[Callable[[], object]] = []


def at_empty_cache(release: Callable[[], object]) -> Callable[[], None]:
    """Call ``release`` at the start of every ``empty_cache``, and when there is too little memory: it drops memory that
    is held for later use, and returns how many bytes.

    Returns a function that takes it away again.
    """
    _RELEASES.append(release)

    def remove() -> None:
        if release in _RELEASES:
            _RELEASES.remove(release)

    return remove


def release_held() -> bool:
    """Drop memory that is held for later use, into the pool; was there any. Tried once before there is too little."""
    freed = [release() for release in tuple(_RELEASES)]
    return any([*freed, _C.drop_kept()])


def empty_cache() -> None:
    """Give memory that nobody uses back to the driver; what compiled programs keep for their next call, too."""
    if is_active():
        release_held()
        for index in range(active_provider().device_count()):
            if _C.memory_account(index, False)[2]:  # others may have no context yet: asking would make one
                _reserved(index)
                active_provider().empty_cache(index)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The numbers of the functions above under PyTorch's keys."""
    if not is_active():
        return {}
    index = device_index(device)
    now, peak, ever = _C.memory_account(index, False)
    state = active_provider().memory(index)
    return {
        "allocated_bytes.all.current": now, "allocated_bytes.all.peak": peak, "allocated_bytes.all.allocated": ever,
        "allocated_bytes.all.freed": ever - now, "reserved_bytes.all.current": state.reserved,
        "active_bytes.all.current": state.used,
    }  # fmt: skip


def holders(index: int, count: int = 5) -> list[tuple[int, str]]:
    """The largest storages of tensors on a device: bytes and what they look like. Walks all objects: for errors."""
    largest: dict[int, tuple[int, str]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, _C.TensorBase) and type(thing.storage) is _C.CudaStorage:
            storage = thing.storage
            if thing.device.index == index and (id(storage) not in largest or thing._base is None):
                largest[id(storage)] = (storage.nbytes, f"{type(thing).__name__} {thing.spec}")
    return sorted(largest.values(), reverse=True)[:count]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the numbers, and the largest tensors."""
    if not is_active():
        return "no CUDA device has been used"
    index = device_index(device)
    now, peak, ever = _C.memory_account(index, False)
    state = active_provider().memory(index)
    rows = [
        ("held by tensors", now), ("most at a time", peak), ("ever allocated", ever), ("pool, used", state.used),
        ("pool, kept", state.reserved), ("free on the device", state.free), ("total on the device", state.total),
    ]  # fmt: skip
    lines = [f"memory of cuda:{index}", *(f"  {name:<20}{readable(value):>12}" for name, value in rows)]
    if not abbreviated:
        lines += ["  largest tensors:", *(f"    {readable(size):>10}  {text}" for size, text in holders(index))]
    return "\n".join(lines)


def readable(size: int) -> str:
    """Bytes for people: ``1.50 GiB``."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:.2f} {unit}"


@contextmanager
def explaining(index: int) -> Iterator[None]:
    """Turn the device library's out-of-memory error into ours.

    Raises:
        OutOfMemoryError: what was asked, what is free, the largest holders.
    """
    provider = active_provider()
    try:
        yield
    except provider.out_of_memory as error:
        raise out_of_memory(index, error) from None


def out_of_memory(index: int, error: BaseException) -> OutOfMemoryError:
    """Our error for the device library's."""
    return shortage(index, getattr(error, "asked", getattr(error, "_size", None)))


def shortage(index: int, asked: int | None, purpose: str = "") -> OutOfMemoryError:
    """The error for ``asked`` bytes (None: nobody knows how many); ``purpose``: such as ``" for a constant"``."""
    state = active_provider().memory(index)
    now = _C.memory_account(index, False)[0]
    tried = f"Tried to allocate {'more than there is' if asked is None else readable(asked)}{purpose}"
    largest = "; ".join(f"{readable(size)} {text}" for size, text in holders(index)) or "no tensor"
    return OutOfMemoryError(
        f"CUDA out of memory. {tried}. cuda:{index} has {readable(state.free)} free of {readable(state.total)}; "
        f"tensors hold {readable(now)}, the pool keeps {readable(max(state.reserved - state.used, 0))} more. "
        f"The largest: {largest}"
    )
