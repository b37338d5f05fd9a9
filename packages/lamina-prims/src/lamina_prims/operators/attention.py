"""Scaled dot-product attention with a derivative of its own that keeps the log-sum-exp, not the probabilities.

Source: Vaswani et al. 2017; the derivative's form is Dao et al. 2022 (FlashAttention), section 3.1.
"""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import TensorSpec

from ..arrays import element_type
from ..dims import broadcast_shapes
from ..metas import statistics_dtype
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor

__all__: list[str] = []

_LOWEST = -math.inf


def _scores(query: Tensor, key: Tensor, attn_mask: Any, is_causal: bool, scale: float) -> Tensor:
    """Scaled products of queries and keys (float32), masked by -inf."""
    scores = ops.mul(ops.matmul(widen(query), ops.mT(widen(key))), scale)
    if is_causal:
        rows, columns = scores.shape[-2], scores.shape[-1]
        row = ops.unsqueeze(ops.arange(rows, device=query.device), -1)
        column = ops.arange(columns, device=query.device)
        scores = ops.where(ops.ge(row, column), scores, _LOWEST)
    if attn_mask is None:
        return scores
    if element_type(attn_mask).kind == "bool":
        return ops.where(attn_mask, scores, _LOWEST)
    return ops.add(scores, widen(attn_mask))


def _finite(lse: Tensor, attn_mask: Any) -> Tensor:
    """0 where a mask leaves a row without any key, so that exp(score - lse) is 0 there and not NaN."""
    if attn_mask is None:
        return lse
    return ops.where(ops.eq(lse, _LOWEST), 0.0, lse)


def _kept(state: Tensor, shape: Any, dropout_p: float) -> Tensor:
    """1 / (1 - p) for what dropout keeps, 0 for the rest."""
    if dropout_p >= 1.0:
        return ops.zeros(tuple(shape), device=state.device)
    keep = ops.dropout_mask(state, tuple(shape), dropout_p)
    return ops.where(keep, 1.0 / (1.0 - dropout_p), 0.0)


_Q, _K, _V = tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 6)


def _lse_meta(
    query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float, dropout_p: float = 0.0,
    state: Any = None,
) -> tuple[TensorSpec, TensorSpec]:  # fmt: skip
    lead = broadcast_shapes("scaled_dot_product_attention", [query.shape[:-2], key.shape[:-2]])
    rows, columns = query.shape[-2], key.shape[-2]
    if attn_mask is not None:
        whole = broadcast_shapes("scaled_dot_product_attention", [(*lead, rows, columns), attn_mask.shape])
        lead, rows = whole[:-2], whole[-2]
    out = broadcast_shapes("scaled_dot_product_attention", [lead, value.shape[:-2]])
    return (
        TensorSpec((*out, rows, value.shape[-1]), query.dtype, None, query.device),
        TensorSpec((*lead, rows, 1), statistics_dtype(query.dtype), None, query.device),
    )


