"""Losses over classes: negative log likelihood, cross entropy, and margins between classes or pairs.

The derivative of the likelihood compares class numbers instead of scattering, so that it fuses with softmax's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec

from ..along import along, positions
from ..arrays import element_type
from ..metas import like, statistics_dtype
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .losses import reduced, reduction_name

__all__: list[str] = []

_FIXED = frozenset({"fixed:weight"})
"""No gradient flows to the weights of classes."""


def _labels(*shape: int, classes: int = 4, low: int = 0) -> Any:
    return tensor(*shape, dtype="int64", low=low, high=classes)


def _check_classes(name: str, input: Tensor, target: Tensor, weight: Any) -> int:
    """The dimension of the classes."""
    rank = len(input.shape)
    if rank < 1:
        raise RuntimeError(f"{name}: the input must have at least one dimension")
    dim = 0 if rank == 1 else 1
    expected = (*input.shape[:dim], *input.shape[dim + 1 :])
    if tuple(target.shape) != tuple(expected):
        raise ValueError(
            f"{name}: Expected target size {list(expected)}, got {list(target.shape)} (input {list(input.shape)})"
        )
    if element_type(target).kind != "int":
        raise RuntimeError(f"{name}: expected target of integer class numbers, got {element_type(target)}")
    if weight is not None and tuple(weight.shape) != (input.shape[dim],):
        raise RuntimeError(
            f"{name}: weight tensor should be defined either for all {input.shape[dim]} classes or no classes, "
            f"but got weight tensor of shape {list(weight.shape)}"
        )
    return dim


def _total_meta(
    input: Any, target: Any, weight: Any, reduction: str, ignore_index: int
) -> tuple[TensorSpec, TensorSpec]:
    total = statistics_dtype(input.dtype)
    return _loss_spec(input, target, reduction), TensorSpec((), total, None, input.device)


@composite(
    meta=_total_meta,
    tags=_FIXED,
    samples=calls(
        call(tensor(3, 4), _labels(3), tensor(4, low=0.1, high=2), "mean", 1),
        call(tensor(2, 4, 3), _labels(2, 3), None, "sum", -100),
        call(tensor(2, 4, 3), _labels(2, 3), tensor(4, low=0.1, high=2), "none", 0),
    ),
)
def nll_loss_total(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """(loss, weight of all targets that count) of log probabilities; classes stand in dimension 1 (0 without batch)."""
    dim = 0 if len(input.shape) == 1 else 1
    counted = ops.ne(target, ignore_index)
    safe = ops.where(counted, target, 0)
    picked = ops.squeeze(ops.gather(widen(input), dim, ops.unsqueeze(safe, dim)), dim)
    share = ops.convert_element_type(counted, element_type(picked))
    if weight is not None:
        each = ops.reshape(ops.index_select(widen(weight), 0, ops.reshape(safe, (-1,))), tuple(target.shape))
        share = ops.mul(share, each)
        picked = ops.mul(picked, each)
    total = ops.sum(share)
    loss = ops.where(counted, ops.neg(picked), 0.0)
    if reduction != "none":
        loss = ops.sum(loss)
    if reduction == "mean":
        loss = ops.div(loss, total)
    return narrow(loss, input), total


@nll_loss_total.vjp
def _(ct, out, input_spec, target, weight, reduction, ignore_index):
    dim = 0 if len(input_spec.shape) == 1 else 1
    given = widen(ct[0])
    if reduction == "mean":
        given = ops.div(given, out[1])
    number = positions(input_spec, dim)
    counted = ops.ne(target, ignore_index)
    hit = ops.logical_and(ops.eq(ops.unsqueeze(target, dim), number), ops.unsqueeze(counted, dim))
    if reduction == "none":
        given = ops.unsqueeze(given, dim)
    share = ops.neg(given)
    if weight is not None:
        share = ops.mul(share, along(widen(weight), dim, len(input_spec.shape)))
    return ops.where(hit, share, 0.0), None, None


_NLL = calls(
    call(tensor(3, 4), _labels(3)),
    call(tensor(3, 4), _labels(3), tensor(4, low=0.1, high=2), ignore_index=1),
    call(tensor(2, 4, 3), _labels(2, 3), reduction="none"),
    call(tensor(4), _labels(), reduction="sum"),
)
_BAD = [
    error(ValueError, "target", tensor(3, 4), _labels(2)),
    error(RuntimeError, "all 4 classes", tensor(3, 4), _labels(3), tensor(3)),
    error(ValueError, "reduction", tensor(3, 4), _labels(3), reduction="avg"),
]


def _loss_spec(input: Any, target: Any, reduction: str) -> TensorSpec:
    return TensorSpec(tuple(target.shape) if reduction == "none" else (), input.dtype, None, input.device)


@composite(names=("nn.functional.nll_loss",), samples=_NLL, errors=_BAD, tags=_FIXED)
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-input[target] for log probabilities (N, C, *) and class numbers (N, *), weighted; the mean is by weight."""
    how = reduction_name(reduction, size_average, reduce)
    _check_classes("nll_loss", input, target, weight)
    return nll_loss_total(input, target, weight, how, ignore_index)[0]


