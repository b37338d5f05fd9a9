"""Memory that a stream still works on: it is not given to others before that stream has come past its last use.

The pool gives a freed block to the stream that it was taken on at once, which is right as long as only that stream
used it. ``Tensor.record_stream`` says that another one does; copies that nobody waits for say it of pinned memory.
"""

from __future__ import annotations

import weakref
from typing import Any

from .activation import active_provider, on_device
from .streams import Stream
from .synchronization import CAPTURING

__all__ = ["hold", "record_stream"]

_PENDING: list[tuple[Any, Any]] = []
"""Events, and the arrays that are held until they have happened."""


def record_stream(tensor: Any, stream: Stream) -> None:
    """Hold the memory of a CUDA tensor, once it is freed, until ``stream`` has done what it has to do by then.

    Raises:
        RuntimeError: the tensor is not on a GPU.
    """
    if tensor.device.type != "cuda":
        raise RuntimeError(f"record_stream: expected a CUDA tensor, got one on {tensor.device}")
    storage = tensor.storage
    last = weakref.finalize(storage, hold, storage.array, stream)
    last.atexit = False


def hold(memory: Any, stream: Stream) -> None:
    """Keep what owns some memory until ``stream`` has done what it has to do by now.

    A copy from or to pinned memory that nobody waits for asks for it: the pool of pinned memory knows no streams. What
    a graph captures uses its memory at every launch; that is kept by whoever launches it.
    """
    if CAPTURING.now:
        return
    _PENDING[:] = [(event, held) for event, held in _PENDING if not event.done]
    with on_device(active_provider(), stream.device_index):
        event = active_provider().new_event(False, False)
        event.record(stream.handle)
    if not event.done:
        _PENDING.append((event, memory))