@composite(
    meta=_lse_meta,
    samples=calls(
        call(_Q, _K, _V, None, False, 0.5),
        call(_Q, _K, _V, None, True, 0.5),
        call(_Q, _K, _V, tensor(3, 5), False, 0.5),
        call(_Q, _K, _V, tensor(2, 3, 5, dtype="bool"), False, 0.5),
        call(_Q, _K, _V, None, False, 0.5, 0.25, tensor(2, dtype="int64", low=0, high=99)),
    ),
)
def attention_with_lse(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float,
    dropout_p: float = 0.0,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(attention (*, L, Ev), log-sum-exp of the scores (*, L, 1)); ``state`` is the random state for dropout."""
    scores = _scores(query, key, attn_mask, is_causal, scale)
    largest = _finite(ops.amax(scores, -1, True), attn_mask)
    weights = ops.exp(ops.sub(scores, largest))
    total = ops.sum(weights, -1, True)
    if state is not None:
        weights = ops.mul(weights, _kept(state, weights.shape, dropout_p))
    divisor = total if attn_mask is None else ops.where(ops.eq(total, 0), 1.0, total)
    out = ops.div(ops.matmul(weights, widen(value)), divisor)
    return narrow(out, query), ops.add(ops.log(total), largest)


@attention_with_lse.vjp
def _(ct, out, query, key, value, attn_mask, is_causal, scale, dropout_p, state, needs):
    given = widen(ct[0])
    weights = ops.exp(ops.sub(_scores(query, key, attn_mask, is_causal, scale), _finite(out[1], attn_mask)))
    inner = ops.matmul(given, ops.mT(widen(value)))
    dropped = weights
    if state is not None:
        kept = _kept(state, weights.shape, dropout_p)
        inner, dropped = ops.mul(inner, kept), ops.mul(weights, kept)
    rows = ops.sum(ops.mul(given, widen(out[0])), -1, True)
    if ct[1] is not None:
        rows = ops.sub(rows, ct[1])
    slope = ops.mul(weights, ops.sub(inner, rows))
    dv = ops.matmul(ops.mT(dropped), given) if needs[2] else None
    dq = ops.mul(ops.matmul(slope, widen(key)), scale) if needs[0] else None
    dk = ops.mul(ops.matmul(ops.mT(slope), widen(query)), scale) if needs[1] else None
    dm = slope if attn_mask is not None and needs[3] else None
    return dq, dk, dv, dm, None


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any, is_causal: bool, dropout_p: float) -> None:
    name = "scaled_dot_product_attention"
    if min(len(query.shape), len(key.shape), len(value.shape)) < 2:
        raise RuntimeError(f"{name}: query, key and value must have at least 2 dimensions")
    if not element_type(query) is element_type(key) is element_type(value):
        kinds = ", ".join(str(element_type(t)) for t in (query, key, value))
        raise RuntimeError(f"{name}: Expected query, key, and value to have the same dtype, but got {kinds}")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"{name}: the shapes of query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)} "
            "do not fit: queries and keys need one width, keys and values one length"
        )
    if attn_mask is not None and is_causal:
        raise RuntimeError(f"{name}: Explicit attn_mask should not be set when is_causal=True")
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"{name}: dropout_p must be in [0, 1], got {dropout_p}")


def _repeat_heads(value: Tensor, heads: Any) -> Tensor:
    have = value.shape[-3]
    if have == heads:
        return value
    if heads % have:
        raise RuntimeError(f"scaled_dot_product_attention: {heads} query heads are not a multiple of {have} key heads")
    lead, tail = tuple(value.shape[:-3]), tuple(value.shape[-2:])
    spread = ops.expand(ops.unsqueeze(value, -3), (*lead, have, heads // have, *tail))
    return ops.reshape(spread, (*lead, heads, *tail))


@composite(
    names=("nn.functional.scaled_dot_product_attention",),
    samples=calls(
        call(_Q, _K, _V),
        call(_Q, _K, _V, is_causal=True),
        call(_Q, _K, _V, tensor(3, 5)),
        call(_Q, _K, _V, tensor(3, 5, dtype="bool"), scale=0.3),
        call(tensor(2, 4, 3, 4), tensor(2, 2, 5, 4), tensor(2, 2, 5, 4), enable_gqa=True),
        call(*(tensor(2, 3, 4, dtype="bfloat16") for _ in range(3)), is_causal=True),
    ),
    errors=[
        error(RuntimeError, "is_causal", _Q, _K, _V, tensor(3, 5), is_causal=True),
        error(RuntimeError, "do not fit", _Q, tensor(2, 5, 3), _V),
        error(RuntimeError, "state", _Q, _K, _V, None, 0.5),
    ],
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    state: Tensor | None = None,
) -> Tensor:
    """softmax(query key^T * scale + mask) value: (*, L, E), (*, S, E), (*, S, Ev) -> (*, L, Ev).

    A bool mask says what takes part, another one is added. Rows without any key give 0. ``state``: the random state
    that dropout needs (the front end passes its generator's and advances it by ``dropout_mask.counters(shape)``).
    """
    _check(query, key, value, attn_mask, is_causal, dropout_p)
    if dropout_p > 0.0 and state is None:
        raise RuntimeError("scaled_dot_product_attention: dropout_p > 0 needs a random state; pass state=")
    if enable_gqa:
        key, value = _repeat_heads(key, query.shape[-3]), _repeat_heads(value, query.shape[-3])
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    random = state if dropout_p > 0.0 else None
    return attention_with_lse(query, key, value, attn_mask, is_causal, factor, dropout_p, random)[0]
