"""Composites against formulas written out in NumPy: what the decompositions must come to.

The generic tests compare an operator with its own body; here the other side is independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from lamina_prims import operator

RNG = np.random.default_rng(7)


def _x(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


_erf = np.vectorize(math.erf)
X, Y, POSITIVE = _x(3, 4), _x(3, 4), np.abs(_x(3, 4)) + 0.1

ACTIVATIONS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "relu": ({}, lambda x: np.maximum(x, 0)),
    "relu6": ({}, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": ({"negative_slope": 0.2}, lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": ({"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    "celu": ({"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7))),
    "selu": ({}, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "gelu": ({}, lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
    "silu": ({}, lambda x: x * _sigmoid(x)),
    "mish": ({}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "softplus": ({"beta": 2.0}, lambda x: np.log1p(np.exp(2 * x)) / 2),
    "log_sigmoid": ({}, lambda x: np.log(_sigmoid(x))),
    "softsign": ({}, lambda x: x / (1 + np.abs(x))),
    "tanhshrink": ({}, lambda x: x - np.tanh(x)),
    "hardshrink": ({"lambd": 0.6}, lambda x: np.where(np.abs(x) > 0.6, x, 0)),
    "softshrink": ({"lambd": 0.6}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.6, 0)),
    "hardsigmoid": ({}, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": ({}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "glu": ({}, lambda x: x[:, :2] * _sigmoid(x[:, 2:])),
}


@pytest.mark.parametrize("id", ACTIVATIONS)
def test_activation(id: str) -> None:
    kwargs, formula = ACTIVATIONS[id]
    x = 3 * X
    np.testing.assert_allclose(operator(id)(x, **kwargs), formula(x), rtol=1e-12, atol=1e-13)


def test_tanh_gelu() -> None:
    expected = 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(operator("gelu")(X, approximate="tanh"), expected, rtol=1e-12)


P, T01 = _sigmoid(X), _sigmoid(Y)
LOSSES: dict[str, tuple[tuple[Any, ...], dict[str, Any], Any]] = {
    "mse_loss": ((X, Y), {}, ((X - Y) ** 2).mean()),
    "l1_loss": ((X, Y), {"reduction": "sum"}, np.abs(X - Y).sum()),
    "smooth_l1_loss": (
        (X, Y), {"beta": 0.5, "reduction": "none"},
        np.where(np.abs(X - Y) < 0.5, (X - Y) ** 2, np.abs(X - Y) - 0.25),
    ),
    "huber_loss": (
        (X, Y), {"delta": 0.5, "reduction": "none"},
        np.where(np.abs(X - Y) < 0.5, (X - Y) ** 2 / 2, 0.5 * (np.abs(X - Y) - 0.25)),
    ),
    "binary_cross_entropy": ((P, T01), {}, -(T01 * np.log(P) + (1 - T01) * np.log(1 - P)).mean()),
    "binary_cross_entropy_with_logits": (
        (X, T01), {"pos_weight": np.float64(2.0).reshape(1)},
        -(2 * T01 * np.log(P) + (1 - T01) * np.log(1 - P)).mean(),
    ),
    "kl_div": ((np.log(P), T01), {"reduction": "batchmean"}, (T01 * (np.log(T01) - np.log(P))).sum() / 3),
    "soft_margin_loss": ((X, np.sign(Y)), {}, np.log1p(np.exp(-np.sign(Y) * X)).mean()),
    "poisson_nll_loss": ((X, POSITIVE), {}, (np.exp(X) - POSITIVE * X).mean()),
    "gaussian_nll_loss": ((X, Y, POSITIVE), {}, (0.5 * (np.log(POSITIVE) + (X - Y) ** 2 / POSITIVE)).mean()),
}  # fmt: skip


@pytest.mark.parametrize("id", LOSSES)
def test_loss(id: str) -> None:
    args, kwargs, expected = LOSSES[id]
    np.testing.assert_allclose(operator(id)(*args, **kwargs), expected, rtol=1e-12)


def test_cross_entropy_with_weights_smoothing_and_ignored_targets() -> None:
    target = np.array([2, 0, 3])
    weight = np.array([0.5, 1.0, 2.0, 0.25])
    logs = np.log(_softmax(X))
    rows = [0, 2]  # target 0 is ignored
    plain = sum(-weight[target[i]] * logs[i, target[i]] for i in rows)
    smooth = sum(-(logs[i] * weight).sum() for i in rows)
    total = sum(weight[target[i]] for i in rows)
    loss = operator("cross_entropy")(X, target, weight, ignore_index=0, label_smoothing=0.3)
    np.testing.assert_allclose(loss, (0.7 * plain + 0.3 / 4 * smooth) / total, rtol=1e-12)


def test_cross_entropy_of_probabilities() -> None:
    target = _softmax(Y)
    expected = -(target * np.log(_softmax(X))).sum() / 3
    np.testing.assert_allclose(operator("cross_entropy")(X, target), expected, rtol=1e-12)


def test_layer_and_rms_norm() -> None:
    x, w, b = _x(2, 3, 5), _x(5), _x(5)
    centred = x - x.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(operator("layer_norm")(x, (5,), w, b), expected, rtol=1e-11)
    scaled = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * w
    np.testing.assert_allclose(operator("rms_norm")(x, (5,), w, 1e-3), scaled, rtol=1e-11)


def test_layer_norm_of_far_values_keeps_its_digits() -> None:
    x = (1e4 + _x(2, 64)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(operator("layer_norm")(x, (64,)), expected, atol=2e-3)


def test_batch_norm_updates_running_statistics_with_the_unbiased_variance() -> None:
    x, mean, var = _x(4, 2, 3), _x(2), np.abs(_x(2))
    value, new_mean, new_var = operator("batch_norm_update")(x, mean, var, training=True, momentum=0.2)
    m, v = x.mean((0, 2)), x.var((0, 2))
    np.testing.assert_allclose(value, (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(new_mean, 0.8 * mean + 0.2 * m, rtol=1e-12)
    np.testing.assert_allclose(new_var, 0.8 * var + 0.2 * x.var((0, 2), ddof=1), rtol=1e-10)


def _naive_conv(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    n, out, per = x.shape[0], w.shape[0], w.shape[1]
    sizes = [
        (h - d * (k - 1) - 1) // s + 1 for h, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)
    ]
    y = np.zeros((n, out, *sizes))
    for b, o in product(range(n), range(out)):
        first = o // (out // groups) * per
        for place in product(*map(range, sizes)):
            for c in range(per):
                for k in product(*map(range, w.shape[2:])):
                    at = tuple(p * s + i * d for p, s, i, d in zip(place, stride, k, dilation, strict=True))
                    y[(b, o, *place)] += x[(b, first + c, *at)] * w[(o, c, *k)]
    return y


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "dilation", "groups"),
    [
        ((2, 3, 7), (4, 3, 3), (2,), (1,), (1,), 1),
        ((1, 4, 5, 6), (6, 2, 2, 3), (1, 2), (1, 0), (2, 1), 2),
        ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (1, 1, 1), (0, 1, 0), (1, 1, 1), 1),
        ((2, 4, 6), (4, 1, 3), (1,), (2,), (2,), 4),
    ],
)
def test_convolution_and_its_adjoint(
    shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    conv = operator("convolution")
    x, w = _x(*shape), _x(*kernel)
    none = (0,) * len(stride)
    y = conv(x, w, None, stride, padding, dilation, False, none, groups)
    np.testing.assert_allclose(y, _naive_conv(x, w, stride, padding, dilation, groups), rtol=1e-10, atol=1e-12)
    # <conv(x), z> = <x, transposed conv(z)> defines the transposed form
    z = _x(*y.shape)
    back = conv(z, w, None, stride, padding, dilation, True, none, groups)
    grown = np.zeros(x.shape)
    grown[tuple(slice(0, n) for n in back.shape)] = back
    np.testing.assert_allclose((y * z).sum(), (x * grown).sum(), rtol=1e-9)


def test_pooling() -> None:
    x = _x(1, 2, 5, 6)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(operator("max_pool2d")(x, (3, 2), 2, 1), windows.max((-1, -2)))
    values, places = operator("max_pool2d_with_indices")(x, (3, 2), 2, 1)
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(2, 30), places.reshape(2, -1), 1), values.reshape(2, -1))
    finite = np.where(np.isinf(windows), np.nan, windows)
    np.testing.assert_allclose(
        operator("avg_pool2d")(x, (3, 2), 2, 1, count_include_pad=False), np.nanmean(finite, (-1, -2)), rtol=1e-12
    )
    bins = [(i * 6 // 4, -(-(i + 1) * 6 // 4)) for i in range(4)]
    expected = np.stack([x[0, :, 0, a:b].mean(-1) for a, b in bins], -1)
    np.testing.assert_allclose(operator("adaptive_avg_pool1d")(x[0, :, 0], 4), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["none", "causal", "bool", "added"])
def test_attention(kind: str) -> None:
    q, k, v = _x(2, 3, 4), _x(2, 5, 4), _x(2, 5, 6)
    allowed = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 0, 1]], bool)
    added = _x(3, 5)
    scores = q @ k.swapaxes(-1, -2) / 2.0
    if kind == "causal":
        scores = np.where(np.tri(3, 5, dtype=bool), scores, -np.inf)
    elif kind == "bool":
        scores = np.where(allowed, scores, -np.inf)
    elif kind == "added":
        scores = scores + added
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(_softmax(scores))  # a row without keys is 0
    mask = {"bool": allowed, "added": added}.get(kind)
    got = operator("scaled_dot_product_attention")(q, k, v, mask, is_causal=kind == "causal")
    np.testing.assert_allclose(got, weights @ v, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "bij,bjk->bik", "ij->ji", "i,j->ij", "ij,ij->", "ijk,kl,lm->im", "...ij,...jk->...ik"]
)
def test_einsum(equation: str) -> None:
    sizes = dict(zip("bijklm", (2, 3, 4, 5, 6, 7), strict=True))
    operands = [
        _x(*(2,) * ("..." in part), *(sizes[c] for c in part.replace("...", "")))
        for part in equation.split("->")[0].split(",")
    ]
    np.testing.assert_allclose(operator("einsum")(equation, operands), np.einsum(equation, *operands), rtol=1e-11)


def test_embedding_bag_with_offsets() -> None:
    table, ids, offsets = _x(5, 3), np.array([1, 4, 0, 2, 2]), np.array([0, 2, 2])
    bags = [ids[0:2], ids[2:2], ids[2:5]]
    expected = np.stack([table[b].mean(0) if len(b) else np.zeros(3) for b in bags])
    np.testing.assert_allclose(operator("embedding_bag")(ids, table, offsets), expected, rtol=1e-12)


def test_searching() -> None:
    x = np.array([3, 1, 2, 3, 1, 3])
    value, place = operator("mode")(x)
    assert (value, place) == (3, 5)
    values, places = operator("topk")(x, 2)
    assert values.tolist() == [3, 3] and x[places].tolist() == [3, 3]
    assert operator("kthvalue")(x, 3)[0] == 2
    assert operator("unique")(x).tolist() == [1, 2, 3]
    np.testing.assert_allclose(operator("quantile")(X, 0.3), np.quantile(X, 0.3))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_fourier(norm: str | None) -> None:
    np.testing.assert_allclose(operator("fft")(X, norm=norm), np.fft.fft(X, norm=norm), rtol=1e-10)
    np.testing.assert_allclose(operator("irfft")(X + 1j * Y, 5, norm=norm), np.fft.irfft(X + 1j * Y, 5, norm=norm))
    np.testing.assert_allclose(operator("rfftn")(X, (4, 3), norm=norm), np.fft.rfftn(X, (4, 3), norm=norm), atol=1e-12)
    np.testing.assert_allclose(operator("hfft")(X + 1j * Y, norm=norm), np.fft.hfft(X + 1j * Y, norm=norm), atol=1e-12)


def test_linear_algebra() -> None:
    a = _x(2, 3, 3) + 4 * np.eye(3)
    b = _x(2, 3, 2)
    np.testing.assert_allclose(a @ operator("linalg_solve")(a, b), b, atol=1e-12)
    np.testing.assert_allclose(operator("linalg_solve")(a, b.swapaxes(-1, -2), left=False) @ a, b.swapaxes(-1, -2))
    np.testing.assert_allclose(operator("matrix_power")(a, -3), np.linalg.matrix_power(a, -3), rtol=1e-9)
    np.testing.assert_allclose(operator("pinv")(b), np.linalg.pinv(b), atol=1e-12)
    np.testing.assert_allclose(operator("lstsq")(b[0], b[1])[0], np.linalg.lstsq(b[0], b[1])[0], atol=1e-12)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        np.testing.assert_allclose(operator("matrix_norm")(a[0], order), np.linalg.norm(a[0], order), rtol=1e-10)
    skew = np.array([[0.0, -0.5], [0.5, 0.0]])
    turn = [[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]]
    np.testing.assert_allclose(operator("matrix_exp")(skew), turn, rtol=1e-12)


def test_singular_matrix_says_so() -> None:
    with pytest.raises(RuntimeError, match="inv: Singular matrix"):
        operator("inv")(np.zeros((2, 2)))
