"""Random Python functions: captured = plain, results and side effects. ``LAMINA_RANDOM_PROGRAMS`` sets how many."""

from __future__ import annotations

import os

import numpy as np
import pytest
from random_programs import source_of
from test_programs import same

from lamina_dynamo.backends import CountingBackend
from lamina_dynamo.capture import reset
from lamina_dynamo.eval import disable, optimize
from lamina_dynamo.numpy_frontend import NumpyFrontend

FRONTEND = NumpyFrontend()
COUNT = int(os.environ.get("LAMINA_RANDOM_PROGRAMS", "60"))
BATCH = 20


def helper(v, k, *, scale=1.0):
    return v * k * scale


class Manager:
    def __init__(self, items):
        self.items = items

    def __enter__(self):
        self.items.append("enter")
        return self

    def __exit__(self, *error):
        self.items.append("exit")


class Holder:
    def __init__(self, value):
        self.value = value
        self.count = 0

    def double(self):
        return self.value * 2


def pieces(v, n):
    for i in range(n):
        yield v * i


@disable
def outside(items, v):
    items.append(float(np.sum(v)))


def program_of(seed):
    namespace = {
        "np": np, "helper": helper, "Manager": Manager, "Holder": Holder, "pieces": pieces, "outside": outside,
    }  # fmt: skip
    source = source_of(seed)
    exec(compile(source, f"<program {seed}>", "exec"), namespace)
    return namespace["program"], source


def outcome(function, n):
    items, table = [1], {"k1": 2.0}
    with np.errstate(all="ignore"):
        try:
            result = function(np.arange(1.0, n + 1), np.ones(n), items, table)
        except (ValueError, TypeError, IndexError, UnboundLocalError) as error:
            result = type(error)
    return result, items, table


@pytest.mark.parametrize("start", range(0, COUNT, BATCH))
def test_captured_is_plain(start):
    for seed in range(start, min(start + BATCH, COUNT)):
        reset()
        function, source = program_of(seed)
        compiled = optimize(CountingBackend(), FRONTEND, strict=True)(function)
        for n in (3, 3, 4):
            expected = outcome(function, n)
            try:
                got = outcome(compiled, n)
                same(expected, got)
            except BaseException:
                print(f"seed {seed}, n = {n}\n{source}")
                raise
