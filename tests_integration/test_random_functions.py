"""Random Python functions through the whole stack: compiled = plain, in results, gradients, errors and effects.

A few in CI. The long mode:
``LAMINA_RANDOM_FUNCTIONS=5000 LAMINA_RANDOM_SEED=7 pytest tests_integration/test_random_functions.py``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from compare import assert_same
from random_functions import function_source

import lamina
from lamina_dynamo.capture import CaptureWarning

COUNT = int(os.environ.get("LAMINA_RANDOM_FUNCTIONS", "60"))
SEED = int(os.environ.get("LAMINA_RANDOM_SEED", "0"))
BATCH = 20


class Custom(Exception):
    pass


class Manager:
    def __init__(self, log: list[Any], swallow: bool) -> None:
        self.log = log
        self.swallow = swallow

    def __enter__(self) -> Any:
        self.log.append("enter")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.log.append(None if kind is None else kind.__name__)
        return self.swallow


@contextmanager
def scope(log: list[Any]) -> Any:
    log.append("begin")
    try:
        yield
    finally:
        log.append("end")


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.count = 0

    @property
    def double(self) -> Any:
        return self.value * 2

    def __getitem__(self, index: int) -> Any:
        return self.value[index]


def helper(v: Any, log: list[Any], *, times: int = 1) -> Any:
    for k in range(min(times, 3)):
        v = v * 0.5 + k
        if k == 1:
            v = v + outside(log, v)
    return v


@lamina.compiler.disable
def outside(log: list[Any], v: Any) -> Any:
    log.append(round(float(v.detach().sum()), 2))
    return v.detach() * 0.1


SPACE = {
    "lamina": lamina, "Custom": Custom, "Manager": Manager, "scope": scope, "Holder": Holder, "helper": helper,
    "outside": outside,
}  # fmt: skip


def program_of(seed: int) -> tuple[Callable[..., Any], str]:
    space: dict[str, Any] = dict(SPACE)
    source = function_source(seed)
    exec(compile(source, f"<function {seed}>", "exec"), space)
    return space["program"], source


def outcome(function: Callable[..., Any], size: int) -> list[Any]:
    log: list[Any] = [1]
    table: dict[str, Any] = {"k1": 2.0, "k2": 3}
    x = (lamina.arange(size).float() / size + 0.5).requires_grad_()
    y = lamina.ones(size) * 0.75
    try:
        result = function(x, y, log, table)
        differentiable = [t for t in result if isinstance(t, lamina.Tensor) and t.requires_grad and not t.is_leaf]
        if differentiable:
            sum(t.sum() for t in differentiable).backward()
    except (ValueError, KeyError, Custom, IndexError, TypeError, UnboundLocalError, StopIteration) as error:
        result = (type(error).__name__, str(error))
    return [result, _told(log), table, x.grad, y]


def _told(log: list[Any]) -> list[Any]:
    """Tensors among what was noted as what they are."""
    return [v.detach() if isinstance(v, lamina.Tensor) else v for v in log]


@pytest.mark.parametrize("start", range(0, COUNT, BATCH))
def test_compiled_is_plain(start: int) -> None:
    for number in range(start, min(start + BATCH, COUNT)):
        lamina.compiler.reset()
        function, source = program_of(SEED * 1_000_003 + number)
        compiled = lamina.compile(function, backend="reference")
        for size in (3, 3, 4):
            expected = outcome(function, size)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", category=CaptureWarning)
                    warnings.filterwarnings("ignore", message=r".*\(recompile_limit\)", category=CaptureWarning)
                    found = outcome(compiled, size)
                assert_same(expected, found, 1e-4)
            except BaseException:  # an interrupt, too, says where it was
                print(f"seed {SEED}, number {number}, size {size}\n{source}")
                raise
