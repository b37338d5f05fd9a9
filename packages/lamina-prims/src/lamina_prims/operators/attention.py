"""Scaled dot-product attention as users call it: checks, grouped queries, the scale.

Source: Vaswani et al. 2017; grouped queries: Ainslie et al. 2023.
"""

from __future__ import annotations

import math
from typing import Any

from ..arrays import element_type
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor

__all__: list[str] = []

_Q, _K, _V = tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 6)


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


def _grouped(value: Any, heads: Any) -> Any:
    """(*, H, L, E) as (*, heads, H / heads, L, E): queries (or masks) by the key head that they look at."""
    have = value.shape[-3]
    return ops.reshape(value, (*value.shape[:-3], heads, have // heads, *value.shape[-2:]))


def _grouped_queries(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any) -> tuple[Any, Any, Any, Any]:
    """Operands that broadcast as groups of queries share key heads: no key is repeated in memory."""
    if attn_mask is not None and len(attn_mask.shape) > 2:
        one = type(attn_mask.shape[-3]) is int and attn_mask.shape[-3] == 1
        attn_mask = ops.unsqueeze(attn_mask, -3) if one else _grouped(attn_mask, key.shape[-3])
    return _grouped(query, key.shape[-3]), ops.unsqueeze(key, -3), ops.unsqueeze(value, -3), attn_mask


def _repeat_heads(value: Tensor, heads: Any) -> Tensor:
    have = value.shape[-3]
    if have == heads:
        return value
    lead, tail = tuple(value.shape[:-3]), tuple(value.shape[-2:])
    spread = ops.expand(ops.unsqueeze(value, -3), (*lead, have, heads // have, *tail))
    return ops.reshape(spread, (*lead, heads, *tail))


def _check_heads(query: Tensor, key: Tensor, value: Tensor) -> None:
    heads = query.shape[-3]
    for have in (key.shape[-3], value.shape[-3]):
        if have != heads and heads % have:
            raise RuntimeError(
                f"scaled_dot_product_attention: {heads} query heads are not a multiple of {have} key heads"
            )


@composite(
    names=("nn.functional.scaled_dot_product_attention",),
    samples=calls(
        call(_Q, _K, _V),
        call(_Q, _K, _V, is_causal=True),
        call(_Q, _K, _V, tensor(3, 5)),
        call(_Q, _K, _V, tensor(3, 5, dtype="bool"), scale=0.3),
        call(tensor(2, 4, 3, 4), tensor(2, 2, 5, 4), tensor(2, 2, 5, 4), enable_gqa=True),
        call(tensor(2, 4, 3, 4), *(tensor(2, 2, 5, 4),) * 2, tensor(4, 3, 5), enable_gqa=True),
        call(tensor(1, 4, 3, 4), *(tensor(2, 2, 5, 4),) * 2, tensor(2, 1, 3, 5, dtype="bool"), enable_gqa=True),
        call(tensor(4, 3, 4), tensor(2, 5, 4), tensor(1, 5, 6), is_causal=True, enable_gqa=True),
        call(*(tensor(2, 3, 4, dtype="bfloat16") for _ in range(3)), is_causal=True),
    ),
    errors=[
        error(RuntimeError, "is_causal", _Q, _K, _V, tensor(3, 5), is_causal=True),
        error(RuntimeError, "do not fit", _Q, tensor(2, 5, 3), _V),
        error(RuntimeError, "multiple", tensor(3, 3, 4), *(tensor(2, 5, 4),) * 2, enable_gqa=True),
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
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    rest = (is_causal, factor, dropout_p, state if dropout_p > 0.0 else None)
    if enable_gqa:
        _check_heads(query, key, value)
        if key.shape[-3] != value.shape[-3]:
            key, value = _repeat_heads(key, query.shape[-3]), _repeat_heads(value, query.shape[-3])
    if not enable_gqa or query.shape[-3] == key.shape[-3]:
        return ops.attention_with_lse(query, key, value, attn_mask, *rest)[0]
    out = ops.attention_with_lse(*_grouped_queries(query, key, value, attn_mask), *rest)[0]
    return ops.reshape(out, (*out.shape[:-4], query.shape[-3], *out.shape[-2:]))
