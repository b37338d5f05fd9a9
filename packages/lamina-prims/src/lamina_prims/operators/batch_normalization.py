"""Normalisation by channel: batch, group, instance and local response norm, and ``normalize``."""

from __future__ import annotations

from typing import Any

from lamina_fx import TensorSpec

from ..metas import like, statistics_dtype
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .normalization import element_count, normalised, statistics_gradient
from .windows import padded

__all__: list[str] = []


def _channel(value: Tensor, rank: int) -> Tensor:
    return ops.reshape(value, (1, value.shape[0], *(1,) * (rank - 2)))


def _batch_meta(
    input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    small = like(input, statistics_dtype(input.dtype), (input.shape[1],))
    return normalised(input), small, small


@composite(meta=_batch_meta, samples=calls(call(tensor(3, 2, 4), tensor(2), tensor(2)), call(tensor(4, 3))))
def batch_norm_statistics(
    input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """(input normalised over all dimensions but 1, mean, reciprocal standard deviation), the latter of shape (C,)."""
    rank = len(input.shape)
    dims = (0, *range(2, rank))
    x = widen(input)
    mean = ops.mean(x, dims)
    centred = ops.sub(x, _channel(mean, rank))
    rstd = ops.rsqrt(ops.add(ops.mean(ops.mul(centred, centred), dims), eps))
    value = ops.mul(centred, _channel(rstd, rank))
    if weight is not None:
        value = ops.mul(value, _channel(widen(weight), rank))
    if bias is not None:
        value = ops.add(value, _channel(widen(bias), rank))
    return narrow(value, input), mean, rstd


@batch_norm_statistics.vjp
def _(ct, out, input, weight, bias, needs):
    rank = len(input.shape)
    dims = (0, *range(2, rank))
    x, given = widen(input), widen(ct[0])
    rstd = _channel(out[2], rank)
    hat = ops.mul(ops.sub(x, _channel(out[1], rank)), rstd)
    total = ops.sum(given, dims)
    weighted = ops.sum(ops.mul(given, hat), dims)
    gx = None
    if needs[0]:
        count = element_count([input.shape[d] for d in dims])
        away = ops.add(_channel(total, rank), ops.mul(hat, _channel(weighted, rank)))
        scale = rstd if weight is None else ops.mul(rstd, _channel(widen(weight), rank))
        gx = ops.mul(ops.sub(given, ops.div(away, count)), scale)
        if ct[1] is not None or ct[2] is not None:
            parts = (None, *(None if c is None else _channel(c, rank) for c in ct[1:]))
            gx = ops.add(gx, statistics_gradient(parts, hat, rstd, dims, count))
    return gx, weighted if weight is not None else None, total if bias is not None else None


_BATCH = calls(
    call(tensor(3, 2, 4), tensor(2), tensor(2, low=0.5, high=2), tensor(2), tensor(2), False),
    call(tensor(3, 2), tensor(2), tensor(2, low=0.5, high=2), training=True),
    call(tensor(3, 2, 2, 2), None, None, tensor(2), tensor(2), True),
    call(tensor(3, 2, 4, dtype="bfloat16"), tensor(2), tensor(2, low=0.5, high=2), training=True),
)


def _check_batch(input: Any, running_mean: Any, running_var: Any, training: bool) -> None:
    rank = len(input.shape)
    if rank < 2:
        raise RuntimeError(f"batch_norm: the input must have at least 2 dimensions, got {rank}")
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("batch_norm: Expected running_mean and running_var to be defined when training=False")
        return
    count = element_count([s for d, s in enumerate(input.shape) if d != 1])
    if type(count) is int and count <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")


def _update_meta(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:  # fmt: skip
    _check_batch(input, running_mean, running_var, training)
    for other in (running_mean, running_var, weight, bias):
        if other is not None and tuple(other.shape) != (input.shape[1],):
            raise RuntimeError(
                f"batch_norm: expected {input.shape[1]} elements for each parameter, got {list(other.shape)}"
            )
    value = normalised(input)
    if running_mean is not None and running_var is not None:
        return value, running_mean, running_var
    small = like(input, statistics_dtype(input.dtype), (input.shape[1],))
    return value, small, small


@composite(meta=_update_meta, samples=_BATCH, errors=[error(RuntimeError, "running_mean", tensor(2, 3), None, None)])
def batch_norm_update(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """(batch norm, new running mean, new running variance): functional; a front end writes the new ones back.

    Without running statistics the new ones are the batch's own.
    """
    _check_batch(input, running_mean, running_var, training)
    rank = len(input.shape)
    if not training:
        assert running_var is not None and running_mean is not None
        scale = ops.rsqrt(ops.add(widen(running_var), eps))
        value = ops.mul(ops.sub(widen(input), _channel(widen(running_mean), rank)), _channel(scale, rank))
        if weight is not None:
            value = ops.mul(value, _channel(widen(weight), rank))
        if bias is not None:
            value = ops.add(value, _channel(widen(bias), rank))
        return narrow(value, input), running_mean, running_var
    count = element_count([s for d, s in enumerate(input.shape) if d != 1])
    value, mean, rstd = batch_norm_statistics(input, weight, bias, eps)
    variance = ops.sub(ops.reciprocal(ops.mul(rstd, rstd)), eps)
    unbiased = ops.mul(variance, count / (count - 1))
    if running_mean is None or running_var is None:
        return value, mean, unbiased
    new_mean = ops.add(ops.mul(widen(running_mean), 1.0 - momentum), ops.mul(mean, momentum))
    new_var = ops.add(ops.mul(widen(running_var), 1.0 - momentum), ops.mul(unbiased, momentum))
    return value, narrow(new_mean, running_mean), narrow(new_var, running_var)


@composite(
    meta=lambda *args, **kwargs: _update_meta(*args, **kwargs)[0], names=("nn.functional.batch_norm",), samples=_BATCH
)
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
    """Normalise each channel (dimension 1) by the batch's statistics or the running ones. Source: Ioffe, Szegedy 2015.

    Running statistics are not changed here: see ``batch_norm_update``.
    """
    return batch_norm_update(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


# -- group and instance norm ------------------------------------------------------------------------


def _group_meta(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> TensorSpec:
    _check_groups(input, num_groups)
    result = normalised(input)
    return TensorSpec(result.shape, result.dtype, None, result.device)


def _check_groups(input: Any, num_groups: int) -> None:
    if input.shape[1] % num_groups != 0:
        raise RuntimeError(
            f"group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )


@composite(
    meta=_group_meta,
    names=("nn.functional.group_norm", "group_norm"),
    samples=calls(
        call(tensor(2, 4, 3), 2, tensor(4), tensor(4)),
        call(tensor(2, 6), 3),
        call(tensor(2, 4, 2, 2, dtype="bfloat16"), 1, tensor(4, dtype="bfloat16")),
    ),
    errors=[error(RuntimeError, "divisible", tensor(2, 5), 2)],
)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise each of ``num_groups`` groups of channels of each sample. Source: Wu and He 2018."""
    n, c = input.shape[:2]
    _check_groups(input, num_groups)
    rest = element_count(input.shape[2:])
    grouped = ops.reshape(ops.contiguous(widen(input)), (n, num_groups, (c // num_groups) * rest))
    value = ops.native_layer_norm(grouped, (grouped.shape[2],), None, None, eps)[0]
    value = ops.reshape(value, tuple(input.shape))
    rank = len(input.shape)
    if weight is not None:
        value = ops.mul(value, _channel(widen(weight), rank))
    if bias is not None:
        value = ops.add(value, _channel(widen(bias), rank))
    return narrow(value, input)


@composite(
    names=("nn.functional.instance_norm",),
    samples=calls(
        call(tensor(2, 3, 5), None, None, tensor(3), tensor(3)),
        call(tensor(2, 3, 4), tensor(3), tensor(3, low=0.5, high=2), use_input_stats=False),
    ),
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample. Source: Ulyanov et al. 2016."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    return group_norm(input, input.shape[1], weight, bias, eps)


@composite(
    names=("nn.functional.local_response_norm",),
    samples=calls(call(tensor(2, 5, 3), 3), call(tensor(1, 4, 2, 2), 2, 0.1, 0.5, 2.0)),
)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of squares over ``size`` neighbouring channels) ** beta. Source: Krizhevsky et al. 2012."""
    rank = len(input.shape)
    squares = ops.mul(input, input)
    widths = [0, 0] * (rank - 2) + [size // 2, (size - 1) // 2]
    windows = ops.sliding_window(padded(squares, tuple(widths)), (1,), (size,), (1,), (1,))
    mean = ops.mul(ops.sum(windows, (rank,)), 1.0 / size)
    return ops.div(input, ops.pow(ops.add(ops.mul(mean, alpha), k), beta))


@composite(
    names=("nn.functional.normalize",),
    samples=calls(call(tensor(2, 3)), call(tensor(2, 3), 1.0, 0), call(tensor(2, 3, dtype="bfloat16"), dim=-1)),
)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x / max(norm of x along ``dim``, eps)."""
    x = widen(input)
    size = ops.vector_norm(x, p, dim, True)
    return narrow(ops.div(x, ops.maximum(size, eps)), input)
