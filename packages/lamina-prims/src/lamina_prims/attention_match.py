"""Find attention that a program spells out: the chain of nodes from the last product back to the first.

matmul(q, k^T) -> mul, div, masked_fill, where, add (in any sensible order) -> softmax -> dropout -> matmul(., v)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lamina_fx import Graph, Node, TensorSpec, bool_, float32

from .attention_masks import arguments_of, number_of, triangle, triangle_of_infinities
from .dims import surely_same
from .registry import operators

__all__ = ["PRODUCTS", "AttentionMatch", "is_overwritten", "match_attention"]

PRODUCTS = frozenset({"matmul", "bmm", "einsum"})
_LARGE = -1e8
"""A number that, in the place of a score, leaves a weight of 0 beside any real score."""


@dataclass
class AttentionMatch:
    """An attention: its nodes from the last product back to the first, and what it computes."""

    nodes: list[Node]
    value: Node
    value_order: tuple[int, ...] | None = None
    result_order: tuple[int, ...] | None = None
    query: Any = None
    key: Any = None
    query_order: tuple[int, ...] | None = None
    key_order: tuple[int, ...] | None = None
    scale: float = 1.0
    causal: bool = False
    keep: list[tuple[Node, bool]] = field(default_factory=list)
    """Masks: (tensor, is it true where a key takes part)."""
    fills: list[float] = field(default_factory=list)
    """What masks put in the place of scores, as the softmax sees it."""
    added: Node | None = None
    dropout: float = 0.0
    state: Node | None = None
    before: Node | None = None


def match_attention(graph: Graph, last: Node) -> AttentionMatch | None:
    """The attention whose last product is ``last``."""
    match = _last_product(last)
    if match is None:
        return None
    uses = _Uses(graph)
    weights: Any = match.nodes[0].args[0] if last.target != "einsum" else arguments_of(last)["operands"][0]
    node = uses.producer(weights, last)
    after_softmax = True
    while isinstance(node, Node) and uses.only(node, match.nodes[-1]) and node.regions == last.regions:
        match.nodes.append(node)
        given = arguments_of(node)
        if not given:
            return None
        if after_softmax and node.target == "softmax":
            after_softmax = False
            if not _is_last(given["dim"], node) or not _keeps_dtype(given["dtype"], node):
                return None
        elif after_softmax and not _take_dropout(match, node, given):
            return None
        elif not after_softmax and _take_first_product(match, node, given):
            return match if _is_sound(graph, match, uses) else None
        elif not after_softmax and node.target != "softmax" and not _take_scores(match, node, given):
            return None
        node = uses.producer(given["input"] if node.target != "where" else _branch(given), node)
    return None


# -- the chain between the products ----------------------------------------------------------------------


class _Uses:
    """Who reads what, with in-place operators as values of their own."""

    def __init__(self, graph: Graph) -> None:
        self.position = {node: k for k, node in enumerate(graph.nodes)}

    def producer(self, value: Any, before: Node) -> Node | None:
        """The node that made what ``value`` holds when ``before`` reads it."""
        if not isinstance(value, Node) or value.op != "call_function":
            return None
        found = base = _base(value)
        for node in _family(base):
            if self.position[found] < self.position[node] < self.position[before]:
                found = node
        return found

    def only(self, node: Node, reader: Node) -> bool:
        """Is ``reader`` the only one that reads the value, or any later one in the same memory?"""
        family = {*_family(_base(node))}
        readers = {user for member in family for user in member.users} - family
        return readers <= {reader} or (reader in family and len(readers) == 1)


def _base(node: Node) -> Node:
    while _in_place(node) and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _family(base: Node) -> Iterator[Node]:
    yield base
    for user in base.users:
        if _in_place(user) and user.args[0] is base:
            yield from _family(user)


def _in_place(node: Node) -> bool:
    return node.op == "call_function" and node.effect == "write" and node.target.removesuffix("_") in operators()


def _branch(given: dict[str, Any]) -> Any:
    """What of a ``where`` is not a number."""
    return given["input"] if number_of(given["input"]) is None else given["other"]


def _is_last(dim: Any, node: Node) -> bool:
    return dim == -1 or (isinstance(node.spec, TensorSpec) and dim == len(node.spec.shape) - 1)


def _keeps_dtype(dtype: Any, node: Node) -> bool:
    """A softmax in the scores' dtype, or in float32 (attention sums in that)."""
    source = node.args[0] if node.args else None
    spec = getattr(source, "spec", None)
    return dtype is None or dtype is float32 or dtype is getattr(spec, "dtype", None)


