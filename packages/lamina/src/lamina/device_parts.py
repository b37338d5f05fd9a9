"""A graph with tensors on several GPUs: a program for each stretch on one of them, and copies between.

>>> from lamina_fx import parse
>>> graph = parse('''graph {
...   %x: float32[3] cuda:0 = placeholder
...   %a: float32[3] cuda:0 = mul(%x, 2.0)
...   %b: float32[3] cuda:1 = device_put(%a, device("cuda:1"))
...   %c: float32[3] cuda:1 = sin(%b)
...   return (%a, %c)
... }''')
>>> [(type(step).__name__, step.device) for step in split_devices(graph).steps]
[('Part', 0), ('Move', 1), ('Part', 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lamina_aot.symbols import SizeReader, free_symbols, size_reader
from lamina_fx import Device, Graph, Node, ScalarSpec, TensorSpec
from lamina_fx.node import map_arguments
from lamina_tensor import from_numpy

__all__ = ["DeviceProgram", "Move", "Part", "gpus_of", "split_devices"]


@dataclass(frozen=True, eq=False)
class Part:
    """A graph for one GPU. inputs: nodes of the whole graph whose values it takes, then symbols whose values it takes;
    results: nodes whose values it gives."""

    device: int
    graph: Graph
    inputs: tuple[Node, ...]
    symbols: tuple[Any, ...]
    results: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Move:
    """A copy of ``source``'s value to a GPU: the value of ``result``."""

    device: int
    source: Node
    result: Node


@dataclass(frozen=True)
class Split:
    """Steps in their order, and the graph that they are of."""

    graph: Graph
    steps: tuple[Part | Move, ...]


def gpus_of(graph: Graph) -> set[int]:
    """Numbers of the GPUs that the graph's tensors are on."""
    return {index for node in graph.nodes for index in _gpus(node.spec)}


def _gpus(spec: Any) -> list[int]:
    specs = spec if isinstance(spec, tuple) else (spec,)
    return [s.device.index or 0 for s in specs if isinstance(s, TensorSpec) and s.device.type == "cuda"]


def split_devices(graph: Graph) -> Split:
    """Cut a functional graph of strict primitives (``copy_to`` at its end) at each change of the GPU.

    A stretch holds what can run on its GPU after equally many changes on the way from the inputs. Inputs are written
    when all have read them.
    """
    placed = _Placing(graph)
    steps: list[Part | Move] = []
    for level in sorted(set(placed.level.values())):
        here = [node for node, at in placed.level.items() if at == level]
        moves = [node for node in here if node in placed.moves]
        for device in sorted({placed.home[n] for n in here if n not in placed.moves}):
            own = [n for n in here if n not in placed.moves and placed.home[n] == device]
            steps.append(_part(graph, device, own))
        steps += [Move(placed.home[n], n.all_input_nodes[0], n) for n in moves]
    return Split(graph, tuple(steps))


_CHEAP = frozenset((
    "as_strided", "broadcast_in_dim", "convert_element_type", "flip", "full", "iota", "permute", "reshape", "slice",
))  # fmt: skip
"""What is done where it is read, in the kernel that reads it."""


@dataclass
class _Placing:
    """Where and when each call runs. level: how many changes of the GPU lie before it."""

    graph: Graph
    home: dict[Node, int] = field(default_factory=dict)
    level: dict[Node, int] = field(default_factory=dict)
    moves: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        calls = [n for n in self.graph.nodes if n.op not in ("placeholder", "output", "get_attr")]
        lowest = min(gpus_of(self.graph))
        for node in calls:
            self.home[node] = self._home(node, lowest)
            if node.target == "device_put" and self._is_move(node):
                self.moves.add(node)
            self.level[node] = max([0, *(self._behind(n, node) for n in node.all_input_nodes if n in self.level)])
        for node in reversed(calls):
            if node.target in _CHEAP and all(u in self.level for u in node.users):
                latest = [self.level[u] - (self._behind(node, u) - self.level[node]) for u in node.users]
                self.level[node] = max(self.level[node], min(latest, default=0))
        for node in calls:
            if node.target == "copy_to":  # when all have read what it writes
                readers = [n for n in node.args[0].users if n.target != "copy_to" and n in self.level]  # type: ignore[union-attr]
                self.level[node] = max([self.level[node], *(self.level[n] + (n in self.moves) for n in readers)])

    def _home(self, node: Node, lowest: int) -> int:
        found = _gpus(node.spec) or [d for n in node.all_input_nodes for d in _gpus(n.spec)]
        return (found or [self.home[n] for n in node.all_input_nodes if n in self.home] or [lowest])[0]

    def _is_move(self, node: Node) -> bool:
        source = _gpus(node.all_input_nodes[0].spec)
        return bool(source) and bool(_gpus(node.spec)) and source != _gpus(node.spec)

    def _behind(self, before: Node, node: Node) -> int:
        """The lowest level for a node that reads ``before``: copies come last in theirs."""
        same = before not in self.moves and (node in self.moves or self.home[before] == self.home[node])
        return self.level[before] + (0 if same else 1)


