"""CUDA graphs: work that was captured once and is launched again, over the same memory.

Memory that tensors take while a graph is captured belongs to the graph's pool and lives as long as it does. Graphs may
share a pool, when they are launched one behind the other in the order in which they were captured.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any

from .. import _C
from .activation import active_provider, on_device
from .provider import GraphPool
from .streams import Stream, StreamContext, current_stream
from .synchronization import CAPTURING, run_checks, synchronize

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


def is_current_stream_capturing() -> bool:
    """Is a graph being captured by ``graph``."""
    return CAPTURING.now


class CUDAGraph:
    """A captured graph. Made empty; ``with graph(g):`` captures into it, ``replay`` launches it."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph
        self._captured: Any = None
        self._capture: Any = None
        self._device = 0
        self._pool = GraphPool()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "relaxed") -> None:
        """Note the current stream's work from here on, instead of doing it.

        Raises:
            RuntimeError: the current stream is the default one, which cannot be captured.
        """
        where = current_stream()
        if not where.cuda_stream:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream: use cuda.graph(g) or cuda.stream(s)"
            )
        if isinstance(pool, GraphPool):
            self._pool = pool
        self._device = where.device_index
        self._capture = active_provider().capture(where.device_index, where.handle, self._pool)
        self._result = self._capture.__enter__()
        CAPTURING.now = active_provider().namespace.capturing = True
        _C.pause_kept(True)

    def capture_end(self) -> None:
        """The work up to here is the graph.

        Raises:
            RuntimeError: something that was done cannot be captured.
        """
        try:
            self._end()
        except RuntimeError as error:
            raise RuntimeError(
                f"capturing a CUDA graph failed ({error}): something done since it began cannot be in a graph, such "
                "as waiting for the device, or work on another stream that did not join this one"
            ) from error
        self._captured = self._result()

    def abandon(self) -> None:
        """End a capture whose work is not wanted: an error came between."""
        with suppress(RuntimeError):  # the error may have ended the capture already
            self._end()

    def _end(self) -> None:
        CAPTURING.now = active_provider().namespace.capturing = False
        _C.pause_kept(False)
        capture, self._capture = self._capture, None
        capture.__exit__(None, None, None)

    def replay(self) -> None:
        """Do the work again, on the current stream.

        Raises:
            RuntimeError: nothing was captured.
        """
        if self._captured is None:
            raise RuntimeError("CUDAGraph.replay: capture into the graph first")
        where = current_stream(self._device)
        with on_device(active_provider(), self._device):
            self._captured.launch(where.handle)

    def reset(self) -> None:
        """Drop what was captured, and its memory."""
        self._captured = None
        self._pool = GraphPool()

    def pool(self) -> GraphPool:
        """The graph's memory, for ``pool=`` of another that is to share it."""
        return self._pool


def graph_pool_handle() -> GraphPool:
    """Memory for several graphs, for ``pool=``."""
    return GraphPool()


class graph:
    """``with cuda.graph(g):`` captures what is done inside into ``g``, on a stream of its own."""

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "relaxed"
    ) -> None:
        self.cuda_graph, self.pool, self.stream = cuda_graph, pool, stream

    def __enter__(self) -> None:
        synchronize()
        gc.collect()  # what goes while a stream is captured may wait for the device, which ends the capture
        self.stream = self.stream or Stream()
        self._context = StreamContext(self.stream)
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            if kind is not None:
                self.cuda_graph.abandon()
                return
            self.cuda_graph.capture_end()
        finally:
            self._context.__exit__(kind, *error)
        run_checks()


def make_graphed_callables(function: Any, sample_args: tuple[Any, ...], num_warmup_iters: int = 3) -> Any:
    """A function of tensors that copies its arguments to fixed memory, replays one captured graph, returns its results.

    The results' memory is the same each time. Shapes are those of ``sample_args``; no gradients.
    """
    fixed = tuple(a.detach().clone() for a in sample_args)
    side = Stream()
    with StreamContext(side):
        for _ in range(num_warmup_iters):
            function(*fixed)
    side.synchronize()
    captured = CUDAGraph()
    with graph(captured):
        out = function(*fixed)

    def replay(*args: Any) -> Any:
        for target, given in zip(fixed, args, strict=True):
            target.copy_(given)
        captured.replay()
        return out

    return replay
