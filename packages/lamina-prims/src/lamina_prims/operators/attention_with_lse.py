"""Attention and its derivative, which keeps the log-sum-exp, not the probabilities: what a backend may take whole.

Source: Vaswani et al. 2017; the derivative's form is Dao et al. 2022 (FlashAttention), section 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lamina_fx import TensorSpec

from ..arrays import element_type
from ..dims import broadcast_shapes
from ..metas import statistics_dtype
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, tensor
from ..types import Tensor

__all__: list[str] = []

_LOWEST = -math.inf
_FAR = {4: 4096.0, 8: 1e9}
"""By the bytes of a log-sum-exp: beyond it a last digit is more than a weight may be off (5e-4 of itself)."""


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


def _weights(scores: Tensor, lse: Tensor, attn_mask: Any) -> Tensor:
    """The probabilities of which ``lse`` is the log-sum-exp, (*, L, S).

    Beside large scores (a row masked by the lowest number, say) the sum is lost in lse = largest + log(sum): there the
    largest and the sum are found again.
    """
    if isinstance(scores.shape[-1], int) and scores.shape[-1] == 0:
        return scores  # nothing has a largest
    size = ops.abs(lse)
    limit = _FAR[element_type(lse).itemsize]
    far = ops.logical_and(ops.gt(size, limit), ops.lt(size, math.inf))
    weights = ops.exp(ops.sub(scores, ops.where(far, ops.amax(scores, -1, True), _finite(lse, attn_mask))))
    return ops.div(weights, ops.where(far, ops.sum(weights, -1, True), 1.0))


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
    no_keys = isinstance(scores.shape[-1], int) and scores.shape[-1] == 0
    largest = ops.sum(scores, -1, True) if no_keys else _finite(ops.amax(scores, -1, True), attn_mask)  # none: 0
    weights = ops.exp(ops.sub(scores, largest))
    total = ops.sum(weights, -1, True)
    if state is not None:
        weights = ops.mul(weights, _kept(state, weights.shape, dropout_p))
    divisor = total if attn_mask is None and not no_keys else ops.where(ops.eq(total, 0), 1.0, total)
    out = ops.div(ops.matmul(weights, widen(value)), divisor)
    return narrow(out, query), ops.add(ops.log(total), largest)


@attention_with_lse.vjp
def _(ct, out, query, key, value, attn_mask, is_causal, scale, dropout_p, state, needs):
    given = ct[0] if ct[0] is not None else ops.zeros_like(out[0])
    rest = (*out, query, key, value, attn_mask, is_causal, scale, dropout_p, state)
    wanted = needs[0] or needs[1] or needs[2]
    dq, dk, dv = ops.attention_backward(given, ct[1], *rest) if wanted else (None, None, None)
    dm = ops.attention_mask_backward(given, ct[1], *rest) if attn_mask is not None and needs[3] else None
    return dq, dk, dv, dm, None


# -- the derivative --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tiles:
    """What the derivative is made of, (*, L, S) each: probabilities, the same after dropout, dropout's factors (None
    without), products of the gradient with the values after dropout less the rows' sums, and the scores' gradient."""

    weights: Any
    dropped: Any
    kept: Any
    excess: Any
    slope: Any


def _tiles(
    grad_out: Any, grad_lse: Any, output: Any, lse: Any, query: Any, key: Any, value: Any, attn_mask: Any,
    is_causal: bool, scale: float, dropout_p: float, state: Any,
) -> _Tiles:  # fmt: skip
    weights = _weights(_scores(query, key, attn_mask, is_causal, scale), lse, attn_mask)
    inner = ops.matmul(widen(grad_out), ops.mT(widen(value)))
    dropped, kept = weights, None
    if state is not None:
        kept = _kept(state, weights.shape, dropout_p)
        inner, dropped = ops.mul(inner, kept), ops.mul(weights, kept)
    rows = ops.sum(ops.mul(widen(grad_out), widen(output)), -1, True)
    if grad_lse is not None:
        rows = ops.sub(rows, grad_lse)
    excess = ops.sub(inner, rows)
    return _Tiles(weights, dropped, kept, excess, ops.mul(weights, excess))


def _fitted(gradient: Any, like: Any) -> Any:
    """Summed over what was broadcast, in the argument's dtype."""
    return narrow(ops.sum_to_size(gradient, tuple(like.shape)), like)


