"""Cut a joint graph into a forward and a backward graph that together keep few bytes.

Method: a minimum cut over "keep this value" (its bytes) against "compute it again in the backward" (forbidden
for products and effects, free for views, a small charge otherwise).
Source: Z. Jia et al., "Checkmate" (2020) for the trade; the cut formulation is that of AOT compilers since 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamina_fx import Graph, Node, ScalarSpec
from lamina_fx.expect import expect
from lamina_fx.node import iter_nodes
from lamina_prims import operator

from .costs import BANNED, CHEAP, FREE, MODERATE, bytes_of, recompute_cost
from .joint import JointGraph
from .maxflow import INFINITE, Network
from .symbols import free_symbols, size_reader

__all__ = ["Partition", "ancestors", "extract", "inputs_of_backward", "partition"]


@dataclass(frozen=True)
class Partition:
    """Two graphs and what goes between them.

    ``forward`` takes the joint graph's inputs and returns its forward results, then the other ``saved`` values.
    ``backward`` takes all ``saved`` values, then the tangents, and returns the gradients. ``places[k]`` says where
    saved value k is: ``("input", index)`` or ``("result", index)`` among everything the forward graph returns.
    """

    forward: Graph
    backward: Graph
    saved: tuple[Node, ...]
    places: tuple[tuple[str, int], ...]
    saved_bytes: int
    symbols: tuple[Any, ...] = ()
    """Sizes (SymInt) that the backward cannot read off its tensors: numbers after the tangents."""


def partition(joint: JointGraph, budget: float = 1.0) -> Partition:
    """Split ``joint``.

    ``budget`` in [0, 1] bounds the bytes kept beyond the inputs, as a share of what keeping everything that is
    not recomputed for free would take; below 1 reductions and then products are computed again as well.
    Nodes in a ``checkpoint`` region are always recomputed.

    Raises:
        ValueError: ``budget`` is outside [0, 1].
    """
    expect("partition", joint, JointGraph, "a JointGraph (trace_joint gives one)")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"the memory budget is a share between 0 and 1, got {budget}")
    facts = _Facts(joint)
    saved = facts.cut(BANNED)
    if budget < 1.0:
        limit = budget * _kept_bytes(saved)
        for allowed in (BANNED, BANNED + 1):
            if _kept_bytes(saved) <= limit:
                break
            saved = min(saved, facts.cut(allowed, eager=True), key=_kept_bytes)
    return _split(joint, facts, saved)


def inputs_of_backward(joint: JointGraph) -> frozenset[int]:
    """Inputs, by position, that a step of the backward reads itself, or a view of them: what eager saves.

    To be asked before anything is computed again in the backward.
    """
    behind: set[Node] = set(joint.tangents)
    read: set[Node] = set()
    for node in joint.graph.nodes:
        used = () if node.op == "output" else tuple(iter_nodes((node.args, node.kwargs)))
        if any(n in behind for n in used):
            behind.add(node)
            read.update(_viewed(n) for n in used)
    return frozenset(k for k, n in enumerate(joint.graph.placeholders) if n in read)


def _viewed(node: Node) -> Node:
    while node.op == "call_function" and node.target != "getitem" and operator(node.target).alias:
        inner = node.args[0]
        if not isinstance(inner, Node):
            break
        node = inner
    return node


def _kept_bytes(saved: list[Node]) -> int:
    return sum(bytes_of(node) for node in saved if node.op != "placeholder")


class _Facts:
    """Which nodes hang on tangents, which the forward needs, and the network over the others."""

    def __init__(self, joint: JointGraph) -> None:
        self.joint = joint
        graph = joint.graph
        tangents = set(joint.tangents)
        self.after_tangent: set[Node] = set()
        for node in graph.nodes:
            depends = node in tangents or any(i in self.after_tangent for i in node.all_input_nodes)
            if depends and node.op != "output":
                self.after_tangent.add(node)
        placeholders = graph.placeholders
        self.overwritten = {placeholders[k] for k in joint.overwritten} | _free_to_write(joint)
        results = joint.results
        roots = [r for r in results[: joint.forward_count] if isinstance(r, Node)]
        self.returned = set(roots)
        roots += [n for n in graph.nodes if n.effect is not None and n not in self.after_tangent]
        self.forward = ancestors(roots)
        self.gradients = [r for r in results[joint.forward_count :] if isinstance(r, Node)]
        self.backward = ancestors(self.gradients)
        self.candidates = [n for n in graph.nodes if n in self.backward and n not in self.after_tangent]

    def cut(self, banned_from: int, eager: bool = False) -> list[Node]:
        """The cheapest set of values to keep, never recomputing classes from ``banned_from`` on."""
        number = {node: 2 + 2 * k for k, node in enumerate(self.candidates)}
        net = Network(2 + 2 * len(number))
        source, sink = 0, 1
        for node, vertex in number.items():
            net.add(vertex, vertex + 1, self._keeping(node, eager))
            kept = _checkpointed(node) is not None or recompute_cost(node) >= banned_from
            if node.op == "placeholder" or _copies_input(node) or (kept and not self._again(node)):
                net.add(source, vertex, INFINITE)
            for user in node.users:
                if user in self.after_tangent or (user.op == "output" and node in self.gradients):
                    net.add(vertex + 1, sink, INFINITE)
                elif user in number:
                    net.add(vertex + 1, number[user], INFINITE)
        if net.maximum_flow(source, sink) >= INFINITE:
            raise RuntimeError("no cut: a value that may be neither kept nor recomputed is needed by the backward")
        side = net.source_side(source)
        return [node for node, vertex in number.items() if vertex in side and vertex + 1 not in side]

    def _again(self, node: Node) -> bool:
        """Is it inside a checkpoint region: computed again. What leaves the region is kept: others start there."""
        region = _checkpointed(node)
        return region is not None and all(_checkpointed(user) == region for user in node.users if user in self.forward)

    def _keeping(self, node: Node, eager: bool) -> int:
        if isinstance(node.spec, tuple):
            return INFINITE  # several results: each is kept by its getitem
        if node in self.overwritten:
            return 2 * bytes_of(node) + 2  # the caller's memory may hold something else by then: a copy is kept
        if node.op in ("placeholder", "get_attr") or node in self.returned:
            return 1 + bytes_of(node) // 64  # it lives anyway
        if self._again(node):
            return INFINITE
        size = 2 * bytes_of(node) + 2  # written by the forward, read by the backward
        charge = {FREE: 2.0, CHEAP: 1.0, MODERATE: 0.75, BANNED: 0.5}[recompute_cost(node)]
        return int(size * (1.0 if eager else charge)) + 1


def _free_to_write(joint: JointGraph) -> set[Node]:
    """Inputs that eager does not keep for the backward: the caller may write to them after the call.

    Not parameters: those are written between forward and backward by mistake, and a copy would cost each program that
    casts them. Such a write is an error of the backward.
    """
    return {
        node
        for node, info in zip(joint.graph.placeholders, joint.inputs, strict=False)
        if info.spec is not None and not (info.requires_grad and info.is_leaf) and not _kept_by_eager(joint, node)
    }


def _kept_by_eager(joint: JointGraph, node: Node) -> bool:
    """Does a rule of the backward read the node or a view of it."""
    if any(user in joint.backward_nodes for user in node.users):
        return True
    views = (u for u in node.users if u.op == "call_function" and recompute_cost(u) == FREE)
    return any(_kept_by_eager(joint, view) for view in views)


def _copies_input(node: Node) -> bool:
    """Did the user copy an input: then the caller may write to that before the backward runs."""
    return node.target == "clone" and isinstance(node.args[0], Node) and node.args[0].op == "placeholder"


def _checkpointed(node: Node) -> str | None:
    """The checkpoint region of a node that may be computed again."""
    if node.effect is not None:
        return None
    return next((region for region in node.regions if region.startswith("checkpoint")), None)


def ancestors(roots: list[Node]) -> set[Node]:
    """These nodes and everything that they are computed from."""
    seen = set(roots)
    stack = list(roots)
    while stack:
        for node in stack.pop().all_input_nodes:
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return seen


def _split(joint: JointGraph, facts: _Facts, saved: list[Node]) -> Partition:
    inputs = joint.graph.placeholders[: len(joint.inputs)]
    results = joint.results
    copies = _copy_overwritten(joint, [node for node in saved if node in facts.overwritten])
    returned = list(results[: joint.forward_count])
    returned += [copies.get(node, node) for node in saved if node in copies or node not in {*inputs, *returned}]
    places = {node: ("input", k) for k, node in enumerate(inputs)}
    for k, node in enumerate(returned):
        places.setdefault(node, ("result", k))
    places.update({node: places[copy] for node, copy in copies.items()})
    order = sorted(saved, key=places.__getitem__)
    kept = [node for node in returned if isinstance(node, Node)]
    forward = extract(joint, inputs, ancestors(kept) | facts.forward, tuple(returned))
    backward_inputs = [*order, *joint.tangents]
    needed = _needed(facts.gradients, set(backward_inputs))
    backward = extract(joint, backward_inputs, needed, results[joint.forward_count :], facts.after_tangent)
    symbols = _add_symbols(backward)
    return Partition(forward, backward, tuple(order), tuple(places[n] for n in order), _kept_bytes(saved), symbols)


def _copy_overwritten(joint: JointGraph, nodes: list[Node]) -> dict[Node, Node]:
    """A copy, in the forward, of each of these inputs, which it writes at its end."""
    copies = {}
    for node in nodes:
        with joint.graph.inserting_after(joint.graph.placeholders[-1]):
            spec = operator("clone").infer((node.spec,), {})  # of an input with gaps it has none
            copies[node] = joint.graph.call_function("clone", (node,), spec=spec)
    return copies


def _add_symbols(graph: Graph) -> tuple[Any, ...]:
    """Give a graph number inputs for the symbols that stand alone in no placeholder's shape."""
    readable = size_reader(graph).places
    missing = [size for symbol, size in free_symbols(graph.nodes).items() if symbol not in readable]
    if missing:
        last = graph.placeholders[-1]
        with graph.inserting_after(last):
            for size in missing:
                graph.placeholder(str(size), spec=ScalarSpec(int, size))
    return tuple(missing)


