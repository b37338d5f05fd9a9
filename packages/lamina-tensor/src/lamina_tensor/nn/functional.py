"""``nn.functional``: functions named by the operators themselves, and those that need the random generator or flags.

Every operator of lamina_prims with a name ``nn.functional.x`` is found here as ``x``. What stands in this file is more
than one operator: dropout draws from the generator; activations take ``inplace``; batch norm updates its statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina_fx import int64
from lamina_prims import operator

from .. import random
from ..autograd.grad_mode import no_grad
from ..creation import as_tensor
from ..methods import function, namespace_names
from ..tensor import Tensor

_PREFIX = "nn.functional"


def __getattr__(name: str) -> Any:
    found = function(f"{_PREFIX}.{name}")
    if found is None:
        raise AttributeError(f"nn.functional has no function {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *namespace_names(_PREFIX)})


# -- classes ----------------------------------------------------------------------------------------


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class number and 0 elsewhere: (*) -> int64 (*, num_classes).

    ``num_classes=-1`` takes the largest class number plus 1, which ends a captured graph.

    Raises:
        RuntimeError: no integers; no elements, of which none is the largest.
    """
    if num_classes == -1 and tensor.dtype.kind == "int":
        if tensor.numel() == 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(tensor.max().item()) + 1
    return operator("one_hot")(tensor, num_classes)


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


def _dropout_channels(input: Tensor, p: float, training: bool, inplace: bool, unbatched: int) -> Tensor:
    _check_probability(p)
    if not training or p == 0:
        return input
    result = random.feature_dropout(input, p, unbatched)
    return input.copy_(result) if inplace else result


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L)."""
    return _dropout_channels(input, p, training, inplace, 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, H, W)."""
    return _dropout_channels(input, p, training, inplace, -1)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _dropout_channels(input, p, training, inplace, 4)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of SELU's activations. Source: G. Klambauer et al. 2017."""
    _check_probability(p)
    if not training or p == 0:
        return input
    result = random.alpha_dropout(input, p)
    return input.copy_(result) if inplace else result


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU with random slopes in training, and their mean otherwise. (*) -> (*). Source: B. Xu et al. 2015.

    Raises:
        ValueError: ``lower`` is larger than ``upper``.
    """
    if lower > upper:
        raise ValueError(f"rrelu: lower ({lower}) must not be larger than upper ({upper})")
    result = random.rrelu(input, lower, upper) if training else leaky_relu(input, (lower + upper) / 2)
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


_attention = function("nn.functional.scaled_dot_product_attention")

# -- batch norm ---------------------------------------------------------------------------------------

_batch_norm = function("nn.functional.batch_norm")
_batch_norm_update = operator("batch_norm_update")


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
    if not training or running_mean is None or running_var is None:
        return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    result, mean, variance = _batch_norm_update(input, running_mean, running_var, weight, bias, True, momentum, eps)
    with no_grad():
        running_mean.copy_(mean)
        running_var.copy_(variance)
    return result


# -- activations with ``inplace`` -----------------------------------------------------------------------


def _with_inplace(name: str, saves_input: bool = True) -> Callable[..., Tensor]:
    plain = function(f"{_PREFIX}.{name}")

    def activation(input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        if not inplace:
            return plain(input, *args, **kwargs)
        # The derivative wants the input as it was: what is overwritten must be kept.
        kept = input.clone() if saves_input and input.requires_grad else input
        return input.copy_(plain(kept, *args, **kwargs))

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
relu = _with_inplace("relu", saves_input=False)
relu6 = _with_inplace("relu6")
selu = _with_inplace("selu")
silu = _with_inplace("silu")
threshold = _with_inplace("threshold")


# -- noise and windows ------------------------------------------------------------------------------


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Sample from the Gumbel-softmax distribution; ``hard``: one-hot, with the gradient of the soft sample. (*) -> (*).

    ``eps`` is accepted: nothing here depends on it.
    """
    del eps
    return random.gumbel_softmax(logits, tau, hard, dim)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Largest elements of windows whose places are random, and where they are. (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: neither or both of ``output_size`` and ``output_ratio``, or a ratio that is not between 0 and 1.
    """
    del return_indices
    if (output_size is None) == (output_ratio is None):
        raise ValueError("fractional_max_pool2d requires specifying either an output_size or an output_ratio")
    height, width = input.shape[-2:]
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio, output_ratio)
        if not all(0 < r < 1 for r in ratios):
            raise ValueError(f"fractional_max_pool2d: output_ratio must be between 0 and 1, got {ratios}")
        output_size = (int(height * ratios[0]), int(width * ratios[1]))
    if _random_samples is None:
        batch = input.shape[0] if input.ndim == 4 else 1
        _random_samples = random.pooling_samples(input, (batch, input.shape[-3], 2))
    return operator("fractional_max_pool2d")(input, kernel_size, output_size, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """As ``fractional_max_pool2d_with_indices``; the places only with ``return_indices``. Source: B. Graham 2014."""
    options = (kernel_size, output_size, output_ratio, return_indices, _random_samples)
    found = fractional_max_pool2d_with_indices(input, *options)
    return found if return_indices else found[0]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of the targets over all alignments with (T, N, C) or (T, C) log probabilities.

    ``targets`` is (N, S), or all targets in a row. Lengths are tensors or integers. Source: A. Graves et al. 2006.
    """
    if targets.ndim == 1 and log_probs.ndim == 3:
        lengths = [int(n) for n in target_lengths]
        rows = targets.split(lengths)
        longest = max(lengths, default=0)
        targets = _padded(rows, longest)
        target_lengths = lengths
    tensors = [
        value if isinstance(value, Tensor) else as_tensor(value, device=log_probs.device, dtype=int64)
        for value in (input_lengths, target_lengths)
    ]
    return operator("ctc_loss")(log_probs, targets, *tensors, blank, reduction, zero_infinity)


def _padded(rows: Any, longest: int) -> Tensor:
    """Sequences of different lengths as rows of a matrix."""
    padded = [operator("pad")(row, (0,), (longest - row.shape[0],)) for row in rows]
    return operator("stack")(padded)
