"""Calls of Python's library in a compiled function: folded, computed by the host, or run where they stand, once."""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from captures import assert_captured, leaf

import lamina
import lamina.nn as nn

LOG = logging.getLogger("lamina.tests.capture")


def limits(x):
    info = lamina.finfo(x.dtype)
    small = x.masked_fill(x > 0.5, info.min).softmax(-1)
    return small + info.eps + lamina.iinfo(lamina.int8).max + lamina.finfo().tiny, info.bits


def limits_of_numpy(x):
    return x * float(np.finfo(np.float32).eps), int(np.iinfo("int16").max)


def every_function(x):
    n, m = x.shape
    whole = math.ceil(n / 2) + math.floor(m / 2) + math.gcd(n, m) + math.isqrt(n) + math.comb(n, 2) + math.trunc(n)
    real = math.sqrt(n) + math.log(n, 2) + math.hypot(n, m) + math.copysign(1, -n) + math.erf(m) + math.log1p(n)
    return x * math.prod(x.shape) + math.fsum([n, m, 0.5]) + math.dist([n], [m]) + real + whole


@pytest.mark.parametrize("function", [limits, limits_of_numpy, every_function])
def test_folded(function: Callable[..., Any]) -> None:
    assert_captured(function, lambda: leaf(4, 6), graphs=1, fullgraph=True)


def test_functions_of_sizes_that_change() -> None:
    def f(x: Any) -> Any:
        n, m = x.shape
        half = math.ceil(m / 2) - math.floor(m / 3)
        return x.reshape(math.prod(x.shape)) / math.sqrt(m) + math.log(n * m), lamina.zeros(half)

    compiled = lamina.compile(f, fullgraph=True)
    for m in (6, 7, 8, 9, 10):
        x = lamina.arange(4 * m).float().reshape(4, m)
        (want, zeros), (have, made) = f(x), compiled(x)
        np.testing.assert_allclose(want.numpy(), have.numpy(), rtol=1e-5)
        assert zeros.shape == made.shape
    assert lamina.compiler.summary().graphs == 2


# -- warnings and logging: as often, from the same lines, and in the same order ---------------------------------


def warns(x):
    y = x * 2
    warnings.warn("careful", stacklevel=1)
    return y + 1


def warns_of_its_caller(x):
    y = x * 2
    warnings.warn(f"shape {tuple(x.shape)}", UserWarning, stacklevel=2)
    return y + 1


def told(function: Callable[..., Any], action: str) -> list[tuple[str, str, int]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        for _ in range(3):
            function(lamina.ones(3))
    return [(str(w.message), w.filename, w.lineno) for w in caught]


@pytest.mark.parametrize("function", [warns, warns_of_its_caller])
def test_warnings(function: Callable[..., Any]) -> None:
    compiled = lamina.compile(function)
    assert len(told(function, "always")) == 3
    assert told(compiled, "always") == told(function, "always")
    lamina.compiler.reset()
    assert len(told(compiled, "default")) == 1
    assert lamina.compiler.summary().breaks == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"careful|shape \(3,\)"):
            compiled(lamina.ones(3))


def logs(x):
    LOG.info("before %s", tuple(x.shape))
    y = x * 2
    LOG.debug("hidden")
    LOG.warning("after")
    return y + 1


def test_logging() -> None:
    def lines(function: Callable[..., Any]) -> str:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter("%(message)s in %(funcName)s at %(lineno)d"))
        LOG.addHandler(handler)
        LOG.setLevel("INFO")
        try:
            for _ in range(3):
                function(lamina.ones(3))
        finally:
            LOG.removeHandler(handler)
        return stream.getvalue()

    compiled = lamina.compile(logs)
    assert lines(compiled) == lines(logs)
    assert sum(" in logs: call of logging." in reason for reason in lamina.compiler.summary().break_reasons) == 3


# -- class statements -------------------------------------------------------------------------------------------


def plain_class(x):
    class Scale:
        by = 2

        def of(self, y):
            return y * self.by

    return Scale().of(x)


def module_with_a_closure(x):
    factor = x.shape[0]

    class Times(nn.Module):
        def __init__(self):
            super().__init__()
            self.added = 1

        def forward(self, v):
            return v * factor + self.added

    return Times()(x)


def class_behind_a_graph(x):
    y = x.sin()

    @dataclass
    class Pair:
        first: Any
        second: int = 3

    pair = Pair(y)
    return pair.first * pair.second, repr(pair.second)


@pytest.mark.parametrize(
    ("function", "graphs", "breaks"), [(plain_class, 2, 1), (module_with_a_closure, 2, 1), (class_behind_a_graph, 3, 3)]
)
def test_class_statement(function: Callable[..., Any], graphs: int, breaks: int) -> None:
    """The second call makes another class, whose methods are captured again."""
    summary = assert_captured(function, graphs=graphs, breaks=breaks)
    assert "a class statement" in summary.break_reasons[0]