def _needed(roots: list[Node], given: set[Node]) -> set[Node]:
    seen = set(roots)
    stack = [node for node in roots if node not in given]
    while stack:
        for node in stack.pop().all_input_nodes:
            if node not in seen:
                seen.add(node)
                if node not in given:
                    stack.append(node)
    return seen


def extract(
    joint: JointGraph,
    inputs: list[Node],
    nodes: set[Node],
    results: tuple[object, ...],
    first: set[Node] | None = None,
) -> Graph:
    """A graph of its own from some of the joint graph's nodes, with these inputs and results.

    With ``first``, these nodes keep their order and each of the others comes right before its first use.
    """
    graph = Graph()
    graph.attributes = dict(joint.graph.attributes)
    mapping: dict[Node, Node] = {}
    for node in inputs:
        mapping[node] = graph.placeholder(node.name, spec=node.spec)
    order = [node for node in joint.graph.nodes if node in nodes and node not in mapping]
    for node in order if first is None else _late(order, first):
        mapping[node] = graph.node_copy(node, mapping.__getitem__)
    lookup: Callable[[object], object] = lambda r: mapping[r] if isinstance(r, Node) else r  # noqa: E731
    graph.output(tuple(map(lookup, results)))
    return graph


def _late(order: list[Node], first: set[Node]) -> list[Node]:
    """The nodes with those not in ``first`` as late as their uses allow: recomputed values live shortly."""
    wanted = set(order)
    placed: dict[Node, None] = {}
    for node in [*(n for n in order if n in first), *order]:
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [i for i in top.all_input_nodes if i in wanted and i not in placed]
            if missing:
                stack += reversed(missing)
            else:
                placed[stack.pop()] = None
    return list(placed)
