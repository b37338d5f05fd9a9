"""Python programs, plain against compiled: containers, breaks at every kind of place, changing sizes, side effects."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest
from compare import compare_function

import lamina


def test_dicts_and_lists() -> None:
    def f(batch: dict[str, Any], scales: list[float]) -> Any:
        made = {}
        for name, value in sorted(batch.items()):
            made[name.upper()] = [value * s for s in scales]
        made["TOTAL"] = sum(v.sum() for values in made.values() for v in values)
        first, *rest = scales
        return (
            made,
            {"first": first, "rest": tuple(rest)},
            [len(v) if isinstance(v, list) else -1 for v in made.values()],
        )

    made = compare_function(f, lambda: ({"x": lamina.arange(6.0), "y": lamina.ones(2, 3)}, [0.5, 2.0, -1.0]))
    assert (made.graphs, made.breaks) == (1, 0)


def blind(x: Any) -> Any:
    """Something that cannot be captured."""
    return lamina.from_numpy(x.numpy() * 1.0)


blind = lamina.compiler.disable(blind)


@contextmanager
def noted(log: list[str]) -> Any:
    log.append("enter")
    try:
        yield 2.0
    finally:
        log.append("exit")


def break_plain(x: Any, log: list[str]) -> Any:
    y = x * 2
    y = blind(y)
    return y + 1


def break_in_with(x: Any, log: list[str]) -> Any:
    with noted(log) as factor:
        y = x * factor
        y = blind(y)
        y = y + 1
    return y


def break_in_try(x: Any, log: list[str]) -> Any:
    try:
        y = blind(x.sin())
        y = y + 1
        raise ValueError("late")
    except ValueError as error:
        log.append(str(error))
        y = x - 1
    finally:
        log.append("finally")
    return y.cos()


def break_in_loop(x: Any, log: list[str]) -> Any:
    for k in range(3):
        x = blind(x + k)
        log.append(f"turn {k}")
        x = x * 2
    return x


def break_in_branch(x: Any, log: list[str]) -> Any:
    if x.sum() > 0:
        log.append("positive")
        return x * 3
    return x - 3


def inner(x: Any, log: list[str]) -> Any:
    x = x + 1
    x = blind(x)
    log.append("inner")
    return x * 2


def break_in_callee(x: Any, log: list[str]) -> Any:
    return inner(x.sin(), log).cos()


def break_in_comprehension(x: Any, log: list[str]) -> Any:
    parts = [blind(x * k) for k in range(3)]
    return sum(parts)


def break_by_print(x: Any, log: list[str]) -> Any:
    y = x * 2
    print("seen")
    return y + 1


def break_by_item(x: Any, log: list[str]) -> Any:
    scale = x.sum().item()
    return x * scale


BREAKS = (
    break_plain, break_in_with, break_in_try, break_in_loop, break_in_branch, break_in_callee, break_in_comprehension,
    break_by_print, break_by_item,
)  # fmt: skip


@pytest.mark.parametrize("function", BREAKS, ids=lambda f: f.__name__)
def test_breaks_resume(function: Any) -> None:
    made = compare_function(function, lambda: (lamina.arange(5.0) + 1, []), calls=3)
    assert made.graphs >= 1


def test_fullgraph_names_the_line() -> None:
    with pytest.raises(Exception, match=r"test_functions\.py"):
        lamina.compile(break_plain, fullgraph=True)(lamina.ones(3), [])


def test_sizes_become_symbolic_at_the_second_one() -> None:
    def f(x: Any) -> Any:
        return (x * 2).softmax(-1).sum(0)

    compiled = lamina.compile(f)
    for size in (4, 5, 6, 7, 9):
        x = lamina.randn(size, 3)
        lamina.testing.assert_close(compiled(x), f(x))
    assert lamina.compiler.summary().graphs == 2


def test_shape_errors_are_the_eager_errors_from_the_users_line() -> None:
    def f(x: Any, y: Any) -> Any:
        return x @ y

    with pytest.raises(RuntimeError) as eager:
        f(lamina.ones(2, 3), lamina.ones(4, 5))
    with pytest.raises(RuntimeError) as compiled:
        lamina.compile(f)(lamina.ones(2, 3), lamina.ones(4, 5))
    assert str(compiled.value) == str(eager.value)


def test_attribute_global_and_list_changes_are_replayed() -> None:
    class Counter:
        calls = 0
        last: Any = None

    def f(x: Any, counter: Any, seen: list[Any]) -> Any:
        counter.calls += 1
        counter.last = x + 1
        seen.append(counter.last * 2)
        return x - 1

    counter, seen = Counter(), []
    compiled = lamina.compile(f)
    for k in range(3):
        compiled(lamina.ones(2) * k, counter, seen)
    assert counter.calls == 3 and counter.last.tolist() == [3.0, 3.0]
    assert [s.tolist() for s in seen] == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]


def test_in_place_on_arguments() -> None:
    def f(x: Any, y: Any) -> Any:
        x.add_(y)
        x[0] = 7.0
        return x.sum()

    made = compare_function(f, lambda: (lamina.arange(6.0).reshape(2, 3), lamina.ones(3)))
    assert (made.graphs, made.breaks) == (1, 0)