def _cross_meta(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> TensorSpec:  # fmt: skip
    how = reduction_name(reduction, size_average, reduce)
    _check_smoothing(label_smoothing)
    if target.dtype.kind == "float" and tuple(target.shape) == tuple(input.shape):
        dim = 0 if len(input.shape) == 1 else 1
        shape = (*input.shape[:dim], *input.shape[dim + 1 :])
        return like(input, None, shape if how == "none" else ())
    _check_classes("cross_entropy", input, target, weight)
    return _loss_spec(input, target, how)


def _check_smoothing(label_smoothing: float) -> None:
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")


@composite(
    meta=_cross_meta,
    names=("nn.functional.cross_entropy",),
    tags=_FIXED,
    samples=calls(
        call(tensor(3, 4), _labels(3)),
        call(tensor(3, 4), _labels(3), tensor(4, low=0.1, high=2), ignore_index=1, label_smoothing=0.2),
        call(tensor(2, 4, 3), _labels(2, 3), reduction="none", label_smoothing=0.1),
        call(tensor(2, 4, 3), _labels(2, 3), reduction="sum"),
        call(tensor(4), _labels()),
        call(tensor(3, 4), tensor(3, 4, kind="probability")),
        call(tensor(3, 4), tensor(3, 4, kind="probability"), tensor(4, low=0.1, high=2), label_smoothing=0.1),
        call(tensor(3, 4, dtype="bfloat16"), _labels(3)),
    ),
    errors=_BAD,
)
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """-log softmax(input)[target] for logits (N, C, *) and class numbers (N, *) or probabilities (N, C, *)."""
    how = reduction_name(reduction, size_average, reduce)
    _check_smoothing(label_smoothing)
    dim = 0 if len(input.shape) == 1 else 1
    if element_type(target).kind == "float" and tuple(target.shape) == tuple(input.shape):
        return _cross_entropy_probabilities(input, target, weight, how, label_smoothing, dim)
    _check_classes("cross_entropy", input, target, weight)
    logs = ops.log_softmax(widen(input), dim)
    loss, total = nll_loss_total(logs, target, weight, how, ignore_index)
    if label_smoothing == 0.0:
        return narrow(loss, input)
    return narrow(_smoothed(loss, total, logs, target, weight, how, ignore_index, label_smoothing, dim), input)


def _smoothed(
    loss: Tensor,
    total: Tensor,
    logs: Tensor,
    target: Tensor,
    weight: Any,
    how: str,
    ignore_index: int,
    eps: float,
    dim: int,
) -> Tensor:
    spread = logs if weight is None else ops.mul(logs, along(widen(weight), dim, len(logs.shape)))
    even = ops.where(ops.ne(target, ignore_index), ops.neg(ops.sum(spread, (dim,))), 0.0)
    if how != "none":
        even = ops.sum(even)
    if how == "mean":
        even = ops.div(even, total)
    return ops.add(ops.mul(loss, 1.0 - eps), ops.mul(even, eps / logs.shape[dim]))


def _cross_entropy_probabilities(
    input: Tensor, target: Tensor, weight: Any, how: str, smoothing: float, dim: int
) -> Tensor:
    logs = ops.log_softmax(widen(input), dim)
    wanted = widen(target)
    if smoothing:
        wanted = ops.add(ops.mul(wanted, 1.0 - smoothing), smoothing / input.shape[dim])
    product = ops.mul(logs, wanted)
    if weight is not None:
        product = ops.mul(product, along(widen(weight), dim, len(input.shape)))
    return narrow(reduced(ops.neg(ops.sum(product, (dim,))), how), input)


# -- margins ----------------------------------------------------------------------------------------

_SIGNS = tensor(3, dtype="float32", low=0.5, high=1)


@composite(
    names=("nn.functional.soft_margin_loss",), samples=calls(call(tensor(3, 4), tensor(3, 4)), call(tensor(3), _SIGNS))
)
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target * input)) for targets of -1 and 1."""
    loss = ops.neg(ops.log_sigmoid(ops.mul(widen(target), widen(input))))
    return narrow(reduced(loss, reduction_name(reduction, size_average, reduce)), input)


@composite(
    names=("nn.functional.margin_ranking_loss", "margin_ranking_loss"),
    samples=calls(call(tensor(3), tensor(3), _SIGNS, 0.5), call(tensor(3), tensor(3), _SIGNS, reduction="none")),
)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, -target * (input1 - input2) + margin)."""
    gap = ops.mul(ops.neg(target), ops.sub(input1, input2))
    return reduced(ops.relu(ops.add(gap, margin)), reduction_name(reduction, size_average, reduce))


