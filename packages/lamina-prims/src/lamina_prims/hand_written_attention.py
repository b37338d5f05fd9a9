"""Attention that a program spells out, as one operator: a pass over captured graphs, before differentiation.

    scores = q @ k.transpose(-2, -1) / 8
    scores = scores.masked_fill(mask == 0, -inf)         ->    attention_with_lse(q, k, v, mask != 0, ...)
    out = dropout(softmax(scores, -1)) @ v

>>> from lamina_fx import TensorSpec, float32
>>> graph = Graph()
>>> builder = GraphBuilder(graph, resolver=operator)
>>> q, k, v = (builder.proxy(graph.placeholder(n, spec=TensorSpec((2, 8, 4), float32))) for n in "qkv")
>>> weights = ops.softmax(ops.mul(ops.matmul(q, ops.mT(k)), 0.5), -1)
>>> _ = graph.output(ops.matmul(weights, v).node)
>>> [n.target for n in fuse_attention(graph).nodes if n.op == "call_function"]
['mT', 'mT', 'attention_with_lse', 'getitem', 'getitem']

Only what cannot be told from the program as written is rewritten: the weights have no other use, nothing is written in
between but the scores themselves and the generator's state, and a query whose keys are all masked keeps its meaning
(NaN where the mask is infinite; the mean of all values where it is a large number).
"""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import Graph, GraphBuilder, Node, TensorSpec

from .attention_match import PRODUCTS, AttentionMatch, is_overwritten, match_attention
from .registry import operator, ops

__all__ = ["fuse_attention"]


def fuse_attention(graph: Graph) -> Graph:
    """The graph with its attentions as ``attention_with_lse``; the same object when there are none."""
    if not any(node.target == "softmax" for node in graph.nodes):
        return graph
    new = graph.copy()
    found = False
    for node in list(new.nodes):
        match = match_attention(new, node) if node.target in PRODUCTS else None
        if match is not None:
            _replace(new, match)
            found = True
    return new if found else graph


def _replace(graph: Graph, match: AttentionMatch) -> None:
    last = match.nodes[0]
    builder = GraphBuilder(graph, lambda: dict(last.meta), resolver=operator)
    before, graph.regions = graph.regions, last.regions
    try:
        with graph.inserting_before(match.before or last):
            result = _attention(graph, builder, match)
    finally:
        graph.regions = before
    last.replace_all_uses_with(result)
    for node in match.nodes:
        graph.erase_node(node)


def _attention(graph: Graph, builder: GraphBuilder, match: AttentionMatch) -> Node:
    def operand(node: Node, order: tuple[int, ...] | None) -> Any:
        value = builder.proxy(node)
        return value if order is None else ops.mT(value) if order == () else ops.permute(value, order)

    query, key = operand(match.query, match.query_order), operand(match.key, match.key_order)
    value = operand(match.value, match.value_order)
    state = None if match.state is None else ops.clone(builder.proxy(match.state))  # it moves on before the backward
    mask = _mask(builder, match)
    out, lse = ops.attention_with_lse(query, key, value, mask, match.causal, match.scale, match.dropout, state)
    if mask is not None:
        out = _with_empty_rows(match, out, lse, value)
    if match.result_order is not None:
        out = ops.permute(out, match.result_order)
    spec: Any = match.nodes[0].spec
    if out.node.spec.strides != spec.strides or is_overwritten(graph, match):
        out = ops.clone(out, memory_format="contiguous_format")
    return out.node


def _mask(builder: GraphBuilder, match: AttentionMatch) -> Any:
    """What takes part, or what is added; None without either."""
    if match.added is not None:
        return builder.proxy(match.added)
    mask: Any = None
    for node, keeps in match.keep:
        part = builder.proxy(node) if keeps else ops.logical_not(builder.proxy(node))
        mask = part if mask is None else ops.logical_and(mask, part)
    return mask


def _with_empty_rows(match: AttentionMatch, out: Any, lse: Any, value: Any) -> Any:
    """Rows without any key, which are 0, as the softmax of their masked scores has them, gradients included."""
    spec: TensorSpec = out.node.spec
    empty = ops.eq(lse, -math.inf)
    if match.added is not None:  # NaN, which also reaches the gradients of queries and keys
        return ops.mul(out, ops.convert_element_type(ops.where(empty, math.nan, 1.0), spec.dtype))
    weight = math.nan if match.fills[0] == -math.inf else 1.0  # all keys alike, or none; scores get no gradient there
    weights = ops.convert_element_type(ops.where(empty, weight, 0.0), spec.dtype)
    return ops.where(empty, ops.mul(ops.mean(value, -2, True), weights), out)
