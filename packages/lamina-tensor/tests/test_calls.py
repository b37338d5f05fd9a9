"""How operators are called: NumPy's names of keywords, and what is said of calls that are wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_prims import operators
from lamina_prims.schema import NUMPY_NAMES

X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "any", "all", "std", "var", "logsumexp"]
)
def test_axis_and_keepdims_mean_dim_and_keepdim(name: str) -> None:
    x = lt.tensor(X)
    more = {"axis": 1} if name in ("any", "all", "argmax", "argmin", "prod") else {"axis": (0, 1)}
    for kwargs in ({"axis": 1}, {"axis": 0, "keepdims": True}, more):
        ours = {NUMPY_NAMES[k]: v for k, v in kwargs.items()}
        expected = getattr(x, name)(**ours)
        got = getattr(x, name)(**kwargs)
        assert got.shape == expected.shape
        assert np.array_equal(got.numpy(), expected.numpy())
        assert np.array_equal(getattr(lt, name)(x, **kwargs).numpy(), expected.numpy())


def test_axis_with_overloads_results_and_lists() -> None:
    x = lt.tensor(X)
    assert lt.max(x, axis=0).indices.tolist() == lt.max(x, dim=0).indices.tolist()
    assert lt.cat([x, x], axis=1).shape == (3, 8)
    assert x.clone().unsqueeze(axis=1).shape == (3, 1, 4)
    assert lt.nn.functional.softmax(x, axis=0).sum(axis=0).tolist() == pytest.approx([1.0] * 4)
    y = x.clone()
    assert y.index_fill_(axis=0, index=lt.tensor([1]), value=7.0) is y
    assert y[1].tolist() == [7.0] * 4


def test_gradients_and_numpy_arrays_take_axis() -> None:
    x = lt.tensor(X, requires_grad=True)
    x.mean(axis=0, keepdims=True).sum().backward()
    assert x.grad.tolist() == np.full((3, 4), 1 / 3, np.float32).tolist()
    assert np.array_equal(operators()["sum"](X, axis=1, keepdims=True), X.sum(1, keepdims=True))


def test_no_operator_has_a_parameter_of_numpys_names() -> None:
    clashes = [op.id for op in operators().values() if any(p.name in NUMPY_NAMES for p in op.schema.parameters)]
    assert clashes == []


WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: x.sum(axis=1, dim=1), TypeError, "sum() got both 'dim' and 'axis', which mean the same"),
    (lambda x: x.sum(dims=1), TypeError, "sum() has no parameter 'dims': sum(input: Tensor"),
    (lambda x: x.flip(axis=1), TypeError, "flip() has no parameter 'axis': flip(input: Tensor, dims: Shape)"),
    (lambda x: x.sum(0, dim=1), TypeError, "sum() got 'dim' twice"),
    (lambda x: x.exp(1, 2), TypeError, "exp() takes 1 positional arguments, got 3"),
    (lambda x: x + lt.ones(3), RuntimeError, "add: the shapes [3, 4] and [3] do not broadcast"),
    (lambda x: x @ x, RuntimeError, "matmul: shapes [3, 4] and [3, 4] cannot be multiplied"),
    (lambda x: lt.cat([x, lt.ones(2)]), RuntimeError, "cat: sizes of tensors must match"),
    (lambda x: x.sum(5), IndexError, "sum: Dimension out of range"),
    (lambda x: x[7], IndexError, "index 7 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.reshape(7), RuntimeError, "reshape: shape [7] is invalid"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_wrong_calls_are_told_once_in_the_operators_words(
    call: Callable[[Any], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        call(lt.ones(3, 4))
    assert text in str(raised.value)
    shown = "".join(traceback.format_exception(raised.value))
    assert shown.count("Traceback (most recent call last)") == 1, shown
    assert "<locals>" not in str(raised.value)