_CONVERSIONS = frozenset({"to.dtype", "to.other", "type_as", "convert_element_type"})


def _take_dropout(match: AttentionMatch, node: Node, given: dict[str, Any]) -> bool:
    if node.target == "dropout_with_state" and match.state is None:
        match.dropout, match.state, match.before = given["p"], given["state"], node
        return isinstance(match.dropout, float) and match.dropout < 1.0 and isinstance(match.state, Node)
    return node.target in _CONVERSIONS or node.target.startswith("to_float") or node.target == "to_bfloat16"


def _take_scores(match: AttentionMatch, node: Node, given: dict[str, Any]) -> bool:
    target = node.target.removesuffix("_") if _in_place(node) else node.target
    take = _SCORES.get(target)
    source = given.get("input")
    same = target == "where" or (isinstance(source, Node) and _same_shape(source, node))
    return take is not None and same and take(match, node, given)


def _same_shape(a: Node, b: Node) -> bool:
    return isinstance(a.spec, TensorSpec) and isinstance(b.spec, TensorSpec) and surely_same(a.spec.shape, b.spec.shape)


def _take_scale(match: AttentionMatch, node: Node, given: dict[str, Any]) -> bool:
    number = number_of(given["other"])
    if number is None or number <= 0 or not math.isfinite(number):
        return False
    match.scale *= number if node.target.startswith("mul") else 1.0 / number
    return True


def _take_masked_fill(match: AttentionMatch, node: Node, given: dict[str, Any]) -> bool:
    return _take_mask(match, node, given["mask"], False, number_of(given["value"]))


def _take_where(match: AttentionMatch, node: Node, given: dict[str, Any]) -> bool:
    scores = _branch(given)
    if not isinstance(scores, Node) or not _same_shape(scores, node):
        return False
    first = number_of(given["input"])
    if first is not None:
        return _take_mask(match, node, given["condition"], False, first)
    return _take_mask(match, node, given["condition"], True, number_of(given["other"]))


def _take_mask(match: AttentionMatch, node: Node, mask: Any, keeps: bool, fill: float | None) -> bool:
    """``fill`` stands where ``mask`` is not ``keeps``."""
    if fill is None or not fill * match.scale <= _LARGE or not isinstance(mask, Node):
        return False
    if not isinstance(mask.spec, TensorSpec) or mask.spec.dtype is not bool_ or match.added is not None:
        return False
    match.fills.append(fill * match.scale)
    if triangle(mask, _last_two(node)) is keeps:
        match.causal = True
    else:
        match.keep.append((mask, keeps))
    return True


def _take_added(match: AttentionMatch, node: Node, given: dict[str, Any]) -> bool:
    mask = given["other"]
    if not isinstance(mask, Node) or not isinstance(mask.spec, TensorSpec) or mask.spec.dtype.kind != "float":
        return False
    if match.scale != 1.0 or match.added is not None:
        return False
    if triangle_of_infinities(mask, _last_two(node)):
        match.causal = True
        match.fills.append(-math.inf)
        return True
    match.added = mask
    return not match.keep and all(fill == -math.inf for fill in match.fills)


def _last_two(node: Node) -> Any:
    return node.spec.shape[-2:] if isinstance(node.spec, TensorSpec) else ()


_SCORES: dict[str, Any] = {
    "mul": _take_scale, "div": _take_scale, "masked_fill": _take_masked_fill, "where": _take_where, "add": _take_added,
    **dict.fromkeys(_CONVERSIONS | {"to_float32"}, lambda match, node, given: True),
}  # fmt: skip


# -- the two products ------------------------------------------------------------------------------------


def _last_product(last: Node) -> AttentionMatch | None:
    given = arguments_of(last)
    if last.target != "einsum":
        value = given.get("other", given.get("mat2"))
        return AttentionMatch([last], value) if isinstance(value, Node) and _is_matrix(value) else None
    terms = _terms(given)
    if terms is None:
        return None
    weights, value, result = terms
    *batch, row, key = weights
    width = "".join(set(value) - set(weights))
    if len(width) != 1 or sorted(value) != sorted((*batch, key, width)):
        return None
    if sorted(result) != sorted((*batch, row, width)):
        return None
    order = _order(result, (*batch, row, width))
    return AttentionMatch([last], given["operands"][1], _order((*batch, key, width), value), order)