def _backward_meta(
    grad_out: Any, grad_lse: Any, output: Any, lse: Any, query: Any, key: Any, value: Any, *rest: Any, **named: Any
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    dq, dk, dv = (TensorSpec(x.shape, x.dtype, None, x.device) for x in (query, key, value))
    return dq, dk, dv


_DO, _O, _L, _DL = tensor(2, 3, 6), tensor(2, 3, 6), tensor(2, 3, 1), tensor(2, 3, 1)
_BACKWARD_SAMPLES = calls(
    call(_DO, None, _O, _L, _Q, _K, _V, None, False, 0.5),
    call(_DO, _DL, _O, _L, _Q, _K, _V, None, True, 0.5),
    call(_DO, _DL, _O, _L, _Q, _K, _V, tensor(3, 5), False, 0.5),
    call(_DO, None, _O, _L, _Q, _K, _V, tensor(2, 3, 5, dtype="bool"), False, 0.5),
    call(_DO, _DL, _O, _L, _Q, _K, _V, None, False, 0.5, 0.25, tensor(2, dtype="int64", low=0, high=99)),
    call(
        *(tensor(2, 2, 3, 6), None, tensor(2, 2, 3, 6), tensor(2, 2, 3, 1)),
        *(tensor(2, 2, 3, 4), tensor(2, 1, 5, 4), tensor(2, 1, 5, 6), None, False, 0.5),
    ),
)


@composite(meta=_backward_meta, samples=_BACKWARD_SAMPLES)
def attention_backward(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    output: Tensor,
    lse: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float,
    dropout_p: float = 0.0,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ``attention_with_lse`` by query, key and value, in their shapes and dtypes.

    The probabilities are made again from the log-sum-exp; ``grad_lse`` may be None. Source: Dao et al. 2022, B.2.
    """
    given = widen(grad_out)
    tiles = _tiles(
        grad_out, grad_lse, output, lse, query, key, value, attn_mask, is_causal, scale, dropout_p, state
    )  # fmt: skip
    dq = ops.mul(ops.matmul(tiles.slope, widen(key)), scale)
    dk = ops.mul(ops.matmul(ops.mT(tiles.slope), widen(query)), scale)
    dv = ops.matmul(ops.mT(tiles.dropped), given)
    return _fitted(dq, query), _fitted(dk, key), _fitted(dv, value)


@attention_backward.vjp
def _(
    ct, grad_out, grad_lse, output, lse, query, key, value, attn_mask, is_causal, scale, dropout_p, state, needs
):  # fmt: skip
    tiles = _tiles(
        grad_out, grad_lse, output, lse, query, key, value, attn_mask, is_causal, scale, dropout_p, state
    )  # fmt: skip
    q, k, v, given = widen(query), widen(key), widen(value), widen(grad_out)
    cq, ck, cv = (None if c is None else widen(c) for c in ct)
    slope_bar = _total(
        None if cq is None else ops.mul(ops.matmul(cq, ops.mT(k)), scale),
        None if ck is None else ops.mul(ops.matmul(q, ops.mT(ck)), scale),
    )
    dropped_bar = None if cv is None else ops.matmul(given, ops.mT(cv))
    inner_bar = None if slope_bar is None else ops.mul(slope_bar, tiles.weights)
    rows_bar = None if inner_bar is None else ops.neg(ops.sum(inner_bar, -1, True))
    weights_bar = _total(
        None if slope_bar is None else ops.mul(slope_bar, tiles.excess), _times(dropped_bar, tiles.kept)
    )
    inner_bar = _times(inner_bar, tiles.kept)
    scores_bar = ops.mul(weights_bar, tiles.weights)
    g = _total(
        None if cv is None else ops.matmul(tiles.dropped, cv),
        None if inner_bar is None else ops.matmul(inner_bar, v),
        None if rows_bar is None else ops.mul(rows_bar, widen(output)),
    )
    dq = _total(ops.matmul(scores_bar, k), None if ck is None else ops.matmul(tiles.slope, ck))
    dk = _total(
        ops.matmul(ops.mT(scores_bar), q), None if cq is None else ops.matmul(ops.mT(tiles.slope), cq)
    )  # fmt: skip
    dv = None if inner_bar is None else ops.matmul(ops.mT(inner_bar), given)
    do = None if rows_bar is None else ops.mul(rows_bar, given)
    dl = None if rows_bar is None or grad_lse is None else ops.neg(rows_bar)
    dm = scores_bar if attn_mask is not None and needs[7] else None
    return g, dl, do, ops.neg(ops.sum(scores_bar, -1, True)), ops.mul(dq, scale), ops.mul(dk, scale), dv, dm, None


def _total(*parts: Any) -> Any:
    """The sum of those that are not None; None when all are."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else ops.add(total, part)
    return total


def _times(value: Any, kept: Any) -> Any:
    return value if value is None or kept is None else ops.mul(value, kept)


@composite(
    samples=calls(
        call(_DO, _DL, _O, _L, _Q, _K, _V, tensor(3, 5), False, 0.5),
        call(_DO, None, _O, _L, _Q, _K, _V, tensor(1, 5), False, 0.5, 0.25, tensor(2, dtype="int64", low=0, high=99)),
    )
)
def attention_mask_backward(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    output: Tensor,
    lse: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor,
    is_causal: bool,
    scale: float,
    dropout_p: float = 0.0,
    state: Tensor | None = None,
) -> Tensor:
    """Gradient of ``attention_with_lse`` by an additive mask: the scores', which is (*, L, S) whatever is kept."""
    tiles = _tiles(
        grad_out, grad_lse, output, lse, query, key, value, attn_mask, is_causal, scale, dropout_p, state
    )  # fmt: skip
    return _fitted(tiles.slope, attn_mask)
