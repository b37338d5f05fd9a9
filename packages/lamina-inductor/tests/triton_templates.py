"""Cases for the tests of templates: graphs, and the candidates that print them.

``GEMMS``, ``ATTENTIONS``: name -> (function over operators, inputs, candidates).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from tracing import spec_of

from lamina_fx import Graph, GraphBuilder, TensorSpec, bfloat16, float16, float32
from lamina_fx.symbolic import ShapeEnv
from lamina_inductor.backends.triton import TritonBackend, TritonProgram
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.tune.candidates import AttentionCandidate, Candidate, GemmCandidate
from lamina_prims import decompose, ops

__all__ = ["ATTENTIONS", "GEMMS", "SYMBOLIC", "emit_with", "kept_graph"]

RNG = np.random.default_rng(11)
BF16 = ml_dtypes.bfloat16
SMALL = GemmCandidate(32, 32, 32, 4, 2, group=2)
STATE = np.array([77, 2**33 + 5], np.int64)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def kept_graph(fn: Any, inputs: tuple[Any, ...], symbolic: tuple[int, ...] = ()) -> Graph:
    """The graph of ``fn`` over arrays like these, in strict primitives and what the backend keeps.

    ``symbolic``: sizes that are symbols wherever they stand.
    """
    graph = Graph()
    builder = GraphBuilder(graph)
    env = ShapeEnv()
    symbols: dict[int, Any] = {size: env.create_symbol(size, f"size {size}") for size in symbolic}
    values = []
    for k, array in enumerate(inputs):
        spec = spec_of(array)
        spec = TensorSpec(tuple([symbols.get(n, n) for n in spec.shape]), spec.dtype) if symbols else spec
        values.append(builder.proxy(graph.placeholder(f"x{k}", spec=spec)))
    result = fn(*values)
    graph.output(tuple(r.node for r in (result if isinstance(result, tuple) else (result,))))
    return decompose(graph, level="prims", keep=TritonBackend.keep)


def emit_with(graph: Graph, candidate: Candidate, index_bits: int = 32) -> TritonProgram:
    """The program with every template of this form."""
    planner = TemplatePlanner(multiprocessors=3, choose=lambda problem, ranked, show: candidate)
    return TritonBackend(planner).emit(graph, index_bits=index_bits)


def transposed(x: Any) -> Any:
    return ops.permute(x, (1, 0))


def many_results(x: Any, w: Any, b: Any) -> Any:
    y = ops.add(ops.matmul(x, w), b)
    return ops.relu(y), ops.gt(y, 0.0), ops.convert_element_type(y, float32)


def batch_of_heads(q: Any, k: Any) -> Any:
    return ops.mul(ops.matmul(q, ops.mT(k)), 0.125)


def split_heads(x: Any, w: Any, b: Any) -> Any:
    """(B, T, C) to (B, H, T, D)."""
    y = ops.add(ops.matmul(x, w), b)
    return ops.permute(ops.reshape(y, (*x.shape[:2], 4, 16)), (0, 2, 1, 3))


def gathered(x: Any, w: Any, table: Any, index: Any) -> Any:
    return ops.add(ops.matmul(x, w), ops.embedding(index, table))


def linear(x: Any, w: Any, b: Any) -> Any:
    return ops.gelu(ops.add(ops.matmul(x, transposed(w)), b))


PERSISTENT = GemmCandidate(32, 32, 32, 4, 2, group=2, persistent=True)
SPLIT = GemmCandidate(16, 32, 16, 2, 2, split=3)
CUT = GemmCandidate(64, 64, 32, 1, 2, group=2)
ROUNDED = GemmCandidate(32, 32, 32, 4, 2, group=2, tf32=True)
WALKING = GemmCandidate(32, 32, 32, 4, 2, group=2, persistent=True, descriptors=True)
DESCRIBED = GemmCandidate(32, 32, 32, 4, 2, group=2, descriptors=True)

GEMMS: dict[str, tuple[Any, tuple[Any, ...], tuple[GemmCandidate, ...]]] = {
    "plain": (ops.matmul, (floats(64, 96), floats(96, 64)), (SMALL, PERSISTENT, SPLIT)),
    "odd sizes": (ops.matmul, (floats(37, 45), floats(45, 71)), (SMALL, PERSISTENT, SPLIT, ROUNDED)),
    "bias and gelu": (
        lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)),
        (floats(50, 64, dtype=BF16), floats(64, 40, dtype=BF16), floats(40, dtype=BF16)),
        (CUT, SMALL, PERSISTENT, SPLIT),
    ),
    "linear with residual": (
        lambda x, w, b, r: ops.add(linear(x, w, b), r),
        (floats(64, 64, dtype=BF16), floats(96, 64, dtype=BF16), floats(96, dtype=BF16), floats(64, 96, dtype=BF16)),
        (SMALL, DESCRIBED),
    ),
    "half": (
        lambda x, w: ops.relu(ops.matmul(transposed(x), w)),
        (floats(64, 32, dtype=np.float16), floats(64, 64, dtype=np.float16)), (SMALL, DESCRIBED),
    ),
    "several results": (
        many_results, tuple(floats(*s, dtype=np.float16) for s in ((33, 64), (64, 64), (64,))),
        (CUT, SMALL, PERSISTENT, SPLIT),
    ),
    "batches": (batch_of_heads, (floats(2, 3, 40, 16), floats(2, 3, 50, 16)), (SMALL, PERSISTENT, SPLIT)),
    "batches by descriptors": (
        batch_of_heads, tuple(floats(2, 3, n, 16, dtype=np.float16) for n in (40, 50)), (SMALL, DESCRIBED),
    ),
    "one matrix for a batch": (
        lambda x, w: ops.relu(ops.matmul(x, w)), (floats(3, 40, 32, dtype=BF16), floats(3, 32, 48, dtype=BF16)[:1]),
        (SMALL, DESCRIBED),
    ),
    "heads": (split_heads, (floats(2, 20, 32), floats(32, 64), floats(64)), (CUT, SMALL, PERSISTENT, SPLIT)),
    "rows of a table": (
        gathered, (floats(40, 32), floats(32, 64), floats(9, 64), RNG.integers(0, 9, 40)), (CUT, SMALL, SPLIT),
    ),
    "converted weights": (
        lambda x, w, b: ops.relu(ops.add(ops.matmul(x, ops.convert_element_type(w, bfloat16)), b)),
        (floats(9, 70, dtype=BF16), floats(70, 96), floats(96, dtype=BF16)), (SMALL,),
    ),
    "converted weights of a linear layer": (
        lambda x, w: ops.matmul(x, transposed(ops.convert_element_type(w, bfloat16))),
        (floats(9, 70, dtype=BF16), floats(96, 70)), (SMALL,),
    ),
    "activations on the way in": (
        lambda x, w: ops.matmul(ops.mul(ops.relu(x), 0.5), w),
        (floats(300, 70, dtype=np.float16), floats(70, 20, dtype=np.float16)), (SMALL,),
    ),
    "both converted": (
        lambda x, w: ops.matmul(ops.convert_element_type(x, float16), ops.convert_element_type(w, float16)),
        (floats(17, 1000), floats(1000, 20)), (SMALL,),
    ),
    "turned round": (
        lambda x, w: ops.matmul(ops.flip(x, (0,)), ops.flip(w, (0, 1))), (floats(37, 45), floats(45, 71)),
        (SMALL, PERSISTENT, SPLIT),
    ),
    "converted weights, turned round": (
        lambda x, w: ops.matmul(ops.flip(x, (1,)), ops.flip(ops.convert_element_type(w, bfloat16), (0,))),
        (floats(9, 70, dtype=BF16), floats(70, 96)), (SMALL,),
    ),
    "wide sums": (ops.matmul, (floats(3, 300), floats(300, 20)), (SPLIT,)),
}  # fmt: skip


# -- attention -------------------------------------------------------------------------------------------


def attention(**how: Any) -> Any:
    def fn(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        mask = rest[0] if how.get("mask") else None
        state = rest[-1] if how.get("dropout") else None
        return ops.attention_with_lse(q, k, v, mask, how.get("causal", False), 0.25, how.get("dropout", 0.0), state)

    return fn


def backward(**how: Any) -> Any:
    def fn(g: Any, gl: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        mask = rest[0] if how.get("mask") else None
        state = rest[-1] if how.get("dropout") else None
        tail = (mask, how.get("causal", False), 0.25, how.get("dropout", 0.0), state)
        out, lse = ops.attention_with_lse(q, k, v, *tail)
        return ops.attention_backward(g, gl, out, lse, q, k, v, *tail)

    return fn


def matrices(lead: tuple[int, ...], rows: int, keys: int, width: int, dtype: Any = np.float32) -> tuple[Any, ...]:
    return floats(*lead, rows, width, dtype=dtype), *(floats(*lead, keys, width, dtype=dtype) for _ in range(2))


def gradients(lead: tuple[int, ...], rows: int, width: int, dtype: Any = np.float32) -> tuple[Any, ...]:
    return floats(*lead, rows, width, dtype=dtype), floats(*lead, rows, 1)


def with_empty_rows(*shape: int) -> np.ndarray:
    mask = RNG.random(shape) < 0.6
    mask[..., 3, :] = False
    return mask


def with_empty_tiles(*shape: int) -> np.ndarray:
    """Some tiles are full, some empty; one row has no key."""
    mask = RNG.random(shape) < 0.7
    mask[..., :32] = True
    mask[..., 32:64] = False
    if shape[-2] > 1:
        mask[..., :40, 64:] = np.tril(np.ones((40, shape[-1] - 64), bool))
        mask[..., 5, :] = False
    return mask


def additive(mask: np.ndarray) -> np.ndarray:
    return np.where(mask, 0.0, -np.inf).astype(np.float32)


def large_numbers(rows: int, keys: int) -> np.ndarray:
    """Rows masked by large numbers, whose keys all weigh alike; one row has no key."""
    mask = np.zeros((rows, keys), np.float32)
    mask[::3] = -1e9
    mask[1::3] = np.finfo(np.float32).min
    mask[2::3, ::2] = -np.inf
    mask[5] = -np.inf
    return mask


def huge(rows: int, keys: int, width: int, dtype: Any = np.float32) -> tuple[Any, ...]:
    """Scores near 1e5, exactly: whole numbers. A few keys of a row have almost its largest score."""
    q, k = (RNG.integers(-200, 200, (2, n, width)).astype(np.float32) for n in (rows, keys))
    q[..., 0] = RNG.integers(-4, 5, (2, rows))
    k[:, 1 : keys // 2 * 2 : 2] = k[:, : keys // 2 * 2 : 2]
    k[:, 1::2, 0] += 1
    return q.astype(dtype), k.astype(dtype), floats(2, keys, width, dtype=dtype)


TILES = (AttentionCandidate(32, 16, 2, 2), AttentionCandidate(16, 32, 2, 2))
TILE = TILES[:1]
PARTS = (AttentionCandidate(16, 16, 2, 2, split=3), AttentionCandidate(16, 32, 2, 2, split=8))
SPLIT_NUMBERS = AttentionCandidate(32, 16, 2, 2, precision="tf32x3")
READ_BY_DESCRIPTORS = (AttentionCandidate(32, 16, 4, 2, True), AttentionCandidate(16, 32, 4, 2, True))

ATTENTIONS: dict[str, tuple[Any, tuple[Any, ...], tuple[AttentionCandidate, ...]]] = {
    "whole tiles": (attention(), matrices((2, 3), 32, 64, 16), TILES),
    "odd lengths": (attention(), matrices((2,), 45, 37, 24), TILES),
    "causal": (attention(causal=True), matrices((2,), 64, 64, 16), TILES),
    "causal of odd lengths": (attention(causal=True), matrices((2,), 45, 37, 16), (*TILES, SPLIT_NUMBERS)),
    "causal with more keys": (attention(causal=True), matrices((2,), 37, 70, 16), TILES),
    "bfloat16": (attention(causal=True), matrices((1, 2), 48, 48, 16, BF16), TILE),
    "attention in half": (attention(), matrices((1, 2), 48, 48, 32, np.float16), TILE),
    "a boolean mask": (attention(mask=True), (*matrices((2, 2), 40, 40, 16), with_empty_rows(2, 1, 40, 40)), TILES),
    "an additive mask": (attention(mask=True), (*matrices((2, 2), 33, 40, 16), floats(33, 40)), TILES),
    "a shared boolean mask": (
        attention(mask=True), (*matrices((2, 4), 72, 104, 16), with_empty_tiles(2, 1, 72, 104)), TILES,
    ),
    "a shared additive mask": (
        attention(mask=True), (*matrices((1, 4), 72, 104, 16), additive(with_empty_tiles(1, 1, 72, 104))), TILES,
    ),
    "a shared mask of keys": (
        attention(mask=True), (*matrices((2, 4), 72, 104, 16), with_empty_tiles(2, 1, 1, 104)), TILE,
    ),
    "gradients under a shared mask": (
        backward(mask=True),
        (*gradients((2, 4), 72, 16), *matrices((2, 4), 72, 104, 16), with_empty_tiles(2, 1, 72, 104)), TILES,
    ),
    "a mask of keys": (attention(mask=True), (*matrices((2, 2), 33, 40, 16), floats(2, 1, 1, 40)), TILE),
    "dropout": (attention(dropout=0.25), (*matrices((2, 2), 33, 40, 16), STATE), TILES),
    "grouped queries": (
        attention(causal=True), (floats(2, 2, 3, 40, 16), floats(2, 2, 1, 40, 16), floats(2, 2, 1, 40, 16)), TILE,
    ),
    "described": (attention(causal=True), matrices((2, 3), 48, 64, 32, np.float16), READ_BY_DESCRIPTORS),
    "described, of odd lengths": (
        attention(causal=True), matrices((3,), 45, 37, 24, np.float16), READ_BY_DESCRIPTORS,
    ),
    "described, of grouped queries under a mask": (
        attention(mask=True),
        (*(floats(2, 2, n, 40, 16, dtype=np.float16) for n in (3, 1, 1)), with_empty_rows(40, 40)), READ_BY_DESCRIPTORS,
    ),
    "described gradients": (
        backward(causal=True), (*gradients((2,), 45, 24, np.float16), *matrices((2,), 45, 70, 24, np.float16)),
        READ_BY_DESCRIPTORS,
    ),
    "attention turned round": (
        lambda q, k, v: attention()(ops.flip(q, (1,)), ops.flip(k, (0,)), ops.flip(v, (0, 1))),
        matrices((2,), 45, 37, 24), TILE,
    ),
    "wider values": (attention(), (floats(2, 33, 16), floats(2, 20, 16), floats(2, 20, 40)), TILE),
    "gradients": (backward(), (*gradients((2,), 32, 16), *matrices((2,), 32, 48, 16)), TILES),
    "gradients of odd lengths": (
        backward(), (*gradients((2,), 45, 24), *matrices((2,), 45, 37, 24)), (*TILES, SPLIT_NUMBERS),
    ),
    "causal gradients": (backward(causal=True), (*gradients((2,), 45, 16), *matrices((2,), 45, 45, 16)), TILES),
    "gradients of keys and values alone": (
        lambda *given: backward(causal=True)(*given)[1:], (*gradients((2,), 45, 16), *matrices((2,), 45, 45, 16)), TILE,
    ),
    "causal gradients with more keys": (
        backward(causal=True), (*gradients((2,), 37, 16), *matrices((2,), 37, 70, 16)), TILES,
    ),
    "causal gradients with fewer keys": (
        backward(causal=True), (*gradients((2,), 70, 16), *matrices((2,), 70, 37, 16)), TILES,
    ),
    "gradients under a mask": (
        backward(mask=True),
        (*gradients((2, 2), 40, 16), *matrices((2, 2), 40, 40, 16), with_empty_rows(2, 1, 40, 40)), TILES,
    ),
    "gradients under an additive mask": (
        backward(mask=True), (*gradients((2, 2), 33, 16), *matrices((2, 2), 33, 40, 16), floats(33, 40)), TILE,
    ),
    "gradients with dropout": (
        backward(dropout=0.25), (*gradients((2, 2), 33, 16), *matrices((2, 2), 33, 40, 16), STATE), TILES,
    ),
    "one query": (attention(), matrices((2, 3), 1, 96, 16), PARTS),
    "few queries over parts of the keys": (attention(), matrices((2,), 5, 101, 24), PARTS),
    "grouped queries over parts of the keys": (
        attention(), (floats(2, 2, 4, 1, 16), floats(2, 2, 1, 70, 16), floats(2, 2, 1, 70, 40)), PARTS,
    ),
    "grouped rows under a mask, in parts": (
        attention(mask=True),
        (*(floats(2, 2, n, r, 16, dtype=BF16) for n, r in ((3, 5), (1, 70), (1, 70))), with_empty_rows(2, 1, 1, 5, 70)),
        PARTS,
    ),
    "one causal row of groups": (
        attention(causal=True), (floats(2, 2, 3, 1, 16), floats(2, 2, 1, 70, 16), floats(2, 2, 1, 70, 16)),
        (*TILE, *PARTS),
    ),
    "gradients of one causal row of groups": (
        backward(causal=True),
        (*gradients((2, 2, 3), 1, 16), floats(2, 2, 3, 1, 16), floats(2, 2, 1, 40, 16), floats(2, 2, 1, 40, 16)), TILE,
    ),
    "parts under a mask of large numbers": (
        attention(mask=True), (*matrices((2, 2), 6, 45, 16), large_numbers(6, 45)), PARTS,
    ),
    "one row of groups under a mask of keys, in parts": (
        attention(mask=True),
        (*(floats(2, 2, n, r, 16, dtype=BF16) for n, r in ((3, 1), (1, 70), (1, 70))), floats(2, 1, 1, 1, 70)), PARTS,
    ),
    "parts with dropout": (
        attention(dropout=0.25), (*(floats(2, 2, n, r, 16) for n, r in ((3, 2), (1, 40), (1, 40))), STATE), PARTS,
    ),
    "masked by large numbers": (attention(mask=True), (*matrices((2,), 40, 45, 16), large_numbers(40, 45)), TILES),
    "gradients, masked by large numbers": (
        backward(mask=True), (*gradients((2,), 40, 16), *matrices((2,), 40, 45, 16), large_numbers(40, 45)), TILES,
    ),
    "gradients in half, masked by large numbers": (
        backward(mask=True), (*gradients((2,), 40, 16, BF16), *matrices((2,), 40, 45, 16, BF16), large_numbers(40, 45)),
        TILES,
    ),
    "gradients beside huge scores": (backward(), (*gradients((2,), 40, 16), *huge(40, 45, 16)), TILES),
    "causal gradients beside huge scores": (
        backward(causal=True), (*gradients((2,), 70, 16), *huge(70, 70, 16)), TILES,
    ),
    "gradients in half beside huge scores": (
        backward(causal=True), (*gradients((2,), 70, 16, BF16), *huge(70, 70, 16, BF16)), TILES,
    ),
    "gradients of grouped queries": (
        backward(causal=True),
        (*gradients((2, 2, 3), 40, 16), floats(2, 2, 3, 40, 16), floats(2, 2, 1, 40, 16), floats(2, 2, 1, 40, 16)),
        TILE,
    ),
    "gradients of shared values": (
        backward(),
        (*gradients((2, 3), 24, 16), floats(2, 3, 24, 16), floats(2, 3, 40, 16), floats(1, 40, 16)),
        TILE,
    ),
    "gradients in bfloat16": (
        backward(causal=True), (*gradients((2,), 48, 16, BF16), *matrices((2,), 48, 48, 16, BF16)), TILE,
    ),
}  # fmt: skip


# -- symbolic sizes --------------------------------------------------------------------------------------

SYMBOLIC: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]] = {
    "rows": (
        lambda x, w, b: ops.relu(ops.add(ops.matmul(x, w), b)), (floats(37, 32), floats(32, 64), floats(64)),
        (SMALL, PERSISTENT, SPLIT), (37,),
    ),
    "every size": (ops.matmul, (floats(37, 45), floats(45, 70)), (SMALL, PERSISTENT, SPLIT), (37, 45, 70)),
    "batch and length": (split_heads, (floats(2, 20, 32), floats(32, 64), floats(64)), (SMALL,), (2, 20)),
    "attention of any length": (
        attention(causal=True), matrices((2, 3), 45, 45, 16), TILES, (2, 45),
    ),
    "a mask of any length": (
        attention(mask=True), (*matrices((2, 3), 45, 37, 16), with_empty_rows(45, 37)), TILE, (45, 37),
    ),
    "gradients of any length": (
        backward(causal=True), (*gradients((2, 3), 45, 16), *matrices((2, 3), 45, 45, 16)), TILE, (2, 45),
    ),
    "gradients of any two lengths": (
        backward(mask=True), (*gradients((2, 3), 45, 16), *matrices((2, 3), 45, 37, 16), with_empty_rows(45, 37)),
        TILES, (45, 37),
    ),
}  # fmt: skip
