"""Run passes one after the other: timed, checked, dumped, switched off by name.

>>> from lamina_fx import parse
>>> from lamina_fx.passes import eliminate_common_subexpressions, eliminate_dead_code
>>> g = parse("graph { %x = placeholder  %a = neg(%x)  %b = neg(%x)  return %a }")
>>> g, report = run_passes(g, [eliminate_common_subexpressions, eliminate_dead_code], disable=("eliminate_dead_code",))
>>> [(run.name, run.nodes_before, run.nodes_after) for run in report.runs]
[('eliminate_common_subexpressions', 4, 3)]

Environment: ``LAMINA_CHECK=1`` verifies after each pass and, where example inputs are given, compares what the graph
computes before and after; ``LAMINA_DISABLE_PASSES=name,name`` leaves passes out; ``LAMINA_DUMP=folder`` writes the text
before and after each pass that changed something.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..graph import Graph
from ..interpreter import Interpreter, Resolver
from ..pytree import tree_leaves
from ..verifier import VerificationError, verify

__all__ = ["Pass", "PassRun", "Report", "run_passes"]

Pass = Callable[[Graph], Graph]
"""From a graph to a graph (usually the same one, changed). Bind options with ``functools.partial``."""

Dump = Callable[[str, Graph, Graph], None]


@dataclass(frozen=True)
class PassRun:
    """What one pass did."""

    name: str
    seconds: float
    nodes_before: int
    nodes_after: int


@dataclass
class Report:
    """The passes that ran, in order."""

    runs: list[PassRun] = field(default_factory=list)

    def __str__(self) -> str:
        width = max([len(r.name) for r in self.runs], default=4)
        lines = [f"{'pass':<{width}}  {'ms':>8}  nodes"]
        lines += [f"{r.name:<{width}}  {r.seconds * 1e3:8.2f}  {r.nodes_before} -> {r.nodes_after}" for r in self.runs]
        return "\n".join(lines)


def run_passes(
    graph: Graph,
    passes: Sequence[Pass],
    *,
    resolver: Resolver | None = None,
    examples: Sequence[Any] | None = None,
    disable: Iterable[str] = (),
    check: bool | None = None,
    dump: Dump | str | Path | None = None,
) -> tuple[Graph, Report]:
    """Run ``passes`` on ``graph``; returns the graph and what each did.

    Args:
        graph: where to start; passes may change it.
        passes: functions, named by ``__name__``.
        resolver: for verifying specs and for running the graph on the examples.
        examples: inputs for comparing what the graph computes.
        disable: names to leave out, besides those in the environment.
        check: verify after each pass; by default as ``LAMINA_CHECK`` says.
        dump: a folder, or a function of (name, graph before, graph after).

    Raises:
        VerificationError: a pass made a malformed graph, or one that computes something else; names the pass.
    """
    check = os.environ.get("LAMINA_CHECK") == "1" if check is None else check
    skip = {*disable, *filter(None, os.environ.get("LAMINA_DISABLE_PASSES", "").split(","))}
    dump = dump if dump is not None else os.environ.get("LAMINA_DUMP")
    report = Report()
    if check:
        _verify(graph, resolver, "the graph that was given")
    for function in passes:
        if _name(function) not in skip:
            graph = _run(graph, function, report, resolver, examples, check, dump)
    return graph, report


def _run(
    graph: Graph,
    function: Pass,
    report: Report,
    resolver: Resolver | None,
    examples: Sequence[Any] | None,
    check: bool,
    dump: Dump | str | Path | None,
) -> Graph:
    """Run one pass and note it in ``report``."""
    name = _name(function)
    before = graph.copy() if check or dump else None
    count = len(graph.nodes)
    start = time.perf_counter()
    graph = function(graph)
    report.runs.append(PassRun(name, time.perf_counter() - start, count, len(graph.nodes)))
    if dump and before is not None:
        _dump(dump, len(report.runs), name, before, graph)
    if check and before is not None:
        _verify(graph, resolver, f"after the pass {name}")
        if examples is not None:
            _compare(before, graph, resolver, examples, name)
    return graph


def _name(function: Pass) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def _verify(graph: Graph, resolver: Resolver | None, when: str) -> None:
    try:
        verify(graph, resolver)
    except VerificationError as error:
        raise VerificationError([f"{when}: {p}" for p in error.problems]) from None


def _dump(dump: Dump | str | Path, number: int, name: str, before: Graph, after: Graph) -> None:
    if callable(dump):
        dump(name, before, after)
        return
    old, new = str(before), str(after)
    if old != new:
        folder = Path(dump)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:02}-{name}-before.txt").write_text(old + "\n")
        (folder / f"{number:02}-{name}-after.txt").write_text(new + "\n")


def _compare(before: Graph, after: Graph, resolver: Resolver | None, examples: Sequence[Any], name: str) -> None:
    old = tree_leaves(Interpreter(before, resolver).run(*examples))
    new = tree_leaves(Interpreter(after, resolver).run(*examples))
    if len(old) != len(new):
        raise VerificationError([f"the pass {name} changed the number of results from {len(old)} to {len(new)}"])
    for index, (a, b) in enumerate(zip(old, new, strict=True)):
        if not _close(a, b):
            raise VerificationError([f"the pass {name} changed result {index}: {a!r} became {b!r}"])


def _close(a: Any, b: Any) -> bool:
    """Equal, element by element: equal numbers, both nan, or apart by rounding."""
    if hasattr(a, "tolist") and hasattr(b, "tolist"):
        if tuple(a.shape) != tuple(b.shape) or str(a.dtype) != str(b.dtype):
            return False
        return _close(a.tolist(), b.tolist())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 * max(abs(a), abs(b))
    return bool(a == b)
