"""Find subgraphs of a form and put others in their place.

>>> from lamina_fx import parse, print_graph
>>> g = parse("graph { %x = placeholder  %mul = mul(%x, 2)  %add = add(%mul, 1)  return %add }")
>>> def pattern(a, k, b):
...     return a * k + b
>>> def replacement(a, k, b):
...     return wrapped_fma(a, k, b)
>>> from lamina_fx import wrap
>>> @wrap
... def wrapped_fma(a, k, b): ...
>>> len(replace_pattern(g, pattern, replacement))
1
>>> [n.target for n in g.nodes][1].rpartition(".")[2]
'wrapped_fma'

A pattern is a graph, or a function that is traced to one. Its placeholders are wildcards: they match any node or
constant, the same one wherever they stand. A target of ``"add|sub"`` matches either, ``"*"`` anything. Constants match
equal constants. The results are the values that the outside may use; other matched nodes must have no users outside.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .builder import GraphBuilder, OperatorLike
from .graph import Graph
from .node import Node, iter_nodes, map_arguments
from .pytree import tree_leaves
from .structure import same_constant
from .tracer import Tracer

__all__ = ["Match", "find_matches", "replace_pattern"]

Predicate = Callable[[Any], bool]


@dataclass(frozen=True)
class Match:
    """Where a pattern was found.

    Attributes:
        values: pattern node -> node of the graph; for a placeholder, perhaps a constant.
        inputs: what the placeholders stand for, in order.
        nodes: the matched nodes of the graph, in order.
        outputs: the nodes that are the pattern's results.
        replacements: what the results were replaced by (filled by ``replace_pattern``).
    """

    values: Mapping[Node, Any]
    inputs: tuple[Any, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    replacements: list[Any] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        """What the pattern's node of this name stands for."""
        return next(v for k, v in self.values.items() if k.name == name)


def replace_pattern(
    graph: Graph,
    pattern: Graph | Callable[..., Any],
    replacement: Graph | Callable[..., Any],
    *,
    where: Mapping[str, Predicate] | None = None,
    constraint: Callable[[Match], bool] | None = None,
    commutative: frozenset[str] = frozenset(),
    resolver: Any = None,
) -> list[Match]:
    """Replace what ``pattern`` matches, from the last node to the first, without overlaps.

    Args:
        graph: changed in place.
        pattern, replacement: graphs or functions with the same parameters and number of results.
        where: conditions on what a node or placeholder of the pattern stands for, by its name.
        constraint: condition on a whole match.
        commutative: targets whose two arguments may be swapped.
        resolver: gives the operators that Python's operators and methods mean in traced functions, and infers the
            specs of the new nodes; without one, a result takes the spec of what it replaces.

    Returns:
        The matches that were replaced, in order of replacement.

    Raises:
        ValueError: pattern and replacement have different parameters or results, or the pattern is empty.
    """
    before, after = _as_graph(pattern, resolver), _as_graph(replacement, resolver)
    _check_same_face(before, after)
    done: list[Match] = []
    used: set[Node] = set()
    for match in find_matches(graph, before, where=where, commutative=commutative):
        if (
            used.isdisjoint(match.nodes)
            and (constraint is None or constraint(match))
            and _replace(match, after, resolver)
        ):
            used.update(match.nodes)
            done.append(match)
    return done


def _check_same_face(before: Graph, after: Graph) -> None:
    if len(before.placeholders) != len(after.placeholders):
        raise ValueError(
            f"the pattern has {len(before.placeholders)} inputs, the replacement {len(after.placeholders)}"
        )
    before_results, after_results = _results(before), _results(after)
    if len(before_results) != len(after_results):
        raise ValueError(f"the pattern has {len(before_results)} results, the replacement {len(after_results)}")


def find_matches(
    graph: Graph,
    pattern: Graph | Callable[..., Any],
    *,
    where: Mapping[str, Predicate] | None = None,
    commutative: frozenset[str] = frozenset(),
) -> list[Match]:
    """All places where the pattern matches, the last first. They may overlap."""
    form = _as_graph(pattern, None)
    results = _results(form)
    if not results or not all(type(r) is Node and r.op != "placeholder" for r in results):
        raise ValueError("each result of a pattern must be computed by it")
    matcher = _Matcher(form, where or {}, commutative)
    position = {node: index for index, node in enumerate(graph.nodes)}
    found: list[Match] = []
    for node in reversed(graph.nodes):
        found.extend(matcher.at(node, results, graph, position))
    return found


