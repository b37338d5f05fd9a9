"""Functions of NumPy's arrays under ``lamina.compile``: the same results, of the same types, from compiled code."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina
from lamina_dynamo import CaptureWarning
from lamina_inductor import toolchain

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((6, 4)).astype(np.float32)
W = RANDOM.standard_normal((4, 4)).astype(np.float32)
D = RANDOM.standard_normal((6, 4))
I = RANDOM.integers(-5, 5, (6, 4))  # noqa: E741  (integers)


def _normed(x: Any, w: Any) -> Any:
    y = x @ w
    y = y - y.mean(axis=1, keepdims=True)
    return np.tanh(y) / (np.sqrt((y * y).sum(axis=-1, keepdims=True)) + 1e-5)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "normed": (_normed, (X, W)),
    "mixed dtypes": (lambda x, i: x * i + 1, (X, I)),
    "double and single": (lambda x, d: x + d * 2, (X, D)),
    "integers": (lambda i: (i.sum(axis=0), i.mean(), np.sqrt(abs(i)), i / 3, i < 2), (I,)),
    "small integers": (lambda b: (b + b, b.sum(), b.max(axis=1)), (I.astype(np.int8),)),
    "bools": (lambda x: ((x > 0).sum(), (x > 0).any(axis=0), (x > 9).all()), (X,)),
    "reductions": (lambda x: (x.max(), x.argmax(axis=1), x.std(), np.var(x, axis=0, ddof=1), np.prod(x, axis=1)), (X,)),
    "shapes": (lambda x: (x.T, x.reshape(-1), x[1:, None, 0], x[..., ::2], np.expand_dims(x, 0).squeeze()), (X,)),
    "joins": (lambda x, d: (np.concatenate([x, d]), np.stack([x, x], axis=1), np.where(x > 0, x, 0)), (X, D)),
    "scalars": (lambda x: x.sum() * 2, (X,)),
    "numbers first": (lambda x, i: (1 - x, 2 / (x + 9), 2.5**x, 3 - i, i * 0.1), (X, I)),
    "masks": (lambda x, i: ((x > 0) & (x < 1), ~(x > 0) | (i == 2), i & 3), (X, I)),
    "strong scalars": (lambda x, s: x * s, (X, np.float64(0.1))),
    "clip and scan": (lambda x: (np.clip(x, -0.5, 0.5), x.cumsum(axis=0), x.cumsum(), x.astype(np.float64)), (X,)),
    "not contiguous": (lambda x: np.exp(x) + 1, (X.T[::2],)),
    "special values": (
        lambda x: (np.maximum(x, 0), x.max(axis=0), x.argmax()),
        (np.array([[1, np.nan], [-np.inf, 2]]),),
    ),
}


def _same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            _same(one, other)
        return
    assert type(got) is type(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=2e-6 if got.dtype == np.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("backend", ["cpp", "reference"])
def test_results_are_numpys(name: str, backend: str) -> None:
    if backend == "cpp" and toolchain() is None:
        pytest.skip("this machine has no C++ compiler")
    function, arguments = FUNCTIONS[name]
    before = lamina.compiler.summary()
    compiled = lamina.compile(function, backend=backend, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _same(compiled(*arguments), function(*arguments))
        _same(compiled(*arguments), function(*arguments))
    after = lamina.compiler.summary()
    assert (after.graphs - before.graphs, after.breaks - before.breaks) == (1, 0)


def test_sizes_that_change_become_symbolic() -> None:
    def scaled(x: Any) -> Any:
        return np.tanh(x) * 2 + x

    compiled = lamina.compile(scaled, backend="reference")
    before = lamina.compiler.summary().graphs
    for n in (6, 5, 4, 3):
        _same(compiled(X[:n]), scaled(X[:n]))
    assert lamina.compiler.summary().graphs - before == 2


def test_sizes_stay_symbolic_in_reductions_and_products() -> None:
    def mixed(x: Any, w: Any) -> Any:
        return (_normed(x, w), x.sum(), x.max(axis=(0, 1)), x.T.mean(axis=-1), x.argmax(axis=0))

    compiled = lamina.compile(mixed, backend="reference")
    before = lamina.compiler.summary().graphs
    for n in (6, 5, 4, 3):
        _same(compiled(X[:n], W), mixed(X[:n], W))
    assert lamina.compiler.summary().graphs - before == 2


def test_what_has_no_compiled_form_runs_in_numpy_and_says_so_once() -> None:
    def sorted_sum(x: Any) -> Any:
        return np.sort(x, axis=0) * 2

    compiled = lamina.compile(sorted_sum, backend="reference")
    with pytest.warns(CaptureWarning, match=r"sorted_sum.*uncompiled: numpy\.sort: it has no compiled form \(.*:\d+\)"):
        _same(compiled(X), sorted_sum(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _same(compiled(X), sorted_sum(X))


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "complex": (lambda x: abs(x * 1j).sum(), (X,)),
    "order": (lambda x: x.ravel("F") + 1, (X,)),
    "two numbers": (lambda x: np.where(x > 0, 0.1, 0.2), (X,)),
    "signed and unsigned": (lambda i, u: i.astype(np.int64) < u, (I, np.abs(I).astype(np.uint64))),
    "whole powers": (lambda i: i**2, (I,)),
    "a list of arrays": (lambda x: np.sum([x, x]), (X,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_differ_is_left_to_numpy(name: str) -> None:
    function, arguments = REFUSED[name]
    with pytest.warns(CaptureWarning, match="run one by one, uncompiled"):
        _same(lamina.compile(function, backend="reference")(*arguments), function(*arguments))


def test_writes_reach_the_array() -> None:
    def scaled(x: Any) -> Any:
        x *= 2
        return x + 1

    mine, theirs = X.copy(), X.copy()
    with pytest.warns(CaptureWarning, match="writes into an array"):
        _same(lamina.compile(scaled, backend="reference")(mine), scaled(theirs))
    _same(mine, theirs)


def test_results_do_not_share_an_arguments_memory_by_accident() -> None:
    compiled = lamina.compile(lambda x: x + 0, backend="reference")
    result = compiled(X)
    assert not np.shares_memory(result, X)


def test_functions_that_use_tensors_stay_with_tensors() -> None:
    def through(x: Any) -> Any:
        return lamina.from_numpy(x) * 2

    assert isinstance(lamina.compile(through, backend="reference")(X), lamina.Tensor)
