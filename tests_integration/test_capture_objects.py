"""Objects that cannot be made again behind a graph break, and tensors whose history must leave the graph.

None of these is a fault of the compiler: the graph ends in time, or the frame runs in Python and `explain` says why.
"""

from __future__ import annotations

import collections
import functools
import queue
import re
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from captures import assert_captured, leaf, outside

import lamina
from lamina_dynamo import Unsupported

CASES: dict[str, tuple[Callable[..., Any], int, int, Callable[[], tuple[Any, ...]]]] = {}


def case(graphs: int, breaks: int, make: Callable[[], tuple[Any, ...]] = leaf) -> Callable[[Any], Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, graphs, breaks, make
        return function

    return register


class Base:
    def m(self, x):
        return x + 1


class Derived(Base):
    def m(self, x):
        parent = super()
        y = x * 2
        outside()
        return parent.m(y)


# -- objects that C code makes ------------------------------------------------------------------------------


@case(2, 2)
def super_across_a_break(x):
    return Derived().m(x)


@case(2, 2)
def match_of_a_pattern(x):
    match = re.match("a(b)", "ab")
    y = x + 1
    outside()
    return y * len(match.group(1))


@case(2, 2)
def mapping_proxy_sees_its_dict(x):
    d = {"a": 1}
    proxy = types.MappingProxyType(d)
    d["a"] = 2
    y = x + 1
    outside()
    return y * proxy["a"]


@case(2, 3)
def cached_function(x):
    @functools.lru_cache
    def g(a):
        return a + 1

    y = x + 1
    outside()
    return y * g(2)


@case(1, 1)
def generic_alias(x):
    kind = list[int]
    y = x + 1
    outside()
    return y, kind


@case(1, 3)
def queue_of_the_region(x):
    q = queue.Queue()
    y = x * 2
    q.put(3)
    return y, q.get()


@case(2, 3)
def weak_reference(x):
    held = Base()
    reference = weakref.ref(held)
    y = x * 2
    outside()
    return y + 1, reference() is held


# -- tensors made to require gradients in the region -----------------------------------------------------------


@case(2, 1)
def leaf_that_is_returned(x):
    y = x * 2
    w = lamina.ones(4).requires_grad_()
    return w, y * w


@case(1, 2)
def leaf_across_a_break(x):
    w = lamina.zeros(4, requires_grad=True)
    outside()
    return w * x, w


@case(2, 1)
def leaf_with_a_gradient(x):
    y = x.detach() * 2
    w = y.detach().requires_grad_()
    (w * w).sum().backward()
    return w


@case(1, 0, lambda: (lamina.arange(4).float(),))
def leaf_that_stays_inside(x):
    w = x.detach().requires_grad_()
    (w * w).sum().backward()
    return w.grad


@case(1, 0, lambda: (lamina.arange(4).float(),))
def leaf_of_a_constant(x):
    w = lamina.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (gradient,) = lamina.autograd.grad((w * w * x).sum(), w)
    return gradient


@case(1, 1, lambda: (lamina.arange(4).float(),))
def result_that_only_inner_leaves_differentiate(x):
    w = lamina.ones(4, requires_grad=True)
    return (w * x).sum()


# -- writes ---------------------------------------------------------------------------------------------------


@case(1, 1, lambda: (lamina.arange(3).float(),))
def write_through_an_expanded_tensor(x):
    y = x.clone().expand(3, 3)
    y.diagonal().add_(1)
    return y


def _experts() -> tuple[Any, ...]:
    lamina.manual_seed(2)
    return lamina.randn(6, 4), lamina.randint(0, 3, (6,)), lamina.ones(4, 4).requires_grad_()


@case(2, 1, _experts)
def index_add_to_fresh_zeros_behind_a_break(x, i, w):
    out = lamina.zeros(6, 4)
    outside()
    out.index_add_(0, i, x @ w)
    return out


@case(1, 1, lambda: (lamina.ones(3),))
def graph_without_inputs(x):
    made = lamina.full((2, 3), 4.0)
    outside()
    return made


@pytest.mark.parametrize("name", CASES)
def test_object(name: str) -> None:
    function, graphs, breaks, make = CASES[name]
    assert_captured(function, make, graphs=graphs, breaks=breaks)


def test_a_frame_that_cannot_go_on_runs_in_python_and_says_why() -> None:
    def f(x: Any) -> Any:
        ring = collections.deque()
        ring.append(ring)
        y = x + 1
        outside()
        return y * len(ring)

    told = assert_captured(f, graphs=0, breaks=1)
    assert "behind it: a set or deque that contains itself" in told.break_reasons[0]
    assert told.skipped == (f"{f.__qualname__}: it could not go on behind a break",)
    with pytest.raises(Unsupported, match="call of outside"):
        lamina.compile(f, fullgraph=True)(lamina.ones(3))


def test_requires_grad_of_an_argument() -> None:
    """It is the caller's tensor that changes; saying again what it is already is nothing."""

    def f(x: Any, again: bool) -> Any:
        y = x * 2
        if again:
            x.requires_grad_()
        x.requires_grad_()
        return (x * x).sum() + y.sum().detach()

    def g(x: Any) -> Any:
        x.requires_grad = False
        return x * 2

    assert_captured(f, lambda: (lamina.ones(3), False), graphs=1)
    assert_captured(f, lambda: (lamina.ones(3), True), graphs=1)
    assert_captured(f, lambda: (*leaf(), True), graphs=1)
    assert_captured(g, leaf, graphs=1, breaks=1)


def test_thread_local_attributes_are_read_and_written_by_their_class() -> None:
    """``threading.local`` keeps a dictionary for each thread, which only its own attribute access finds."""
    state = threading.local()

    def first_time() -> bool:
        try:
            return state.seen
        except AttributeError:
            state.seen = False
            return True

    @lamina.compile
    def f(x: lamina.Tensor) -> lamina.Tensor:
        y = x * 2
        return y + 1 if first_time() else y

    x = lamina.ones(2)
    assert [f(x).tolist() for _ in range(3)] == [[3.0, 3.0], [2.0, 2.0], [2.0, 2.0]]
    assert state.seen is False
