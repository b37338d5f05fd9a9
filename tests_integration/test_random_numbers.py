"""Random numbers: compiled functions draw what eager draws, and leave the generator where eager leaves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compare import assert_same

import lamina

functional = lamina.nn.functional


def in_place(x: Any) -> Any:
    x.normal_()
    x[0].uniform_(-1, 1)
    return x.clone().bernoulli_(0.3), x.clone().exponential_(), x.clone().random_(0, 10), x


def drawn(x: Any) -> Any:
    chance = x.abs().clamp(0, 1)
    return lamina.rand(3), lamina.randn(5), lamina.randint(0, 9, (4,)), lamina.rand_like(x), lamina.bernoulli(chance)


def seeded(x: Any) -> Any:
    lamina.manual_seed(9)
    return x + lamina.rand(5)


CASES: list[Callable[[Any], Any]] = [
    lambda x: functional.dropout(x, 0.4),
    lambda x: functional.dropout(functional.dropout(x, 0.4) * 2, 0.1) + lamina.rand(7, 5).sum(),
    lambda x: (functional.dropout(x, 0.0), functional.dropout(x, 1.0)),
    lambda x: functional.alpha_dropout(x, 0.3, True),
    lambda x: functional.dropout2d(x[None, None], 0.5),
    lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.3),
    drawn,
    in_place,
    seeded,
]


@pytest.mark.parametrize("backend", ["reference", "cpp"])
@pytest.mark.parametrize("function", CASES)
def test_the_same_numbers_and_the_same_state_after(function: Callable[[Any], Any], backend: str) -> None:
    results = []
    for call in (function, lamina.compile(function, backend=backend)):
        lamina.manual_seed(5)
        values = [call(lamina.arange(35.0).reshape(7, 5).sin()) for _ in range(3)]
        results.append((values, lamina.get_rng_state(), lamina.rand(2)))
    assert_same(*results, 1e-5)
