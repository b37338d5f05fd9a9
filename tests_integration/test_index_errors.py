"""An index out of range: the error names the index, the dimension and its size, compiled also the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lamina

F = lamina.nn.functional


def indices(*values: int) -> Any:
    return lamina.tensor(values)


LOSS = lamina.nn.CrossEntropyLoss()


def trained(x: Any, k: Any) -> Any:
    w = x.detach().requires_grad_()
    loss = F.cross_entropy(w * 2, k)
    loss.backward()
    return loss.detach(), w.grad


CASES: list[tuple[str, Callable[[Any, Any], Any], Any, tuple[Any, ...]]] = [
    ("index", lambda x, k: x[k] * 2, indices(1, 7, 9), (IndexError, "index", 9, 0, 5)),
    ("from_the_end", lambda x, k: x[k] * 2, indices(1, -7, -9), (IndexError, "index", -9, 0, 5)),
    ("second_dimension", lambda x, k: x[:, k] * 2, indices(1, 3), (IndexError, "index", 3, 1, 3)),
    ("two_indices", lambda x, k: x[k, k] * 2, indices(1, 4), (IndexError, "index", 4, 1, 3)),
    ("gather", lambda x, k: x.gather(0, k[:, None]) * 2, indices(1, 8), (RuntimeError, "gather", 8, 0, 5)),
    ("gather_negative", lambda x, k: x.gather(0, k[:, None]) * 2, indices(1, -1), (RuntimeError, "gather", -1, 0, 5)),
    ("index_select", lambda x, k: x.index_select(1, k) * 2, indices(1, 3), (IndexError, "index_select", 3, 1, 3)),
    ("embedding", lambda x, k: F.embedding(k, x) * 2, indices(1, 5), (IndexError, "embedding", 5, 0, 5)),
    ("take", lambda x, k: x.take(k) * 2, indices(1, 15), (IndexError, "take", 15, 0, 15)),
    ("scatter", lambda x, k: (x * 2).scatter(0, k[:, None], 1.0), indices(1, 5), (RuntimeError, "scatter", 5, 0, 5)),
    ("index_put", lambda x, k: x.index_put((k,), x[0]), indices(1, 5), (IndexError, "index_put", 5, 0, 5)),
    ("index_add", lambda x, k: x.index_add(0, k, x[:2]), indices(1, 5), (RuntimeError, "index_add", 5, 0, 5)),
    ("index_add_", lambda x, k: (x * 2).index_add_(0, k, x[:2]), indices(1, 5), (RuntimeError, "index_add", 5, 0, 5)),
    ("loss", lambda x, k: F.cross_entropy(x, k), indices(1, 3, 0, 0, 0), (IndexError, "cross_entropy", 3, 1, 3)),
    ("nll_loss", lambda x, k: F.nll_loss(x, k), indices(1, -3, 0, 0, 0), (IndexError, "nll_loss", -3, 1, 3)),
    ("one_hot", lambda x, k: F.one_hot(k, 4), indices(1, 4), (RuntimeError, "one_hot", 4, 0, 4)),
    ("one_hot_negative", lambda x, k: F.one_hot(k, 4), indices(1, -1), (RuntimeError, "one_hot", -1, 0, 4)),
    ("a_module", lambda x, k: LOSS(x, k), indices(1, 3, 0, 0, 0), (IndexError, "cross_entropy", 3, 1, 3)),
    ("training", trained, indices(1, 3, 0, 0, 0), (IndexError, "cross_entropy", 3, 1, 3)),
]  # fmt: skip


def said(call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises((IndexError, RuntimeError)) as raised:
        call(*args)
    return f"{type(raised.value).__name__}: {raised.value}"


@pytest.mark.parametrize(("function", "index", "told"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_message_says_all(function: Callable[..., Any], index: Any, told: tuple[Any, ...]) -> None:
    kind, operator, wrong, dim, size = told
    message = f"{kind.__name__}: {operator}: index {wrong} is out of bounds for dimension {dim} with size {size}"
    x = lamina.arange(15.0).view(5, 3)
    assert said(function, x, index) == message
    compiled = said(lamina.compile(function), x, index)
    assert compiled.startswith(f"{message} (at {__file__}:") and compiled.rstrip(")").rpartition(":")[2].isdigit()


def test_the_size_is_this_calls() -> None:
    @lamina.compile
    def f(x: Any, k: Any) -> Any:
        return x[k] * 2

    for n in (4, 5, 6, 7):  # from the second on, sizes are symbolic
        found = said(f, lamina.arange(float(n)), indices(0, n + 1))
        assert f"index {n + 1} is out of bounds for dimension 0 with size {n} (at " in found


def test_the_largest_index_is_named_whatever_threads_find() -> None:
    @lamina.compile
    def f(x: Any, k: Any) -> Any:
        return x[k] * 2

    k = lamina.zeros(200_000, dtype=lamina.int64)
    k[::1000] = lamina.arange(200) + 10
    for _ in range(5):
        assert "index 209 is out of bounds" in said(f, lamina.arange(5.0), k)
    k[77] = 2**60
    assert "index 140737488355327 or beyond is out of bounds" in said(f, lamina.arange(5.0), k)


def test_a_wrong_index_leaves_the_inputs_as_they_were() -> None:
    @lamina.compile
    def f(x: Any, k: Any) -> Any:
        x.add_(1)
        x[k] = 0.0
        return x.sum()

    x = lamina.arange(4.0)
    said(f, x, indices(1, 6))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
