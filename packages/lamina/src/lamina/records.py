"""What was compiled in this process: one record per captured graph, kept for ``explain``, the report and the tests."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lamina_dynamo import CompileEvent, add_listener
from lamina_fx import Graph, print_graph

from .kept import KeptArtifact, keep_artifact, without_arrays

__all__ = [
    "GraphRecord", "clear_records", "counted", "dropped", "events", "forget", "forget_events", "new_record", "records",
]  # fmt: skip

LIMIT = 256
"""Records kept; older ones are dropped, so that a long-running program does not grow."""


@dataclass(repr=False)
class GraphRecord:
    """One captured graph on its way to a callable.

    ``stages`` maps a stage's name (``captured``, ``rewritten`` where the backend changed it, ``joint``, ``forward``,
    ``backward``, ``prims:<part>``) to its graph, without its larger constants and those on a device: their specs;
    ``seconds`` is time per stage. It keeps no memory of tensors, and no program that nobody can call any more.
    """

    name: str
    stages: dict[str, Graph] = field(default_factory=dict)
    kept: dict[str, KeptArtifact] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)

    def note(self, stage: str, graph: Graph) -> None:
        """Keep a stage's graph; with ``LAMINA_DUMP`` also write it to ``<folder>/<record>/<number>-<stage>.txt``."""
        self.stages[stage] = without_arrays(graph)
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
        """Add the block's time to ``seconds[stage]``; a block within a block of the same stage counts once."""
        if stage in self.running:
            yield
            return
        self.running.add(stage)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.running.discard(stage)
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start

    def keep(self, part: str, artifact: Any) -> None:
        """Remember what the backend returned for a part (the record's name, with ``_backward`` behind it)."""
        self.kept[part] = keep_artifact(part, artifact)

    @property
    def artifacts(self) -> dict[str, Any]:
        """By part what the backend returned; where the compiled function is gone, what can be read and saved of it."""
        return {part: kept.get() for part, kept in self.kept.items()}

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of all compiled parts."""
        return tuple(k for kept in self.kept.values() for k in kept.gone.kernels)

    @property
    def title(self) -> str:
        """The name, and the user's line at which the graph begins: of several graphs of a function, which one."""
        captured = self.stages.get("captured")
        lines = [n.meta["source"] for n in captured.nodes if "source" in n.meta] if captured is not None else []
        return f"{self.name} ({os.path.basename(lines[0][0])}:{lines[0][1]})" if lines else self.name

    def summary(self) -> str:
        """A few lines: the operators by count, and the kernels with what was fused into each."""
        captured = self.stages.get("captured")
        calls = [str(n.target) for n in captured.nodes if n.op == "call_function"] if captured is not None else []
        lines = [f"{self.title}: {counted(len(calls), 'operator')}: {tally(calls)}"]
        for kernel in self.kernels:
            origins = [operator for _, operator, _ in getattr(kernel, "origins", ())]
            lines.append(f"  kernel {kernel.name}" + (f": {tally(origins)}" if origins else ""))
        return "\n".join(lines)

    def __str__(self) -> str:
        """The captured graph in full, under the summary."""
        captured = self.stages.get("captured")
        return self.summary() + ("" if captured is None else f"\n{print_graph(captured, strict=False)}")

    def __repr__(self) -> str:
        return f"<GraphRecord {self.title}>"


def counted(number: int, word: str) -> str:
    """A number with its word.

    >>> counted(1, "graph"), counted(2, "graph")
    ('1 graph', '2 graphs')
    """
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def tally(words: Iterable[str], most: int = 12) -> str:
    """Different words with how often each comes, the most frequent first.

    >>> tally(["add", "mul", "add"])
    'add x2, mul'
    """
    counts = Counter(words).most_common()
    shown = [word if count == 1 else f"{word} x{count}" for word, count in counts[:most]]
    return ", ".join(shown) + (f" and {len(counts) - most} more" if len(counts) > most else "")


_RECORDS: deque[GraphRecord] = deque(maxlen=LIMIT)
_EVENTS: deque[CompileEvent] = deque(maxlen=LIMIT)
_DROPPED: Counter[str] = Counter()


def dropped() -> Counter[str]:
    """What the records and events that had to make way count: graphs, kernels, breaks, recompiles."""
    return _DROPPED


def _append_event(event: CompileEvent) -> None:
    if len(_EVENTS) == LIMIT:
        _DROPPED.update(breaks=len(_EVENTS[0].breaks), recompiles=bool(_EVENTS[0].recompile_reasons))
    _EVENTS.append(event)


add_listener(_append_event)


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
    _DROPPED.clear()


def forget(record: GraphRecord) -> None:
    """Drop a record: its graph could not be compiled."""
    for position, kept in enumerate(_RECORDS):
        if kept is record:
            del _RECORDS[position]
            return


def forget_events(seen: Iterable[CompileEvent]) -> None:
    """Drop these events."""
    gone = set(map(id, seen))
    kept = [event for event in _EVENTS if id(event) not in gone]
    _EVENTS.clear()
    _EVENTS.extend(kept)


def new_record(name: str) -> GraphRecord:
    """Start the record of one graph."""
    record = GraphRecord(name)
    if len(_RECORDS) == LIMIT:
        _DROPPED.update(graphs=1, kernels=len(_RECORDS[0].kernels))
    _RECORDS.append(record)
    return record
