"""Distances and similarities between vectors, and the losses made of them."""

from __future__ import annotations

import math

from ..dims import canonical_dim
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .losses import reduced, reduction_name

__all__: list[str] = []


@composite(
    names=("nn.functional.cosine_similarity", "cosine_similarity"),
    samples=calls(
        call(tensor(2, 3), tensor(2, 3)),
        call(tensor(2, 3, 4), tensor(3, 4), dim=-1),
        call(tensor(2, 3, dtype="bfloat16"), tensor(2, 3, dtype="bfloat16")),
    ),
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along ``dim``."""
    a, b = ops.broadcast_tensors([widen(x1), widen(x2)])
    place = canonical_dim("cosine_similarity", dim, len(a.shape))
    top = ops.sum(ops.mul(a, b), (place,))
    sizes = [ops.maximum(ops.vector_norm(v, 2.0, place), eps) for v in (a, b)]
    return narrow(ops.div(ops.div(top, sizes[0]), sizes[1]), x1)


@composite(
    names=("nn.functional.pairwise_distance", "pairwise_distance"),
    samples=calls(call(tensor(2, 3), tensor(2, 3)), call(tensor(2, 3), tensor(3), 1.0, keepdim=True)),
)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Norm of x1 - x2 + eps along the last dimension."""
    return ops.vector_norm(ops.add(ops.sub(x1, x2), eps), p, -1, keepdim)


@composite(
    names=("cdist",),
    samples=calls(
        call(tensor(2, 3, 4), tensor(2, 5, 4)),
        call(tensor(3, 4), tensor(5, 4), 1.0),
        call(tensor(3, 4), tensor(5, 4), math.inf),
        call(tensor(3, 4), tensor(5, 4), 3.0),
    ),
    errors=[error(RuntimeError, "columns", tensor(3, 4), tensor(5, 3))],
)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Distances of all pairs of rows: (*, P, M), (*, R, M) -> (*, P, R)."""
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    return ops.vector_norm(ops.sub(ops.unsqueeze(x1, -2), ops.unsqueeze(x2, -3)), p, -1)


@composite(names=("pdist", "nn.functional.pdist"), samples=calls(call(tensor(4, 3)), call(tensor(4, 3), 1.0)))
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Distances of all pairs of rows i < j: (N, M) -> (N (N - 1) / 2)."""
    n = input.shape[0]
    rows = [ops.slice(input, 0, i, i + 1) for i in range(n - 1)]
    parts = [ops.vector_norm(ops.sub(row, ops.slice(input, 0, i + 1, n)), p, -1) for i, row in enumerate(rows)]
    return ops.cat(parts, 0) if parts else ops.zeros((0,), device=input.device)


_PAIR = (tensor(3, 4), tensor(3, 4))


@composite(
    names=("nn.functional.cosine_embedding_loss", "cosine_embedding_loss"),
    samples=calls(
        call(*_PAIR, tensor(3, dtype="int64", low=1, high=2)),
        call(*_PAIR, tensor(3, dtype="int64", low=-1, high=0), 0.1, reduction="sum"),
        call(tensor(4), tensor(4), tensor(dtype="int64", low=1, high=2)),
    ),
)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    a, b = widen(input1), widen(input2)
    top = ops.sum(ops.mul(a, b), -1)
    sizes = ops.mul(ops.add(ops.sum(ops.mul(a, a), -1), 1e-12), ops.add(ops.sum(ops.mul(b, b), -1), 1e-12))
    cosine = ops.div(top, ops.sqrt(sizes))
    apart = ops.where(ops.eq(target, -1), ops.relu(ops.sub(cosine, margin)), 0.0)
    loss = ops.where(ops.eq(target, 1), ops.sub(1.0, cosine), apart)
    return narrow(reduced(loss, reduction_name(reduction, size_average, reduce)), input1)


@composite(
    names=("nn.functional.triplet_margin_loss", "triplet_margin_loss"),
    samples=calls(
        call(*_PAIR, tensor(3, 4)),
        call(*_PAIR, tensor(3, 4), 2.0, 1.0, swap=True, reduction="none"),
    ),
)
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin). Source: Balntas et al. 2016."""
    near = ops.pairwise_distance(anchor, positive, p, eps)
    far = ops.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, ops.pairwise_distance(positive, negative, p, eps))
    loss = ops.relu(ops.add(ops.sub(near, far), margin))
    return reduced(loss, reduction_name(reduction, size_average, reduce))