class _Matcher:
    def __init__(self, pattern: Graph, where: Mapping[str, Predicate], commutative: frozenset[str]) -> None:
        self.pattern = pattern
        self.where = where
        self.commutative = commutative

    def at(self, node: Node, results: list[Node], graph: Graph, position: Mapping[Node, int]) -> Iterator[Match]:
        """Matches whose first result is ``node``."""
        states = list(self.match(results[0], node, {}))
        for result in results[1:]:
            states = [
                extended
                for state in states
                for candidate in ([state[result]] if result in state else _near(result, state, graph))
                for extended in self.match(result, candidate, state)
            ]
        for state in states[:1]:
            match = self.finish(state, results, position)
            if match is not None:
                yield match

    def finish(self, state: dict[Node, Any], results: list[Node], position: Mapping[Node, int]) -> Match | None:
        inner = {state[p]: p for p in state if p.op != "placeholder"}
        if len(inner) != sum(p.op != "placeholder" for p in state):
            return None  # two nodes of the pattern stand for one
        outputs = tuple([state[r] for r in results])
        for node in inner:
            if node not in outputs and any(user not in inner for user in node.users):
                return None
        inputs = tuple([state.get(p) for p in self.pattern.placeholders])
        return Match(state, inputs, tuple(sorted(inner, key=position.__getitem__)), outputs)

    def match(self, pattern: Any, value: Any, state: dict[Node, Any]) -> Iterator[dict[Node, Any]]:
        """Extensions of ``state`` in which ``pattern`` stands for ``value``."""
        if type(pattern) is not Node:
            if _equal(pattern, value, self, state):
                yield state
            elif isinstance(pattern, (tuple, list)) and isinstance(value, (tuple, list)):
                yield from self.sequence(pattern, value, state)
            return
        if pattern in state:
            if state[pattern] is value or (type(value) is not Node and same_constant(state[pattern], value)):
                yield state
            return
        condition = self.where.get(pattern.name)
        if condition is not None and not condition(value):
            return
        if pattern.op == "placeholder":
            yield {**state, pattern: value}
        elif type(value) is Node and self.fits(pattern, value):
            yield from self.arguments(pattern, value, {**state, pattern: value})

    def fits(self, pattern: Node, node: Node) -> bool:
        if pattern.op != node.op or len(pattern.args) != len(node.args) or pattern.kwargs.keys() != node.kwargs.keys():
            return False
        return pattern.target in ("*", node.target) or node.target in pattern.target.split("|")

    def arguments(self, pattern: Node, node: Node, state: dict[Node, Any]) -> Iterator[dict[Node, Any]]:
        orders = [node.args]
        if len(node.args) == 2 and node.target in self.commutative:
            orders.append(node.args[::-1])
        for args in orders:
            keys = list(pattern.kwargs)
            yield from self.sequence(
                (*pattern.args, *[pattern.kwargs[k] for k in keys]), (*args, *[node.kwargs[k] for k in keys]), state
            )

    def sequence(self, patterns: Any, values: Any, state: dict[Node, Any]) -> Iterator[dict[Node, Any]]:
        if len(patterns) != len(values):
            return
        if not patterns:
            yield state
            return
        for extended in self.match(patterns[0], values[0], state):
            yield from self.sequence(patterns[1:], values[1:], extended)


def _equal(pattern: Any, value: Any, matcher: _Matcher, state: dict[Node, Any]) -> bool:
    if isinstance(pattern, (tuple, list, dict, slice)) or type(value) is Node:
        return isinstance(pattern, (dict, slice)) and pattern == value
    return same_constant(pattern, value) or (
        type(pattern) in (int, float) and type(value) in (int, float) and pattern == value
    )


def _near(result: Node, state: Mapping[Node, Any], graph: Graph) -> list[Node]:
    """Nodes that a further result may be: users of what is matched already, otherwise all."""
    for inner in iter_nodes((result.args, result.kwargs)):
        value = state.get(inner)
        if type(value) is Node:
            return list(value.users)
    return list(graph.nodes)


def _replace(match: Match, replacement: Graph, resolver: Any) -> bool:
    """Write the replacement in front of the last matched node; False when a user stands before that."""
    graph = match.outputs[0].graph
    point = match.nodes[-1]
    inside = set(match.nodes)
    outside = {user for out in match.outputs for user in out.users if user not in inside}
    node = point
    while node.op != "root" and outside:
        outside.discard(node)
        node = node.next
    if outside:
        return False
    values: dict[Node, Any] = dict(zip(replacement.placeholders, match.inputs, strict=True))
    with graph.inserting_before(point.next):
        for node in replacement.nodes:
            if node.op not in ("placeholder", "output"):
                values[node] = _copy(node, values, point, graph, resolver)
    results = [values[r] if type(r) is Node else r for r in _results(replacement)]
    for old, new in zip(match.outputs, results, strict=True):
        _use(old, new, inside)
        match.replacements.append(new)
    for node in reversed(match.nodes):
        graph.erase_node(node)
    return True


def _copy(node: Node, values: dict[Node, Any], point: Node, graph: Graph, resolver: Any) -> Node:
    args, kwargs = _substitute((node.args, node.kwargs), values)
    copy = graph.create_node(node.op, node.target, args, kwargs, name=node.name, spec=node.spec, effect=node.effect)
    if node.op == "get_attr":
        graph.attributes.setdefault(node.target, node.graph.attributes.get(node.target))
    copy.regions = point.regions
    if "source" in point.meta:
        copy.meta["source"] = point.meta["source"]
    if copy.spec is None and resolver is not None and node.op == "call_function" and node.target != "getitem":
        operator = resolver(node.target)
        copy.spec = operator.infer(*map_arguments((args, kwargs), lambda n: n.spec))
        copy.effect = operator.effect
    return copy


def _substitute(value: Any, values: Mapping[Node, Any]) -> Any:
    return map_arguments(value, lambda n: values[n])


def _use(old: Node, new: Any, inside: set[Node]) -> None:
    """Let users outside the match use ``new``, which may be a constant."""
    if type(new) is Node and new.spec is None:
        new.spec = old.spec
    for user in [u for u in old.users if u not in inside]:
        args, kwargs = map_arguments((user.args, user.kwargs), lambda n: new if n is old else n)
        user.set_arguments(args, kwargs)


def _as_graph(form: Graph | Callable[..., Any], resolver: Any) -> Graph:
    return form if isinstance(form, Graph) else Tracer(resolver, _FormBuilder).trace(form)


class _FormBuilder(GraphBuilder):
    """Writes operators without specs: what a wildcard stands for is known only when it is found."""

    def call(self, operator: OperatorLike, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = self.create("call_function", operator.id, args, kwargs)
        result.node.effect = operator.effect
        return result


def _results(graph: Graph) -> list[Any]:
    return tree_leaves(graph.output_node.args[0])
