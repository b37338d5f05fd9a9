"""Loss functions. Parameters and reductions are PyTorch's; half precision is computed in float32.

``size_average`` and ``reduce`` are PyTorch's old spellings of ``reduction``; they are honoured.
"""

from __future__ import annotations

import math
from typing import Any

from lamina_fx import TensorSpec

from ..metas import broadcast_loss
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, chain, error, tensor
from ..types import Tensor

__all__ = ["reduced", "reduction_name"]

_REDUCTIONS = ("none", "mean", "sum")


def reduction_name(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction that new and old spellings mean.

    Raises:
        ValueError: not one of the three.
    """
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction!r} is not a valid value for reduction; use 'none', 'mean' or 'sum'")
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """All elements, their mean or their sum."""
    if reduction == "mean":
        return ops.mean(loss)
    return ops.sum(loss) if reduction == "sum" else loss


_PAIR = (tensor(3, 4), tensor(3, 4))
_HALF = (tensor(3, 4, dtype="bfloat16"), tensor(3, 4, dtype="bfloat16"))
_BAD = [error(ValueError, "valid value for reduction", *_PAIR, reduction="avg")]


def _regression(**kwargs: Any) -> Any:
    return calls(
        call(*_PAIR, **kwargs),
        call(*_PAIR, reduction="sum", **kwargs),
        call(*_PAIR, reduction="none", **kwargs),
        call(*_HALF, **kwargs),
    )


def _weighted(loss: Tensor, weight: Any, reduction: str) -> Tensor:
    if weight is None:
        return reduced(loss, reduction)
    loss = ops.mul(loss, widen(weight))
    if reduction == "mean":
        return ops.div(ops.sum(loss), ops.sum(ops.broadcast_to(widen(weight), tuple(loss.shape))))
    return reduced(loss, reduction)


def _pair_meta(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> TensorSpec:
    return broadcast_loss("loss", input, target, reduction_name(reduction, size_average, reduce))


@composite(meta=_pair_meta, names=("nn.functional.mse_loss",), samples=_regression(), errors=_BAD)
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(input - target) ** 2."""
    gap = ops.sub(widen(input), widen(target))
    return narrow(_weighted(ops.mul(gap, gap), weight, reduction_name(reduction, size_average, reduce)), input)


@composite(meta=_pair_meta, names=("nn.functional.l1_loss",), samples=_regression(), errors=_BAD)
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """|input - target|."""
    gap = ops.abs(ops.sub(widen(input), widen(target)))
    return narrow(_weighted(gap, weight, reduction_name(reduction, size_average, reduce)), input)


@composite(names=("nn.functional.huber_loss",), samples=chain(_regression(), _regression(delta=0.7)), errors=_BAD)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the square up to ``delta``, then linear. Source: Huber 1964."""
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got {delta}")
    gap = ops.abs(ops.sub(widen(input), widen(target)))
    loss = ops.where(ops.lt(gap, delta), ops.mul(ops.mul(gap, gap), 0.5), ops.mul(ops.sub(gap, 0.5 * delta), delta))
    return narrow(_weighted(loss, weight, reduction_name(reduction)), input)


@composite(names=("nn.functional.smooth_l1_loss",), samples=chain(_regression(), _regression(beta=0.5)), errors=_BAD)
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """Half the square over ``beta`` up to ``beta``, then |gap| - beta / 2."""
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    gap = ops.abs(ops.sub(widen(input), widen(target)))
    if beta > 0:
        square = ops.mul(ops.mul(gap, gap), 0.5 / beta)
        gap = ops.where(ops.lt(gap, beta), square, ops.sub(gap, 0.5 * beta))
    return narrow(reduced(gap, reduction_name(reduction, size_average, reduce)), input)


@composite(samples=calls(call(tensor(3, 4, low=0.05, high=0.95), tensor(3, 4, low=0, high=1))))
def binary_entropy_terms(input: Tensor, target: Tensor) -> Tensor:
    """-(t log p + (1 - t) log(1 - p)), the logarithms not below -100. Its gradient is finite at p = 0 and 1."""
    yes, no = ops.maximum(ops.log(input), -100.0), ops.maximum(ops.log1p(ops.neg(input)), -100.0)
    return ops.neg(ops.add(ops.mul(target, yes), ops.mul(ops.sub(1.0, target), no)))


@binary_entropy_terms.vjp
def _(ct, input, target, needs):
    gi = gt = None
    if needs[0]:
        spread = ops.maximum(ops.mul(ops.sub(1.0, input), input), 1e-12)
        gi = ops.mul(ct, ops.div(ops.sub(input, target), spread))
    if needs[1]:
        gt = ops.mul(ct, ops.sub(ops.log1p(ops.neg(input)), ops.log(input)))
    return gi, gt


_PROBABILITIES = (tensor(3, 4, low=0.05, high=0.95), tensor(3, 4, low=0, high=1))


@composite(
    names=("nn.functional.binary_cross_entropy",),
    samples=calls(
        call(*_PROBABILITIES),
        call(*_PROBABILITIES, tensor(3, 4, low=0, high=1), reduction="sum"),
        call(*_PROBABILITIES, reduction="none"),
    ),
    errors=_BAD,
)
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-(t log p + (1 - t) log(1 - p)), the logarithms not below -100."""
    loss = binary_entropy_terms(widen(input), widen(target))
    if weight is not None:
        loss = ops.mul(loss, widen(weight))
    return narrow(reduced(loss, reduction_name(reduction, size_average, reduce)), input)


_LOGITS = (tensor(3, 4, low=-4, high=4), tensor(3, 4, low=0, high=1))


@composite(
    names=("nn.functional.binary_cross_entropy_with_logits",),
    samples=calls(
        call(*_LOGITS),
        call(*_LOGITS, tensor(4, low=0, high=1), reduction="sum"),
        call(*_LOGITS, reduction="none", pos_weight=tensor(4, low=0.5, high=2)),
        call(tensor(4, dtype="bfloat16"), tensor(4, dtype="bfloat16", low=0, high=1)),
    ),
    errors=_BAD,
)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Binary cross entropy of sigmoid(input), without overflow."""
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(f"Target size ({list(target.shape)}) must be the same as input size ({list(input.shape)})")
    x, t = widen(input), widen(target)
    tail = ops.neg(ops.log_sigmoid(x))
    if pos_weight is not None:
        tail = ops.mul(tail, ops.add(ops.mul(ops.sub(widen(pos_weight), 1.0), t), 1.0))
    loss = ops.add(ops.mul(ops.sub(1.0, t), x), tail)
    if weight is not None:
        loss = ops.mul(loss, widen(weight))
    return narrow(reduced(loss, reduction_name(reduction, size_average, reduce)), input)


@composite(
    names=("nn.functional.kl_div", "kl_div"),
    samples=calls(
        call(tensor(3, 4), tensor(3, 4, kind="probability")),
        call(tensor(3, 4), tensor(3, 4, kind="probability"), reduction="batchmean"),
        call(tensor(3, 4), tensor(3, 4), reduction="sum", log_target=True),
    ),
    errors=_BAD,
)
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """target * (log(target) - input), for ``input`` in logarithms; ``batchmean`` is the divergence's definition."""
    x, t = widen(input), widen(target)
    if log_target:
        loss = ops.mul(ops.exp(t), ops.sub(t, x))
    else:
        loss = ops.sub(ops.xlogy(t, t), ops.mul(t, x))
    if reduction == "batchmean":
        return narrow(ops.div(ops.sum(loss), input.shape[0]), input)
    return narrow(reduced(loss, reduction_name(reduction, size_average, reduce)), input)


@composite(
    names=("nn.functional.poisson_nll_loss",),
    samples=calls(
        call(tensor(3, 4), tensor(3, 4, low=0, high=3)),
        call(tensor(3, 4, low=0.1, high=3), tensor(3, 4, low=0, high=3), log_input=False, full=True),
    ),
)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Negative log likelihood of a Poisson distribution; ``full`` adds Stirling's term."""
    x, t = widen(input), widen(target)
    if log_input:
        loss = ops.sub(ops.exp(x), ops.mul(t, x))
    else:
        loss = ops.sub(x, ops.mul(t, ops.log(ops.add(x, eps))))
    if full:
        large = ops.gt(t, 1)
        safe = ops.where(large, t, 2.0)
        term = ops.add(ops.sub(ops.mul(safe, ops.log(safe)), safe), ops.mul(ops.log(ops.mul(safe, 2 * math.pi)), 0.5))
        loss = ops.add(loss, ops.where(large, term, 0.0))
    return narrow(reduced(loss, reduction_name(reduction, size_average, reduce)), input)


@composite(
    names=("nn.functional.gaussian_nll_loss",),
    samples=calls(
        call(tensor(3, 4), tensor(3, 4), tensor(3, 4, low=0.5, high=2)),
        call(tensor(3, 4), tensor(3, 4), tensor(3, low=0.5, high=2), True, reduction="sum"),
    ),
)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Half of log(var) + gap ** 2 / var; ``full`` adds the constant."""
    spread: Any = var
    if hasattr(spread, "shape"):
        aligned = ops.unsqueeze(spread, -1) if len(spread.shape) == len(input.shape) - 1 else spread
        spread = ops.maximum(widen(aligned), eps)
    else:
        spread = max(float(spread), eps)
    gap = ops.sub(widen(input), widen(target))
    logarithm = ops.log(spread) if hasattr(spread, "shape") else math.log(spread)
    loss = ops.mul(ops.add(ops.div(ops.mul(gap, gap), spread), logarithm), 0.5)
    if full:
        loss = ops.add(loss, 0.5 * math.log(2 * math.pi))
    return narrow(reduced(loss, reduction_name(reduction)), input)