@composite(
    names=("nn.functional.hinge_embedding_loss", "hinge_embedding_loss"),
    samples=calls(call(tensor(5), tensor(5, dtype="int64", low=1, high=2)), call(tensor(3), _SIGNS)),
)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """input where target is 1, max(0, margin - input) where it is -1."""
    apart = ops.where(ops.ne(target, 1), ops.relu(ops.sub(margin, input)), 0.0)
    near = ops.where(ops.ne(target, -1), input, 0.0)
    return reduced(ops.add(apart, near), reduction_name(reduction, size_average, reduce))


@composite(
    names=("nn.functional.multi_margin_loss",),
    samples=calls(call(tensor(3, 4), _labels(3)), call(tensor(3, 4), _labels(3), 2, 0.5, tensor(4, low=0.1))),
)
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean over the other classes of max(0, margin - x[target] + x[i]) ** p."""
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: only p == 1 and p == 2 supported, got {p}")
    classes = input.shape[-1]
    index = ops.unsqueeze(target, -1)
    gap = ops.relu(ops.add(ops.sub(input, ops.gather(input, -1, index)), margin))
    if p == 2:
        gap = ops.mul(gap, gap)
    if weight is not None:
        gap = ops.mul(gap, ops.unsqueeze(ops.index_select(weight, 0, ops.reshape(target, (-1,))), -1))
    others = ops.ne(ops.arange(classes, device=input.device), index)
    loss = ops.div(ops.sum(ops.where(others, gap, 0.0), (-1,)), classes)
    return reduced(loss, reduction_name(reduction, size_average, reduce))


@composite(
    names=("nn.functional.multilabel_soft_margin_loss",),
    samples=calls(
        call(tensor(3, 4), tensor(3, 4, low=0, high=1)), call(tensor(3, 4), tensor(3, 4, low=0, high=1), tensor(4))
    ),
)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean over classes of the binary cross entropy with logits."""
    x, t = widen(input), widen(target)
    loss = ops.neg(ops.add(ops.mul(t, ops.log_sigmoid(x)), ops.mul(ops.sub(1.0, t), ops.log_sigmoid(ops.neg(x)))))
    if weight is not None:
        loss = ops.mul(loss, widen(weight))
    return narrow(reduced(ops.mean(loss, (-1,)), reduction_name(reduction, size_average, reduce)), input)


@composite(
    names=("nn.functional.multilabel_margin_loss",),
    samples=calls(
        call(tensor(3, 4), np.array([[3, 0, -1, 1], [1, -1, 0, 0], [0, 1, 2, 3]])),
        call(tensor(4), np.array([2, -1, 3, 0]), reduction="sum"),
    ),
)
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """Mean over classes of max(0, 1 - (x[label] - x[other])); labels stand before the first -1 of ``target``."""
    classes = input.shape[-1]
    ended = ops.cumsum(ops.lt(target, 0), -1)
    listed = ops.eq(ended, 0)
    safe = ops.where(listed, target, 0)
    number = ops.arange(classes, device=input.device)
    member = ops.any(ops.logical_and(ops.eq(ops.unsqueeze(safe, -1), number), ops.unsqueeze(listed, -1)), -2)
    gap = ops.sub(ops.unsqueeze(ops.gather(input, -1, safe), -1), ops.unsqueeze(input, -2))
    counted = ops.logical_and(ops.unsqueeze(listed, -1), ops.logical_not(ops.unsqueeze(member, -2)))
    loss = ops.div(ops.sum(ops.where(counted, ops.relu(ops.sub(1.0, gap)), 0.0), (-2, -1)), classes)
    return reduced(loss, reduction_name(reduction, size_average, reduce))