def _part(graph: Graph, device: int, nodes: list[Node]) -> Part:
    inner, values, members = Graph(), {}, set(nodes)
    used = dict.fromkeys(n for node in nodes for n in node.all_input_nodes)
    inputs = tuple([n for n in used if n not in members and n.op != "get_attr"])
    for node in inputs:
        values[node] = inner.placeholder(node.name, spec=node.spec)
    shown = set(size_reader(inner).places)
    sizes = {s: size for s, size in free_symbols([*nodes, *inputs]).items() if s not in shown}
    for size in sizes.values():
        inner.placeholder(f"size_{len(inner.nodes)}", spec=ScalarSpec(int, size))
    for node in used:
        if node.op == "get_attr":
            values[node] = inner.node_copy(node, values.__getitem__)
            inner.attributes[node.target] = graph.attributes[node.target]
    for node in nodes:
        values[node] = inner.node_copy(node, values.__getitem__)
    results = tuple([n for n in nodes if any(u not in members for u in n.users)])
    inner.output(map_arguments(results, values.__getitem__))
    return Part(device, inner, inputs, tuple(sizes), results)


class DeviceProgram:
    """Runs the steps of a split graph with a compiled function for each part. Takes and returns what the graph does."""

    def __init__(self, split: Split, compile_part: Callable[[Graph, int], Callable[..., Sequence[Any]]]) -> None:
        graph = split.graph
        self._places = {node: k for k, node in enumerate(graph.placeholders)}
        self._sizes: SizeReader = size_reader(graph)
        self._steps: list[tuple[Any, tuple[int, ...], tuple[Any, ...]]] = []
        outputs: Any = graph.output_node.args[0]
        for node in (*outputs, *(step.source for step in split.steps if isinstance(step, Move))):
            if isinstance(node, Node) and node.op == "get_attr" and node not in self._places:
                self._steps.append((_maker(graph.attributes[node.target], node.spec), (), ()))
                self._place(node)
        for number, step in enumerate(split.steps):
            if isinstance(step, Move):
                self._steps.append((Device("cuda", step.device), (self._place(step.source),), ()))
                self._place(step.result)
                continue
            function = compile_part(step.graph, number)
            self._steps.append((function, tuple([self._place(n) for n in step.inputs]), step.symbols))
            for node in step.results:
                self._place(node)
        self._results = tuple([(self._place(v), None) if isinstance(v, Node) else (-1, v) for v in outputs])

    def _place(self, node: Node) -> int:
        return self._places.setdefault(node, len(self._places))

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Put the work on the current streams of the GPUs; copies wait for what is before them on both."""
        values = list(inputs)
        for what, places, symbols in self._steps:
            given = [values[k] for k in places]
            if isinstance(what, Device):
                values.append(given[0].detach().to(what))
            else:
                values += what(*given, *[self._sizes.value(inputs, s) for s in symbols])
        return tuple([self._sizes(inputs, v) if place < 0 else values[place] for place, v in self._results])


def _maker(constant: Any, spec: Any) -> Callable[[], tuple[Any]]:
    """Makes a tensor of a constant, anew for each call."""
    return lambda: (from_numpy(np.array(constant)).to(spec.device),)
