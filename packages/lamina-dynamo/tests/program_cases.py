"""A case for the tests of capture: a function over NumPy, fresh arguments, and the number of graphs it takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_dynamo.eval import disable


@disable
def outside(*args):
    """What is printed here is not captured: a graph break."""
    print(*args)


def x3():
    return np.arange(3.0)


@dataclasses.dataclass
class Case:
    """A function, fresh arguments for each call, and how many graphs it takes (None: not checked)."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]] = lambda: (x3(),)
    graphs: int | None = 1
    calls: int = 2


CASES: list[Case] = []


def case(graphs: int | None = 1, arguments: Callable[[], tuple[Any, ...]] = lambda: (x3(),), calls: int = 2):
    def register(function):
        CASES.append(Case(function, arguments, graphs, calls))
        return function

    return register
