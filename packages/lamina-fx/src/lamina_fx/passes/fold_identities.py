"""Remove steps that change nothing: ``x * 1``, ``-(-x)``, a reshape of a reshape.

>>> from lamina_fx import parse
>>> print(fold_identities(parse('''graph {
...   %x: float32[6] = placeholder
...   %one: float32[6] = mul(%x, 1)
...   %r: float32[2, 3] = reshape(%one, (2, 3))
...   %s: float32[3, 2] = reshape(%r, (3, 2))
...   return %s
... }''')))
graph {
  %x: float32[6] = placeholder
  %s: float32[3, 2] = reshape(%x, (3, 2))
  return %s
}

The rules are data (``IDENTITIES``): a form, what it becomes, and a condition.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph import Graph
from ..node import Node
from ..spec import TensorSpec
from .eliminate_dead_code import eliminate_dead_code

__all__ = ["IDENTITIES", "Identity", "Variable", "fold_identities"]


@dataclass(frozen=True)
class Variable:
    """Stands for any value in a form; the same one wherever it stands."""

    name: str


Bindings = Mapping[str, Any]
Form = Any
"""A Variable, a constant, or a tuple of an operator id and forms of its arguments."""


@dataclass(frozen=True)
class Identity:
    """``form`` may be written as ``result``, when the specs agree and ``when`` (if any) holds for what it matched.

    ``result`` is a form, or a function from the bindings to one (or to None: does not apply).
    """

    form: Form
    result: Form | Callable[[Bindings], Form]
    when: Callable[[Bindings], bool] | None = None


x, y, s, t, c = Variable("x"), Variable("y"), Variable("s"), Variable("t"), Variable("c")


def _integer(found: Bindings) -> bool:
    """-0.0 + 0 is 0.0, so adding zero is an identity for integers only."""
    spec = getattr(found["x"], "spec", None)
    return isinstance(spec, TensorSpec) and spec.dtype.kind == "int"


def _permuted(found: Bindings) -> Form:
    first, second = found["s"], found["t"]
    if not all(isinstance(p, (tuple, list)) for p in (first, second)):
        return None
    rank = len(first)
    return ("permute", found["x"], tuple([first[p % rank] % rank for p in second]))


IDENTITIES: tuple[Identity, ...] = (
    Identity(("add", x, 0), x, _integer),
    Identity(("add", 0, x), x, _integer),
    Identity(("add", x, -0.0), x),
    Identity(("sub", x, 0), x),
    Identity(("mul", x, 1), x),
    Identity(("mul", 1, x), x),
    Identity(("div", x, 1), x),
    Identity(("pow", x, 1), x),
    Identity(("neg", ("neg", x)), x),
    Identity(("bitwise_not", ("bitwise_not", x)), x),
    Identity(("logical_not", ("logical_not", x)), x),
    Identity(("abs", ("abs", x)), ("abs", x)),
    Identity(("abs", ("neg", x)), ("abs", x)),
    Identity(("relu", ("relu", x)), ("relu", x)),
    Identity(("maximum", x, x), x),
    Identity(("minimum", x, x), x),
    Identity(("bitwise_and", x, x), x),
    Identity(("bitwise_or", x, x), x),
    Identity(("where", c, x, x), x),
    Identity(("positive", x), x),
    Identity(("convert_element_type", x, t), x),
    Identity(("reshape", x, s), x),
    Identity(("reshape", ("reshape", x, s), t), ("reshape", x, t)),
    Identity(("permute", x, s), x, lambda found: list(found["s"]) == list(range(len(found["s"])))),
    Identity(("permute", ("permute", x, s), t), _permuted),
    Identity(("cat", [x]), x),
)
"""The rules that are used by default."""


def fold_identities(graph: Graph, *, identities: Sequence[Identity] = IDENTITIES) -> Graph:
    """Apply the rules until none applies, then remove what is no longer used.

    A step becomes one of its inputs only where both have the same spec, so steps without a spec stay. Values that are
    written in place (an input of a node with the effect ``"write"``, and what that is made of) stay as they are.
    """
    table: dict[str, list[Identity]] = {}
    for rule in identities:
        table.setdefault(rule.form[0], []).append(rule)
    written = _written(graph)
    for node in graph.nodes:
        current: Node | None = node
        while current is not None and current.op == "call_function" and current.effect is None:
            current = _rewrite(current, table.get(current.target, ()), written)
    return eliminate_dead_code(graph)


def _rewrite(node: Node, rules: Sequence[Identity], written: set[Node]) -> Node | None:
    """Apply the first rule that fits; returns the node that stands for ``node`` now, if it is a new one."""
    for rule in rules:
        found: dict[str, Any] = {}
        if node.kwargs or not _match_call(rule.form, node, found):
            continue
        if rule.when is not None and not rule.when(found):
            continue
        result = rule.result(found) if callable(rule.result) else rule.result
        if isinstance(result, Variable):
            value = found[result.name]
            if type(value) is Node and value.spec is not None and value.spec == node.spec and value not in written:
                node.replace_all_uses_with(value)
                return None
        elif result is not None and node not in written:
            with node.graph.inserting_before(node):
                new = _build(result, found, node)
            new.spec = node.spec
            if new.target == node.target and new.args == node.args:
                node.graph.erase_node(new)
                continue
            node.replace_all_uses_with(new)
            name = node.name
            return _take_name(node, new, name)
    return None


def _take_name(node: Node, new: Node, name: str) -> Node:
    """Erase ``node`` and give its name to what replaced it."""
    node.graph.erase_node(node)
    node.graph.rename(new, name)
    return new


def _match_call(form: Form, node: Node, found: dict[str, Any]) -> bool:
    if node.op != "call_function" or node.target != form[0] or len(node.args) != len(form) - 1:
        return False
    return all(_match(f, a, found) for f, a in zip(form[1:], node.args, strict=True))


def _match(form: Form, value: Any, found: dict[str, Any]) -> bool:
    if isinstance(form, Variable):
        known = found.setdefault(form.name, value)
        return known is value
    if isinstance(form, tuple):
        return type(value) is Node and value.effect is None and not value.kwargs and _match_call(form, value, found)
    if isinstance(form, list):
        same = isinstance(value, (list, tuple)) and len(value) == len(form)
        return same and all(_match(f, v, found) for f, v in zip(form, value, strict=True))
    if type(value) not in (int, float) or value != form:
        return False
    return value != 0 or math.copysign(1, value) == math.copysign(1, form)


def _build(form: Form, found: Bindings, like: Node) -> Any:
    if isinstance(form, Variable):
        return found[form.name]
    if isinstance(form, tuple) and form and isinstance(form[0], str):
        args = tuple([_build(f, found, like) for f in form[1:]])
        node = like.graph.call_function(form[0], args)
        node.meta, node.regions = dict(like.meta), like.regions
        return node
    return form


def _written(graph: Graph) -> set[Node]:
    """What nodes with the effect "write" write to, and everything that those are made of."""
    found: set[Node] = set()
    pending = [n.args[0] for n in graph.nodes if n.effect == "write" and n.args and type(n.args[0]) is Node]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(node.all_input_nodes)
    return found
