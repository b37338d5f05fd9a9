"""Losses over all alignments of two sequences."""

from __future__ import annotations

from typing import Any

from ..arrays import element_type
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor

__all__: list[str] = []

_NEVER = -1e30
"""Stands for the logarithm of 0: differences of it with itself are 0, so that gradients are no NaN."""

_LENGTHS: dict[str, Any] = {"dtype": "int64", "low": 2, "high": 4}
_LABELS: dict[str, Any] = {"dtype": "int64", "low": 1, "high": 5}


def _check(log_probs: Any, targets: Any, reduction: str) -> None:
    if len(log_probs.shape) not in (2, 3):
        raise RuntimeError(f"ctc_loss: log_probs must be (T, N, C) or (T, C), got {list(log_probs.shape)}")
    if len(targets.shape) != len(log_probs.shape) - 1:
        raise RuntimeError(f"ctc_loss: targets must have one row per sequence, got {list(targets.shape)}")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


@composite(
    samples=calls(
        call(tensor(6, 2, 5, low=-3, high=-0.5), tensor(2, 3, **_LABELS), tensor(2, dtype="int64", low=5, high=7),
             tensor(2, **_LENGTHS), 0, "none"),
        call(tensor(7, 2, 5, low=-3, high=-0.5), tensor(2, 3, **_LABELS), tensor(2, dtype="int64", low=6, high=8),
             tensor(2, **_LENGTHS)),
    ),
    errors=[
        error(RuntimeError, "log_probs must be", tensor(6), tensor(3, **_LABELS), tensor(1, **_LENGTHS),
              tensor(1, **_LENGTHS)),
        error(ValueError, "not a valid value", tensor(6, 1, 5), tensor(1, 3, **_LABELS), tensor(1, **_LENGTHS),
              tensor(1, **_LENGTHS), 0, "all"),
    ],
)  # fmt: skip
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of ``targets`` (N, S) over all alignments with ``log_probs`` (T, N, C), in which labels
    may be repeated and separated by blanks. Source: Graves et al. 2006 (the forward variables).
    """
    _check(log_probs, targets, reduction)
    single = len(log_probs.shape) == 2
    scores = widen(log_probs)
    if single:
        scores, targets = ops.unsqueeze(scores, 1), ops.unsqueeze(targets, 0)
        input_lengths, target_lengths = ops.reshape(input_lengths, (1,)), ops.reshape(target_lengths, (1,))
    labels = _with_blanks(targets, blank)
    wide = ops.broadcast_to(ops.unsqueeze(labels, 0), (scores.shape[0], *labels.shape))
    final = _alignments(ops.gather(scores, 2, wide), labels, blank, input_lengths)
    last = ops.unsqueeze(ops.mul(target_lengths, 2), 1)
    ends_blank = ops.squeeze(ops.gather(final, 1, last), 1)
    ends_label = ops.squeeze(ops.gather(final, 1, ops.clamp(ops.sub(last, 1), 0)), 1)
    some = ops.gt(target_lengths, 0)
    loss = ops.neg(ops.logaddexp(ends_blank, ops.where(some, ends_label, _NEVER)))
    loss = ops.where(ops.gt(loss, -_NEVER / 2), 0.0 if zero_infinity else float("inf"), loss)
    if reduction == "mean":
        size = ops.convert_element_type(ops.clamp(target_lengths, 1), element_type(loss))
        loss = ops.mean(ops.div(loss, size))
    elif reduction == "sum":
        loss = ops.sum(loss)
    elif single:
        loss = ops.squeeze(loss, 0)
    return narrow(loss, log_probs)


def _with_blanks(targets: Tensor, blank: int) -> Tensor:
    """(N, S) -> (N, 2 S + 1): a blank before, between and behind the labels."""
    count, length = targets.shape
    pairs = ops.stack([ops.full_like(targets, blank), targets], 2)
    return ops.pad(ops.reshape(pairs, (count, 2 * length)), (0, 0), (0, 1), blank)


def _alignments(scores: Tensor, labels: Tensor, blank: int, input_lengths: Tensor) -> Tensor:
    """Log probabilities of all beginnings, by where in ``labels`` they end, after each sequence's last frame."""
    frames, _, length = scores.shape
    place = ops.iota(length, device=scores.device)
    before = _behind(labels, 2, blank)
    skips = ops.bitwise_and(ops.ne(labels, before), ops.bitwise_and(ops.ne(labels, blank), ops.ge(place, 2)))
    now = ops.where(ops.lt(place, 2), ops.squeeze(ops.slice(scores, 0, 0, 1), 0), _NEVER)
    for frame in range(1, frames):
        ways = ops.logaddexp(now, _behind(now, 1, _NEVER))
        ways = ops.logaddexp(ways, ops.where(skips, _behind(now, 2, _NEVER), _NEVER))
        then = ops.add(ways, ops.squeeze(ops.slice(scores, 0, frame, frame + 1), 0))
        lives = ops.unsqueeze(ops.gt(input_lengths, frame), 1)
        now = ops.where(lives, ops.maximum(then, _NEVER), now)
    return now


def _behind(value: Tensor, by: int, fill: Any) -> Tensor:
    """Rows moved to higher positions, ``fill`` in front."""
    length = value.shape[1]
    if length <= by:
        return ops.full_like(value, fill)
    return ops.pad(ops.slice(value, 1, 0, length - by), (0, by), (0, 0), fill)
