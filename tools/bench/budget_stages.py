"""Budgets of the compiler's stages: capture, tracing, decomposition, lowering, the C++ compiler."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from budget_row import Row, least, slope
from scaling import PER_LAYER, Layers

import lamina
import lamina.entry
from lamina.frontend import LaminaFrontend
from lamina.wiring import lower_graph
from lamina_aot import trace_joint
from lamina_dynamo import optimize
from lamina_dynamo.translate import run as translation
from lamina_fx import Graph
from lamina_inductor.backends.cpp import supports
from lamina_inductor.backends.cpp.toolchain import Toolchain
from lamina_inductor.schedule.program import build_program
from lamina_prims import decompose

__all__ = ["STAGE_ROWS"]


class Captured:
    """One capture: the graph, its inputs, and how many bytecode instructions were interpreted."""

    graph: Graph
    inputs: Any
    instructions: int

    @property
    def operators(self) -> int:
        """Nodes that call an operator."""
        return _calls(self.graph)


def _calls(graph: Graph) -> int:
    return sum(1 for node in graph.nodes if node.op == "call_function")


@contextmanager
def _counting(found: Captured) -> Iterator[None]:
    """Note the number of instructions of each translation."""
    plain = translation.finish

    def finish(tx: Any, *rest: Any) -> Any:
        found.instructions = tx.step
        return plain(tx, *rest)

    translation.finish = finish
    try:
        yield
    finally:
        translation.finish = plain


def capture(make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]) -> tuple[float, Captured]:
    """Microseconds to capture the function that ``make`` makes, called on the arguments that it makes."""
    found = Captured()

    def compile_graph(graph: Graph, inputs: Any, context: Any = None) -> Callable[..., Any]:
        found.graph, found.inputs = graph, inputs
        outputs = len(list(graph.nodes)[-1].args[0])
        return lambda *values: (lamina.zeros(8, 16),) * outputs

    def prepared() -> Callable[[], Any]:
        function, arguments = make()
        compiled = optimize(compile_graph, LaminaFrontend())(function)
        return lambda: compiled(*arguments)

    with _counting(found):
        return least(prepared), found


def _layers(count: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return Layers(count).forward, (lamina.randn(8, 16),)


def _fresh(source: str) -> Callable[..., Any]:
    """A function of its own code object, which no cache entry knows."""
    table: dict[str, Any] = {"lamina": lamina}
    exec(source, table)
    return table["f"]


def _counted(count: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A loop of plain Python: numbers, a list, a comparison."""
    text = f"""def f(x):
    total, seen = 0, []
    for k in range({count}):
        if k % 3 == 1:
            seen.append(k)
        else:
            total += k * 2
    return x + total
"""
    return _fresh(text), (lamina.ones(4),)


