"""What was compiled in this process: one record per captured graph, kept for ``explain``, the report and the tests."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamina_dynamo import CompileEvent, add_listener
from lamina_fx import Graph, print_graph

__all__ = ["GraphRecord", "clear_records", "events", "new_record", "records"]

LIMIT = 256
"""Records kept; older ones are dropped, so that a long-running program does not grow."""


@dataclass
class GraphRecord:
    """One captured graph on its way to a callable.

    ``stages`` maps a stage's name (``captured``, ``rewritten`` where the backend changed it, ``joint``, ``forward``,
    ``backward``, ``prims:<part>``) to its graph;
    ``artifacts`` maps a part (``forward``, ``backward``) to what the backend returned; ``seconds`` is time per stage.
    """

    name: str
    stages: dict[str, Graph] = field(default_factory=dict)
    artifacts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def note(self, stage: str, graph: Graph) -> None:
        """Keep a stage's graph; with ``LAMINA_DUMP`` also write it to ``<folder>/<record>/<number>-<stage>.txt``."""
        self.stages[stage] = graph
        folder = self.dump_folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            text = print_graph(graph, strict=False)
            (folder / f"{len(self.stages):02}-{stage.replace(':', '-')}.txt").write_text(text + "\n")

    @property
    def dump_folder(self) -> Path | None:
        """Where ``LAMINA_DUMP`` wants this record's graphs, if it is set."""
        base = os.environ.get("LAMINA_DUMP")
        return Path(base, self.name) if base else None

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the block's time to ``seconds[stage]``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of all compiled parts."""
        return tuple(k for a in self.artifacts.values() for k in getattr(a, "kernels", ()))


_RECORDS: deque[GraphRecord] = deque(maxlen=LIMIT)
_EVENTS: deque[CompileEvent] = deque(maxlen=LIMIT)
add_listener(_EVENTS.append)


def records() -> tuple[GraphRecord, ...]:
    """Records of the graphs compiled so far, oldest first."""
    return tuple(_RECORDS)


def events() -> tuple[CompileEvent, ...]:
    """One event per frame that was captured or given up, oldest first."""
    return tuple(_EVENTS)


def clear_records() -> None:
    """Forget records and events."""
    _RECORDS.clear()
    _EVENTS.clear()


def forget(record: GraphRecord) -> None:
    """Drop a record: its graph could not be compiled."""
    for position, kept in enumerate(_RECORDS):
        if kept is record:
            del _RECORDS[position]
            return


def new_record(name: str) -> GraphRecord:
    """Start the record of one graph."""
    record = GraphRecord(name)
    _RECORDS.append(record)
    return record
