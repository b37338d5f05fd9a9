"""Memory that a second stream works on: it is not given to others before that stream has come past its last use.

The pool gives a freed block to the stream that it was taken on at once, which is right as long as only that stream
used it. ``Tensor.record_stream`` says that another one does.
"""

from __future__ import annotations

import weakref
from typing import Any

from .activation import active_provider, on_device
from .streams import Stream

__all__ = ["record_stream"]

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
    last = weakref.finalize(storage, _hold, storage.array, stream)
    last.atexit = False


def _hold(array: Any, stream: Stream) -> None:
    _PENDING[:] = [(event, held) for event, held in _PENDING if not event.done]
    with on_device(active_provider(), stream.device_index):
        event = active_provider().new_event(False, False)
        event.record(stream.handle)
    if not event.done:
        _PENDING.append((event, array))
