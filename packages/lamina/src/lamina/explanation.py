"""``explain(fn)(*args)``: run a function compiled once and tell what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamina_dynamo import recording
from lamina_fx import print_graph
from lamina_fx.expect import wrong_kind

from .entry import compile
from .records import GraphRecord, counted, forget, forget_events, records

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """Graphs, breaks and kernels of one call. ``print(explanation.graphs[0])`` shows a graph in full."""

    result: Any
    graphs: tuple[GraphRecord, ...]
    break_reasons: tuple[str, ...]

    @property
    def graph_count(self) -> int:
        """Number of graphs."""
        return len(self.graphs)

    @property
    def kernel_count(self) -> int:
        """Number of kernels in all graphs."""
        return sum(len(g.kernels) for g in self.graphs)

    def __str__(self) -> str:
        counts = ((self.graph_count, "graph"), (len(self.break_reasons), "break"), (self.kernel_count, "kernel"))
        lines = [", ".join(counted(number, word) for number, word in counts)]
        lines += [f"break: {reason}" for reason in self.break_reasons]
        for position, graph in enumerate(self.graphs):
            lines += [f"graph {position}: {graph.summary()}"]
        if self.graphs:
            lines.append("print(explanation.graphs[0]) shows a graph in full")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "graphs": [
                {
                    "name": g.name,
                    "stages": {stage: print_graph(graph, strict=False) for stage, graph in g.stages.items()},
                    "kernels": [k.name for k in g.kernels],
                    "seconds": g.seconds,
                }
                for g in self.graphs
            ],
            "break_reasons": list(self.break_reasons),
        }


def explain(fn: Callable[..., Any], **options: Any) -> Callable[..., Explanation]:
    """Return a callable that compiles ``fn`` (with ``compile``'s options), calls it, and returns an ``Explanation``.

    What is compiled for it is not counted in ``summary()`` and not among ``records()``.
    """

    if not callable(fn):
        raise wrong_kind("explain()", fn, "a function or a module")

    def run(*args: Any, **kwargs: Any) -> Explanation:
        before = set(map(id, records()))
        with recording() as seen:
            try:
                result = compile(fn, **options)(*args, **kwargs)
            finally:
                made = tuple(r for r in records() if id(r) not in before)
                for record in made:
                    forget(record)
                forget_events(seen)
        return Explanation(result, made, tuple(str(reason) for event in seen for reason in event.breaks))

    return run
