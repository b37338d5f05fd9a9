"""CUDA graphs: work that was captured once and is launched again, over the same memory.

Memory that tensors take while a graph is captured belongs to the graph and lives as long as it does.
"""

from __future__ import annotations

from typing import Any

from .activation import active_provider, on_device
from .streams import Stream, StreamContext, current_stream
from .synchronization import run_checks, synchronize

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


class _Capturing:
    now = False


def is_current_stream_capturing() -> bool:
    """Is a graph being captured by ``graph``."""
    return _Capturing.now


class CUDAGraph:
    """A captured graph. Made empty; ``with graph(g):`` captures into it, ``replay`` launches it."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph
        self._captured: Any = None
        self._capture: Any = None
        self._device = 0

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
        self._device = where.device_index
        self._capture = active_provider().capture(where.device_index, where.handle)
        self._result = self._capture.__enter__()
        _Capturing.now = active_provider().namespace.capturing = True

    def capture_end(self) -> None:
        """The work up to here is the graph."""
        _Capturing.now = active_provider().namespace.capturing = False
        capture, self._capture = self._capture, None
        capture.__exit__(None, None, None)
        self._captured = self._result()

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

    def pool(self) -> Any:
        """What stands for the graph's memory; each graph has its own."""
        return (id(self), 0)


def graph_pool_handle() -> Any:
    """Accepted where PyTorch takes it: each graph has memory of its own."""
    return (0, 0)


class graph:
    """``with cuda.graph(g):`` captures what is done inside into ``g``, on a stream of its own."""

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "relaxed"
    ) -> None:
        self.cuda_graph, self.stream = cuda_graph, stream

    def __enter__(self) -> None:
        synchronize()
        self.stream = self.stream or Stream()
        self._context = StreamContext(self.stream)
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin()
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self._context.__exit__(*error)
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
