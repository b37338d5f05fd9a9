"""``as_strided`` and offsets into a storage: as in PyTorch, whose values these are, eager and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import lamina


def inside(x: Any) -> Any:
    return x.as_strided((2, 2), (4, 1))


def behind_the_start(x: Any) -> Any:
    return x[1:].as_strided((2, 2), (4, 1))


def from_the_start(x: Any) -> Any:
    return x[1:].as_strided((2, 2), (4, 1), 0)


def partly_outside(x: Any) -> Any:
    return x[1:, 1:].as_strided((3,), (5,), 2) * 2


def written(x: Any) -> Any:
    y = x * 2
    v = y[2:].as_strided((2,), (1,), 1)
    v.mul_(3.0)
    return y.sum(0), v


def of_a_transpose(x: Any) -> Any:
    return x.t()[1].as_strided((3,), (2,))


def of_a_row(x: Any) -> Any:
    return (x * 2)[1].as_strided((4,), (2,), 3)


def of_an_expansion(x: Any) -> Any:
    return x[:1].expand(3, 4).as_strided((4,), (1,)) * 2


ZERO = [0.0] * 4
FIRST = [[[0.0, 1.0], [4.0, 5.0]]]
CASES: list[tuple[Callable[[Any], Any], list[Any], list[Any]]] = [
    (inside, FIRST, [[0, 2, 0, 0], [8, 10, 0, 0], ZERO, ZERO]),
    (behind_the_start, [[[4.0, 5.0], [8.0, 9.0]]], [ZERO, [8, 10, 0, 0], [16, 18, 0, 0], ZERO]),
    (from_the_start, FIRST, [ZERO, [8, 10, 0, 0], ZERO, ZERO]),
    (partly_outside, [[4.0, 14.0, 24.0]], [ZERO, [0, 0, 0, 56], ZERO, ZERO]),
    (
        written,
        [[48.0, 60.0, 72.0, 72.0], [6.0, 12.0]],
        [[192, 792, 1008, 288], [192, 240, 288, 288], [192, 240, 288, 288], [192, 240, 288, 288]],
    ),
    (of_a_transpose, [[1.0, 3.0, 5.0]], [[0, 2, 0, 0], [0, 10, 0, 0], ZERO, ZERO]),
    (of_a_row, [[6.0, 10.0, 14.0, 18.0]], [ZERO, [0, 40, 0, 56], ZERO, ZERO]),
    (of_an_expansion, [[0.0, 2.0, 4.0, 6.0]], [[0, 8, 16, 24], ZERO, ZERO, ZERO]),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("function", "results", "gradient"), CASES)
def test_values_and_gradients(function: Any, results: list[Any], gradient: list[Any], compiled: bool) -> None:
    call = lamina.compile(function) if compiled else function
    x = lamina.arange(16.0).view(4, 4).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = call(x)
    found = found if isinstance(found, tuple) else (found,)
    assert [t.tolist() for t in found] == results
    (grad,) = lamina.autograd.grad(sum((t * t).sum() for t in found), [x])
    assert grad.tolist() == gradient


def test_the_offset_counts_from_the_start_of_the_storage() -> None:
    """The same compiled code for inputs that begin at different places, and reach less than their storage."""

    def f(x: Any) -> Any:
        return x.as_strided((2,), (1,), 10) * 1

    call = lamina.compile(f)
    memory = lamina.arange(32.0)
    for x in (memory[:16], memory[8:24], memory[9:25], memory[16:]):
        assert f(x).tolist() == call(x).tolist() == [10.0, 11.0]


def test_writes_reach_memory_that_the_argument_does_not_show() -> None:
    def f(x: Any) -> Any:
        x[2:].as_strided((2,), (1,), 0).add_(100.0)
        return x.sum()

    for call in (f, lamina.compile(f)):
        x = lamina.arange(6.0)
        assert call(x).item() == 215.0
        assert x.tolist() == [100.0, 101.0, 2.0, 3.0, 4.0, 5.0]


def test_the_offset_of_a_view() -> None:
    def f(x: Any) -> Any:
        return x[1].storage_offset() + x.sum()

    call = lamina.compile(f)
    memory = lamina.arange(32.0)
    for x in (memory[:16].view(4, 4), memory[8:24].view(4, 4), memory.view(8, 4)[::2]):
        assert call(x).item() == f(x).item()


def test_a_method_looked_up_before_the_graph_is_the_arrays_own() -> None:
    memory = lamina.arange(8.0)

    @lamina.compile
    def f(x: Any) -> int:
        return x.data_ptr()

    assert f(memory[2:]) - f(memory) == 8


def test_what_the_storage_has_not_is_an_error() -> None:
    x = lamina.arange(6.0)[2:]
    with pytest.raises(RuntimeError, match="need a storage of 7 elements, but it has 6"):
        x.as_strided((2,), (1,), 5)
    with pytest.raises(RuntimeError, match="invalid storage offset -1"):
        x.as_strided((2,), (1,), -1)
    assert x.as_strided((0,), (1,), 4).tolist() == []
