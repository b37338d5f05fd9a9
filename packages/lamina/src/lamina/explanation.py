"""``explain(fn)(*args)``: run a function compiled once and tell what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamina_fx import print_graph

from .entry import compile
from .records import GraphRecord, records
from .summary import summary

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """Graphs, breaks and kernels of one call."""

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
        lines = [f"{self.graph_count} graphs, {len(self.break_reasons)} breaks, {self.kernel_count} kernels"]
        lines += [f"break: {reason}" for reason in self.break_reasons]
        for graph in self.graphs:
            lines += [f"--- {graph.name}", print_graph(graph.stages["captured"], strict=False)]
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
    """Return a callable that compiles ``fn`` (with ``compile``'s options), calls it, and returns an ``Explanation``."""

    def run(*args: Any, **kwargs: Any) -> Explanation:
        before, reasons = set(map(id, records())), len(summary().break_reasons)
        result = compile(fn, **options)(*args, **kwargs)
        made = tuple(r for r in records() if id(r) not in before)
        return Explanation(result, made, summary().break_reasons[reasons:])

    return run