def _take_first_product(match: AttentionMatch, node: Node, given: dict[str, Any]) -> bool:
    if node.target not in PRODUCTS:
        return False
    if node.target != "einsum":
        match.query, match.key = given["input"], given.get("other", given.get("mat2"))
        match.key_order = ()
        return _is_matrix(match.query) and _is_matrix(match.key)
    terms = _terms(given)
    if terms is None:
        return False
    a, b, result = terms
    match.query, match.key = given["operands"]
    if result[-2] not in a:
        a, b, match.query, match.key = b, a, match.key, match.query
    *batch, row, key = result
    width = "".join(set(a) & set(b) - set(result))
    if len(width) != 1 or sorted(a) != sorted((*batch, row, width)) or sorted(b) != sorted((*batch, key, width)):
        return False
    match.query_order = _order((*batch, row, width), a)
    match.key_order = _order((*batch, key, width), b)
    return True


def _is_matrix(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.spec, TensorSpec) and len(value.spec.shape) >= 2


def _terms(given: dict[str, Any]) -> tuple[str, str, str] | None:
    """The letters of ``"ab,cb->ac"``, each once in a term; None for anything else."""
    equation, operands = given["equation"].replace(" ", ""), given["operands"]
    left, arrow, result = equation.partition("->")
    a, comma, b = left.partition(",")
    if not arrow or not comma or len(operands) != 2 or len(result) < 3 or len(a) < 3:
        return None
    plain = all(term.isalpha() and len(set(term)) == len(term) for term in (a, b, result))
    return (a, b, result) if plain and all(_is_matrix(o) for o in operands) else None


def _order(wanted: Any, have: Any) -> tuple[int, ...] | None:
    """Where ``have`` has the letters of ``wanted``; None when they are in order."""
    order = tuple([tuple(have).index(letter) for letter in wanted])
    return None if order == tuple(range(len(order))) else order


# -- what must hold --------------------------------------------------------------------------------------


def _is_sound(graph: Graph, match: AttentionMatch, uses: _Uses) -> bool:
    """Nothing else is written between the products, and what is read is there where the new call stands."""
    last, first = match.nodes[0], match.nodes[-1]
    specs = [getattr(n, "spec", None) for n in (match.query, match.key, match.value, last)]
    dtype = getattr(specs[0], "dtype", None)
    if getattr(dtype, "kind", "") != "float" or any(getattr(s, "dtype", None) is not dtype for s in specs):
        return False
    if first.spec.shape[-1:] == (0,):  # type: ignore[union-attr]
        return False  # no keys: 0, and no row is empty because of a mask
    if not all(_keeps_digits(node, dtype) for node in match.nodes):
        return False
    if len(match.fills) > 1 and len(set(match.fills)) > 1:
        return False
    if match.keep and match.state is not None and match.fills[0] != -math.inf:
        return False  # the mean of values that dropout changes
    added: Any = match.added
    if added is not None and added.spec.dtype not in (dtype, float32):
        return False
    place = uses.position[match.before or last]
    operands = [match.query, match.key, match.value, added, *(mask for mask, _ in match.keep)]
    if any(isinstance(n, Node) and uses.position[n] >= place for n in operands):
        return False
    chain = set(match.nodes)
    return all(
        node.effect is None or node in chain or (uses.position[node] > place and _root(node) is match.state)
        for node in graph.nodes
        if uses.position[first] < uses.position[node] < uses.position[last]
    )


def _keeps_digits(node: Node, dtype: Any) -> bool:
    """Is the value held in the products' dtype, or in a wider float (attention rounds to nothing narrower between)?"""
    held: Any = getattr(node.spec, "dtype", None)
    return held is dtype or (getattr(held, "kind", "") == "float" and held.itemsize > dtype.itemsize)


def is_overwritten(graph: Graph, match: AttentionMatch) -> bool:
    """Is the attention's result written in place? The last product did not need it in its backward; attention does."""
    return any(node.effect == "write" and _root(node) is match.nodes[0] for node in graph.nodes)


def _root(node: Node) -> Any:
    """What memory an in-place operator writes."""
    value: Any = node.args[0] if node.args else None
    while isinstance(value, Node) and value.target in operators() and operators()[value.target].alias is not False:
        value = value.args[0]
    return value
