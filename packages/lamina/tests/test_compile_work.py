"""How much work compiling takes, in calls and not in time: what a stage does for one more operator or node."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

import lamina
from lamina.frontend import LaminaFrontend
from lamina.wiring import lower_graph
from lamina_aot import trace_joint
from lamina_dynamo import capture, optimize
from lamina_fx import Graph
from lamina_prims import Operator, decompose
from lamina_testing.work import count_calls

LINES = ("x = lamina.tanh(x)", "x = x * w", "x = x + 1.0", "x = x.sum(-1, keepdim=True) + w", "x = x @ w")


def straight(count: int) -> Callable[..., Any]:
    """A new function of ``count`` operators, of a code object that no cache entry knows."""
    body = "".join(f"    {LINES[k % len(LINES)]}\n" for k in range(count))
    table: dict[str, Any] = {"lamina": lamina}
    exec(f"def f(x, w):\n{body}    return x\n", table)
    return table["f"]


def captured(count: int) -> tuple[Graph, Any, int]:
    """The graph of such a function, its inputs, and the calls that capturing it made."""
    found: list[Any] = []

    def compile_graph(graph: Graph, inputs: Any, context: Any = None) -> Callable[..., Any]:
        found.extend((graph, inputs))
        return lambda *values: (x,)

    x, w = lamina.ones(4, 4), lamina.ones(4, 4, requires_grad=True)
    compiled = optimize(compile_graph, LaminaFrontend())(straight(count))
    calls = count_calls(lambda: compiled(x, w))
    return found[0], found[1], calls


def operators(graph: Graph) -> int:
    return sum(1 for node in graph.nodes if node.op == "call_function")


def per_unit(small: tuple[int, int], large: tuple[int, int]) -> float:
    """Calls per unit, between two (calls, units): what is done once does not count."""
    return (large[0] - small[0]) / (large[1] - small[1])


@pytest.fixture(scope="module")
def graphs() -> list[tuple[Graph, Any, int]]:
    captured(10)  # what is made once per operator
    return [captured(count) for count in (20, 120)]


def test_capture_of_an_operator(graphs: Any) -> None:
    """Interpreting its bytecode, running it on fakes, writing its node."""
    assert per_unit(*[(calls, operators(graph)) for graph, _, calls in graphs]) < 380  # 368 on 3.13


def test_tracing_and_decomposing_a_node(graphs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMINA_CHECK", raising=False)  # checking each pass is work, too
    joints = []
    for graph, inputs, _ in graphs:
        trace_joint(graph, inputs)
        calls = count_calls(lambda graph=graph, inputs=inputs: trace_joint(graph, inputs))
        joint = trace_joint(graph, inputs).graph
        joints.append((joint, calls))
    assert per_unit(*[(calls, operators(joint)) for joint, calls in joints]) < 160
    lowered = [(count_calls(lambda j=j: decompose(j)), operators(decompose(j))) for j, _ in joints]
    assert per_unit(*lowered) < 105
    cleaned = [(count_calls(lambda j=j: lower_graph(j)), operators(decompose(j))) for j, _ in joints]
    assert per_unit(*cleaned) < 160


def test_one_inference_of_each_operator(graphs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A captured operator's spec is inferred once, and so is each node's that decomposition makes."""
    seen: list[str] = []
    plain = Operator.infer

    def infer(self: Operator, args: Any, kwargs: Any) -> Any:
        seen.append(self.id)
        return plain(self, args, kwargs)

    monkeypatch.setattr(Operator, "infer", infer)
    graph, inputs, _ = captured(50)
    assert len(seen) == operators(graph)
    joint = trace_joint(graph, inputs).graph
    seen.clear()
    lowered = decompose(joint)
    assert len(seen) <= operators(lowered)


def test_collector_rests_while_compiling() -> None:
    starts: list[str] = []

    def note(phase: str, info: Any) -> None:
        starts.append(phase)

    function = straight(300)
    x = lamina.ones(4, 4)
    compiled = lamina.compile(function)
    gc.collect()
    gc.callbacks.append(note)
    try:
        with lamina.no_grad():
            compiled(x, x)
    finally:
        gc.callbacks.remove(note)
    assert starts.count("start") <= 3  # the rest of the call
    assert gc.isenabled()


def test_a_call_takes_what_the_guards_have_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that runs instead of the frame is as short for a hundred parameters as for ten."""
    made: list[CodeType] = []
    plain = capture.flat_code

    def flat_code(code: CodeType, more: int = 0) -> CodeType:
        made.append(code)
        return plain(code, more)

    monkeypatch.setattr(capture, "flat_code", flat_code)
    for count in (10, 100):
        parameters = [lamina.ones(2, requires_grad=True) for _ in range(count)]
        for p in parameters:
            p.grad = lamina.ones(2)
        optimizer = lamina.optim.SGD(parameters, lr=0.5, momentum=0.9)
        step = lamina.compile(lambda optimizer=optimizer: optimizer.step())
        step()
        step()
        assert all(p.tolist() == pytest.approx([-0.45, -0.45]) for p in parameters)
    assert len({len(code.co_code) for code in made[-2:]}) == 1