def _counted_once(count: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Without a loop: every instruction is decoded, and interpreted once."""
    lines = "    seen.append(total)\n    total = total * 2 + len(seen) - seen[-1] * 2\n" * count
    return _fresh(f"def f(x):\n    total, seen = 0, []\n{lines}    return x + total\n"), (lamina.ones(4),)


def _straight(count: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Operators and nothing else."""
    lines = ["x = lamina.tanh(x)", "x = x * y", "x = x + 1.0", "x = x.sum(-1, keepdim=True) + y"]
    text = "def f(x, y):\n" + "".join(f"    {lines[k % 4]}\n" for k in range(count)) + "    return x\n"
    return _fresh(text), (lamina.ones(8, 16), lamina.ones(8, 16))


def capture_rows() -> Iterator[Row]:
    """Interpreting bytecode; operators on fakes."""
    capture(lambda: _counted(10)), capture(lambda: _straight(8))
    loops = [capture(lambda n=n: _counted(n)) for n in (100, 1100)]
    yield Row("a bytecode instruction, in a loop", slope(*[(t, c.instructions) for t, c in loops]), 5)
    plain = [capture(lambda n=n: _counted_once(n)) for n in (30, 330)]
    instruction = slope(*[(t, c.instructions) for t, c in plain])
    yield Row("a bytecode instruction, decoded and interpreted once", instruction, 5)
    chains = [capture(lambda n=n: _straight(n)) for n in (40, 400)]
    less = [(t - instruction * c.instructions, c.operators) for t, c in chains]
    yield Row("an operator, its instructions not counted", slope(*less), 40)
    capture(lambda: _layers(2))
    (first, a), (last, b) = [capture(lambda n=n: _layers(n)) for n in (10, 50)]
    operators, instructions = b.operators - a.operators, b.instructions - a.instructions
    allowed = (40 * operators + 5 * instructions) / operators
    yield Row(
        f"transformer layers, an operator with its {instructions / operators:.0f} instructions",
        (last - first) / operators,
        allowed,
    )


def stage_rows() -> Iterator[Row]:
    """Tracing and decomposing layers with their gradients."""
    _, small = capture(lambda: _layers(4))
    _, large = capture(lambda: _layers(40))
    trace_joint(small.graph, small.inputs)
    joints = [(least(lambda c=c: lambda: trace_joint(c.graph, c.inputs)), c) for c in (small, large)]
    graphs = [trace_joint(c.graph, c.inputs).graph for c in (small, large)]
    per = slope(*[(t, _calls(g)) for (t, _), g in zip(joints, graphs, strict=True)])
    yield Row("tracing and functionalising, an operator of the joint graph", per, 60)
    lower_graph(graphs[0])
    times = [(least(lambda g=g: lambda: decompose(g)), _calls(decompose(g))) for g in graphs]
    yield Row("decomposition, a resulting node", slope(*times), 20)
    times = [(least(lambda g=g: lambda: lower_graph(g)), _calls(decompose(g))) for g in graphs]
    yield Row("the same with the clean-up passes", slope(*times), None)


def schedule_rows() -> Iterator[Row]:
    """Lowering and scheduling at several sizes."""
    for wanted in (1000, 8000):
        _, found = capture(lambda n=wanted: _layers(round(n / PER_LAYER)))
        lowered = lower_graph(trace_joint(found.graph, found.inputs).graph)
        build = lambda g=lowered: lambda: build_program(g, name="f", supports=supports)  # noqa: E731
        time = least(build, repeats=3) / _calls(lowered)
        yield Row(f"lowering and scheduling, a node of {_calls(lowered)}", time, 150)


def compiler_rows() -> Iterator[Row]:
    """The C++ compiler's processor time for a GPT block, forward and backward."""
    from cold_worker import torch_like

    units, spent = [0], [0.0]
    plain = Toolchain.build

    def build(self: Any, texts: Any, output: Any) -> None:
        before = os.times()
        plain(self, texts, output)
        after = os.times()
        units[0] += len(texts)
        spent[0] += after.children_user + after.children_system - before.children_user - before.children_system

    Toolchain.build = build
    saved = os.environ.get("LAMINA_CACHE_DIR")
    try:
        with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
            os.environ["LAMINA_CACHE_DIR"] = folder
            lamina.compiler.reset()
            torch_like(lamina, "GPT block")()
    finally:
        Toolchain.build = plain
        os.environ.pop("LAMINA_CACHE_DIR")
        if saved is not None:
            os.environ["LAMINA_CACHE_DIR"] = saved
    record = lamina.compiler.records()[-1]
    sources = {k.source.replace(k.name, "") for a in record.artifacts.values() for k in a.kernels}
    budget = 25 * len(sources) + 40 * units[0]
    yield Row(f"GPT block: {len(sources)} kernels in {units[0]} units", 1e3 * spent[0], budget, "ms")


STAGE_ROWS: dict[str, Callable[[], Iterator[Row]]] = {
    "capture": capture_rows,
    "tracing and decomposition": stage_rows,
    "scheduling": schedule_rows,
    "C++ compiler": compiler_rows,
}
"""Groups of rows by name."""
