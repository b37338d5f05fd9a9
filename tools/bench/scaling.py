"""How compile time grows with the graph: microseconds of processor time per node, stage by stage.

python tools/bench/scaling.py             graphs of 1k, 2k, 4k and 8k primitives
python tools/bench/scaling.py 1000 2000   other sizes

The graph is a chain of transformer-like layers (products, softmax, norms, pointwise), joint with its gradients, as
capture and tracing make it. The slope is the exponent between the smallest and the largest size: 1.0 is linear.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import lamina
import lamina.entry
from lamina.wiring import lower_graph
from lamina_aot import partition, trace_joint
from lamina_dynamo import optimize
from lamina_fx import Graph
from lamina_inductor.backends.cpp import supports
from lamina_inductor.backends.cpp.compile import prepare_program, print_program
from lamina_inductor.cache import graph_key
from lamina_inductor.schedule.program import build_program

__all__ = ["PER_LAYER", "Layers", "main"]

F = lamina.nn.functional
PER_LAYER = 89
"""About how many primitives a layer becomes, gradients included."""


class Layers(lamina.nn.Module):
    """Layers of an attention-like mix and a perceptron, all with weights of their own."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weights = lamina.nn.ParameterList([lamina.nn.Parameter(lamina.randn(16, 16)) for _ in range(2 * count)])
        self.norms = lamina.nn.ParameterList([lamina.nn.Parameter(lamina.ones(16)) for _ in range(2 * count)])
        self.count = count

    def forward(self, x: Any) -> Any:
        """(8, 16) -> same."""
        for k in range(self.count):
            y = F.layer_norm(x, (16,), self.norms[2 * k], self.norms[2 * k + 1])
            x = x + F.softmax(y @ y.t() * 0.25, dim=-1) @ y
            x = x + F.gelu(F.linear(x, self.weights[2 * k])) * 2.0
            x = x + lamina.tanh(F.linear(x, self.weights[2 * k + 1]))
        return x


def stages(count: int) -> tuple[int, dict[str, tuple[float, int]]]:
    """Seconds and the number of nodes they are for, by stage; and the number of primitives."""
    model, x = Layers(count), lamina.randn(8, 16)
    found: dict[str, Any] = {}
    times: dict[str, tuple[float, int]] = {}

    def clocked(name: str, run: Callable[[], Any], size: Callable[[Any], int]) -> Any:
        gc.collect()
        start = time.process_time()
        result = run()
        times[name] = time.process_time() - start, size(result)
        return result

    def compile_graph(graph: Graph, inputs: Any, context: Any = None) -> Any:
        found["captured"], found["inputs"] = graph, inputs
        return lambda *values: tuple(n for n in [lamina.zeros(8, 16)])

    from lamina.frontend import LaminaFrontend

    model.forward = optimize(compile_graph, LaminaFrontend())(model.forward)
    clocked("capture, per operator", lambda: model(x), lambda _: _calls(found["captured"]))
    joint = clocked(
        "trace, per node", lambda: trace_joint(found["captured"], found["inputs"]), lambda j: _calls(j.graph)
    )
    clocked("partition, per node", lambda: partition(joint), lambda _: _calls(joint.graph))
    lowered = clocked("decompose and clean, per result", lambda: lower_graph(joint.graph), _calls)
    clocked("cache key, per node", lambda: graph_key(lowered), lambda _: _calls(lowered))
    program = clocked(
        "lower and schedule, per node", lambda: build_program(lowered, name="f", supports=supports),
        lambda _: _calls(lowered),
    )  # fmt: skip
    clocked(
        "print C++, per node", lambda: print_program(prepare_program(program), libmvec=True), lambda _: _calls(lowered)
    )
    return _calls(lowered), times


def _calls(graph: Graph) -> int:
    return sum(1 for node in graph.nodes if node.op == "call_function")


def main() -> None:
    sizes = [int(a) for a in sys.argv[1:]] or [1000, 2000, 4000, 8000]
    rows = [stages(max(1, round(size / PER_LAYER))) for size in sizes]
    print(f"{'microseconds of processor time':34}" + "".join(f"{count:>9} n" for count, _ in rows) + "    slope")
    for name in rows[0][1]:
        per = [1e6 * times[name][0] / times[name][1] for _, times in rows]
        totals = [times[name][0] for _, times in rows]
        slope = math.log(totals[-1] / totals[0]) / math.log(rows[-1][0] / rows[0][0]) if len(rows) > 1 else 1.0
        print(f"{name:34}" + "".join(f"{p:11.1f}" for p in per) + f"{slope:9.2f}")


if __name__ == "__main__":
    main()
