"""Training steps as programs. Those whose sizes are all symbolic are as few kernels as those of known sizes, give or
take what cannot be known: whether two sizes are equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import lamina
from lamina import nn
from lamina.backends import ReferenceArtifact
from lamina.nn import functional as F
from lamina_fx import Graph
from lamina_inductor.backends.triton import TritonBackend
from lamina_inductor.ir.program import Gemm, Launch
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import CPU_LOOPS, GRID_LOOPS, LoopStyle


@dataclass(frozen=True)
class Watched:
    """A backend that keeps what it is given, and interprets it."""

    graphs: list[Graph]
    name: str = "watched"
    keep: frozenset[str] = TritonBackend.keep

    def compile(self, graph: Graph, *, name: str, options: dict[str, Any]) -> ReferenceArtifact:
        self.graphs.append(graph)
        return ReferenceArtifact(graph)


def graph_of(step: Callable[..., Any], *inputs: Any, dynamic: bool) -> Graph:
    graphs: list[Graph] = []
    lamina.compile(step, dynamic=dynamic, backend=Watched(graphs))(*inputs)
    (graph,) = graphs
    return graph


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(F.gelu(self.up(self.ln(x))))


def language_model(
    width: int = 64, batch: int = 4, autocast: bool = False
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step of AdamW, the optimizer in it."""
    blocks = Block(width), Block(width)
    model = nn.Sequential(nn.Embedding(96, width), *blocks, nn.LayerNorm(width), nn.Linear(width, 96))
    optimizer = lamina.optim.AdamW(model.parameters(), lr=1e-3)

    def step(tokens: Any, targets: Any) -> Any:
        with lamina.autocast("cpu", dtype=lamina.bfloat16, enabled=autocast):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    tokens = (lamina.arange(batch * 32) * 7 % 96).reshape(batch, 32)
    return step, (tokens, (tokens * 5 + 1) % 96)


@pytest.fixture(scope="module")
def graphs() -> tuple[Graph, Graph]:
    """Of known sizes and of symbolic ones."""
    return tuple([graph_of(step, *inputs, dynamic=d) for d in (False, True) for step, inputs in (language_model(),)])  # type: ignore[return-value]


@dataclass(frozen=True)
class Counts:
    """Of a program."""

    sizes: int
    steps: int
    kernels: int
    calls: int
    epilogues: int


def counts(graph: Graph, loops: LoopStyle) -> Counts:
    program = build_program(graph, loops=loops)
    return Counts(
        len(program.sizes),
        len(program.steps),
        len(program.kernels),
        sum(len(step.parts) for step in program.steps if type(step) is Launch),
        sum(1 for step in program.steps if type(step) is Gemm and step.epilogue is not None),
    )


@pytest.mark.parametrize("loops", [CPU_LOOPS, GRID_LOOPS], ids=["cpu", "grid"])
def test_as_many_kernels_as_with_known_sizes(graphs: tuple[Graph, Graph], loops: LoopStyle) -> None:
    known, symbolic = (counts(graph, loops) for graph in graphs)
    assert known.sizes == 0 and symbolic.sizes == 4
    assert symbolic.steps <= known.steps + 3
    assert symbolic.kernels <= known.kernels + 3
    assert symbolic.calls <= known.calls + 3
    assert symbolic.epilogues >= known.epilogues > 5


def test_layers_share_kernels_on_a_gpu(graphs: tuple[Graph, Graph]) -> None:
    """Of known sizes and of symbolic ones, whose symbols are other ones for each layer; templates too."""
    known, symbolic = (TritonBackend().emit(graph) for graph in graphs)
    assert len(symbolic.kernels) <= len(known.kernels) + 4
    assert len(symbolic.steps) <= len(known.steps) + 6


def test_weights_are_converted_together_where_a_launch_costs_more_than_the_cache_gains() -> None:
    step, inputs = language_model(width=256, batch=16, autocast=True)
    graph = graph_of(step, *inputs, dynamic=False)
    assert conversions(graph, GRID_LOOPS) == [5]
    assert len(conversions(graph, CPU_LOOPS)) > 1


def conversions(graph: Graph, loops: LoopStyle) -> list[int]:
    """How many weights each launch converts that converts any."""
    launches = [step for step in build_program(graph, loops=loops).steps if type(step) is Launch]
    found = [
        [c for c in s.parts if {op for _, op, _ in c.kernel.origins} == {"convert_element_type"}] for s in launches
    ]
    return [len(calls) for calls in found if calls]
