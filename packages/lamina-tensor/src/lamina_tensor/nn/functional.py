"""``nn.functional``: functions named by the operators themselves, and those that need the random generator or flags.

Every operator of lamina_prims with a name ``nn.functional.x`` is found here as ``x``. What stands in this file is more
than one operator: dropout draws from the generator; activations take ``inplace``; batch norm updates its statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import random
from ..namespace import function_of, functions_under
from ..tensor import Tensor

_PREFIX = "nn.functional."


def __getattr__(name: str) -> Any:
    try:
        found = function_of(_PREFIX + name)
    except AttributeError:
        raise AttributeError(f"nn.functional has no function {name!r}") from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *functions_under(_PREFIX)})


# -- dropout ----------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability ``p`` and scale the others by 1 / (1 - p). (*) -> (*).

    Raises:
        ValueError: ``p`` is outside [0, 1].
    """
    _check_probability(p)
    if not training or p == 0:
        return input
    result = random.dropout(input, p)
    return input.copy_(result) if inplace else result


def _dropout_channels(input: Tensor, p: float, training: bool, inplace: bool, rank: int) -> Tensor:
    _check_probability(p)
    if not training or p == 0:
        return input
    keep = input.shape[: input.ndim - rank]
    mask = random.dropout(input.new_ones((*keep, *(1,) * rank)), p)
    return input.mul_(mask) if inplace else input * mask


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, L)."""
    return _dropout_channels(input, p, training, inplace, 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, H, W)."""
    return _dropout_channels(input, p, training, inplace, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, D, H, W)."""
    return _dropout_channels(input, p, training, inplace, 3)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of SELU's activations. Source: G. Klambauer et al. 2017."""
    _check_probability(p)
    if not training or p == 0:
        return input
    low = -1.7580993408473766
    keep = 1.0 - p
    a = 1.0 / math.sqrt(keep * (1.0 + p * low * low)) if keep else 0.0
    mask = random.bernoulli(input.new_full(input.shape, keep))
    result = (input * mask + low * (1.0 - mask)) * a - a * low * p
    return input.copy_(result) if inplace else result


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key^T * scale + mask) @ value. (..., L, E), (..., S, E), (..., S, V) -> (..., L, V).

    ``attn_mask`` is boolean (True: attend) or added to the scores.
    """
    if dropout_p == 0.0:
        return _attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    return random.attention_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def _attention(*args: Any, **kwargs: Any) -> Tensor:
    return function_of("nn.functional.scaled_dot_product_attention")(*args, **kwargs)


# -- batch norm ---------------------------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of (N, C, *); in training the running statistics are updated in place."""
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("expected running_mean and running_var in evaluation mode")
        return function_of("nn.functional.batch_norm_inference")(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // input.shape[1] if input.shape[1] else 0
    if type(count) is int and count == 1:
        raise ValueError(f"expected more than 1 value per channel when training, got input size {tuple(input.shape)}")
    result, mean, var = function_of("nn.functional.batch_norm_training")(input, weight, bias, eps)
    if running_mean is not None and running_var is not None:
        from ..autograd.grad_mode import no_grad

        with no_grad():
            running_mean.mul_(1 - momentum).add_(mean.detach() * momentum)
            running_var.mul_(1 - momentum).add_(var.detach() * (momentum * count / (count - 1)))
    return result


# -- activations with ``inplace`` -----------------------------------------------------------------------


def _with_inplace(name: str) -> Callable[..., Tensor]:
    def activation(input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        result = function_of(_PREFIX + name)(input, *args, **kwargs)
        return input.copy_(result) if inplace else result

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"The operator ``{name}``; ``inplace`` writes the result into ``input``."
    return activation


celu = _with_inplace("celu")
elu = _with_inplace("elu")
hardsigmoid = _with_inplace("hardsigmoid")
hardswish = _with_inplace("hardswish")
hardtanh = _with_inplace("hardtanh")
leaky_relu = _with_inplace("leaky_relu")
mish = _with_inplace("mish")
relu = _with_inplace("relu")
relu6 = _with_inplace("relu6")
selu = _with_inplace("selu")
silu = _with_inplace("silu")
threshold = _with_inplace("threshold")
