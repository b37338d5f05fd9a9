"""Checkpoint regions of a program that contains its own backward.

Where forward and backward are one graph, nothing is cut: values of a checkpoint region that the backward reads
are computed a second time, right before their first use there, from the region's inputs.
"""

from __future__ import annotations

from lamina_fx import Node

from .joint import JointGraph

__all__ = ["recompute_checkpoints"]


def recompute_checkpoints(joint: JointGraph) -> None:
    """Rewrite ``joint.graph`` so that no value of a checkpoint region lives until the backward.

    Graphs that are cut later are left alone: the partition recomputes there.
    """
    if joint.has_backward:
        return
    nodes = list(joint.graph.nodes)
    regions = {n: _region(n) for n in nodes if _region(n) is not None and "backward" not in n.regions}
    if not regions:
        return
    copies: dict[Node, Node] = {}
    for node in nodes:
        if node in regions or node.op == "output":
            continue
        if "backward" not in node.regions:
            continue
        for used in node.all_input_nodes:
            if used in regions and not _leaves(used, regions):
                with joint.graph.inserting_before(node):
                    node.replace_input_with(used, _again(joint, used, regions, copies))


def _region(node: Node) -> str | None:
    return next((r for r in node.regions if r.startswith("checkpoint")), None)


def _leaves(node: Node, regions: dict[Node, str | None]) -> bool:
    """Is a value used outside its region by the forward: then it is there anyway."""
    return any("backward" not in u.regions and regions.get(u) != regions[node] for u in node.users)


def _again(joint: JointGraph, node: Node, regions: dict[Node, str | None], copies: dict[Node, Node]) -> Node:
    """A copy of ``node`` and of what it needs inside its region, at the insertion point.

    What comes from another region is kept: regions start from stored values.
    """
    stack = [node]
    own = regions[node]
    while stack:
        top = stack[-1]
        if top in copies:
            stack.pop()
            continue
        missing = [i for i in top.all_input_nodes if regions.get(i) == own and i not in copies]
        if missing:
            stack += missing
            continue
        copies[top] = joint.graph.node_copy(top, lambda i: copies.get(i, i) if regions.get(i) == own else i)
        copies[top].regions = (*top.regions, "backward")  # not one with the original: such calls are not merged
        stack.pop()
    return copies[node]
