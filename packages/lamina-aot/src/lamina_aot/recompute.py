"""Cheap values that the backward computes again, in programs that contain their backward.

Where forward and backward are one graph, nothing is cut. What the derivatives themselves compute again (attention's
scores) stays apart from the forward's by its region, ``backward``. This pass does the same for a large pointwise value
that the backward reads, where everything it is made from is kept for the backward anyway: what GELU returns is made
again from its argument, instead of both being kept. Weights that are converted for products (``autocast``) are kept.
"""

from __future__ import annotations

from lamina_fx import Node

from .costs import BANNED, CHEAP, FREE, bytes_of, recompute_cost
from .joint import JointGraph

__all__ = ["recompute_cheap"]

LARGE = 1 << 18
"""Bytes: smaller values are kept, whatever they cost."""


def recompute_cheap(joint: JointGraph) -> None:
    """Rewrite ``joint.graph``. Graphs that are cut later are left alone: the partition decides there."""
    if joint.has_backward:
        return
    order = {node: k for k, node in enumerate(joint.graph.nodes)}
    inside = {node for node in order if "backward" in node.regions}
    for node in order:
        if node in inside or node.op != "call_function" or bytes_of(node) < LARGE:
            continue
        readers = sorted((u for u in node.users if u in inside), key=order.__getitem__)
        if not readers or recompute_cost(node) != CHEAP or _returned(node):
            continue
        if not all(_kept(i, inside) for i in node.all_input_nodes) or _is_converted_weight(node, readers):
            continue
        with joint.graph.inserting_before(readers[0]):
            copy = joint.graph.node_copy(node, lambda i: i)
        copy.regions = (*node.regions, "backward")
        for reader in readers:
            reader.replace_input_with(node, copy)


def _returned(node: Node) -> bool:
    return any(user.op == "output" or user.effect is not None for user in node.users)


def _is_converted_weight(node: Node, readers: list[Node]) -> bool:
    """An input in another dtype, for products alone: making it again is a kernel that fuses with nothing."""
    of_input = all(i.op in ("placeholder", "get_attr") for i in node.all_input_nodes)
    return node.target == "convert_element_type" and of_input and all(map(_is_for_products, readers))


def _is_for_products(node: Node) -> bool:
    cost = recompute_cost(node)
    return cost == BANNED or (cost == FREE and node.op == "call_function" and all(map(_is_for_products, node.users)))


def _kept(node: Node, inside: set[Node]) -> bool:
    """Does the backward read it anyway, itself or by a view that the forward made."""
    if node.op in ("placeholder", "get_attr") or bytes_of(node) < LARGE:
        return True
    views = (u for u in node.users if u not in inside and u.op == "call_function" and recompute_cost(u) == FREE)
    return any(u in inside for u in node.users) or any(_kept(u, inside) for u in views)
