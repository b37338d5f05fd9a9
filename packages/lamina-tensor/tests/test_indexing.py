"""Indexing against NumPy, where both agree, and against stated results where PyTorch differs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamina_tensor as lt

ARRAY = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
SAME = [
    0, -1, slice(None), slice(1, 3), slice(0, 2, 2), ..., None, (0, 1, 2), (slice(None), 1), (..., -1), (None, 0),
    (slice(None), None, slice(1, None)), [1, 0], ([0, 1], [2, 0]),
    (slice(None), [0, 2]), (slice(None), slice(None), [3, 1, 1]),
    np.array([[0, 1], [1, 0]]), (..., np.array([0, 3])), np.array([True, False]), ARRAY > 7,
    (0, np.array([True, False, True])),
    np.array(True), (slice(None), [2, 0], slice(1, 3)), ([1], None, slice(0, 2)), np.int64(1), True, (1, ..., None),
    (slice(5, 9),), (slice(-2, None), -2),
]  # fmt: skip


def as_index(index, array: bool):
    if isinstance(index, tuple):
        return tuple(as_index(i, array) for i in index)
    return index if array or not isinstance(index, np.ndarray) else lt.from_numpy(index.copy())


@pytest.mark.parametrize("index", SAME, ids=[str(i).replace("\n", "")[:30] for i in SAME])
def test_get_and_set_as_numpy(index) -> None:
    tensor = lt.from_numpy(ARRAY.copy())
    expected = ARRAY[as_index(index, True)]
    got = tensor[as_index(index, False)]
    np.testing.assert_array_equal(got.numpy(), expected)
    array = ARRAY.copy()
    array[as_index(index, True)] = -1
    tensor[as_index(index, False)] = -1
    np.testing.assert_array_equal(tensor.numpy(), array)
    value = np.arange(expected.size, dtype=np.float32).reshape(expected.shape) + 100
    array[as_index(index, True)] = value
    tensor[as_index(index, False)] = lt.from_numpy(np.asarray(value))
    if not isinstance(index, tuple) or [3, 1, 1] not in [i for i in index if isinstance(i, list)]:
        np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("index", SAME, ids=[str(i).replace("\n", "")[:30] for i in SAME])
def test_gradients(index) -> None:
    leaf = lt.from_numpy(ARRAY.copy()).requires_grad_()
    got = leaf[as_index(index, False)]
    weight = lt.arange(1.0, got.numel() + 1).reshape(got.shape)
    (got * weight).sum().backward()
    expected = np.zeros_like(ARRAY)
    np.add.at(expected, as_index(index, True), weight.numpy())
    np.testing.assert_allclose(leaf.grad.numpy(), expected)


_part = st.one_of(
    st.integers(-2, 1),
    st.builds(slice, st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3), st.none() | st.integers(1, 3)),
    st.just(...),
    st.none(),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_part, max_size=4))
def test_basic_indices(parts) -> None:
    index = tuple(p for i, p in enumerate(parts) if p is not ... or ... not in parts[:i])
    if sum(p is not None and p is not ... for p in index) > 3:
        index = index[:3]
    tensor = lt.from_numpy(ARRAY.copy())
    expected = ARRAY[index]
    got = tensor[index]
    np.testing.assert_array_equal(got.numpy(), expected)
    traced = lt.fake_tensor(tensor.spec)[index]
    assert traced.shape == expected.shape
    assert all(a == b or size == 1 for a, b, size in zip(traced.stride(), got.stride(), got.shape) if got.numel())


ERRORS = [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
    ((..., ...), IndexError, "single ellipsis"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"),
    (1.5, IndexError, "only integers, slices"),
    (lt.tensor([True, False, True]), IndexError, r"shape of the mask \[3\] at index 0"),
    (lt.tensor([9]), IndexError, "out of bounds"),
    (lt.tensor([0.5]), IndexError, "must be long, int, byte or bool"),
]


@pytest.mark.parametrize(("index", "kind", "message"), ERRORS, ids=[m for *_, m in ERRORS])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_errors(index, kind, message: str, requires_grad: bool) -> None:
    tensor = lt.from_numpy(ARRAY.copy()).requires_grad_(requires_grad)
    with pytest.raises(kind, match=message):
        tensor[index]


def test_integers_beside_index_tensors_select_first() -> None:
    tensor = lt.zeros(2, 3, 4)
    assert tensor[0, :, [1, 2]].shape == (3, 2)  # NumPy: (2, 3)
    assert tensor[[0, 1], :, [1, 2]].shape == (2, 3)


def test_assignment_converts_broadcasts_and_checks() -> None:
    tensor = lt.zeros(2, 3, dtype=lt.int64)
    tensor[0] = 1.9
    tensor[:, 0] = lt.tensor([5.5, 6.5])
    tensor[1, 1:] = lt.tensor([[7, 8]])
    assert tensor.tolist() == [[5, 1, 1], [6, 7, 8]]
    with pytest.raises(RuntimeError):
        tensor[0] = lt.ones(2)


def test_mask_assignment_and_gradient() -> None:
    leaf = lt.tensor([1.0, -2.0, 3.0], requires_grad=True)
    value = leaf * 2
    value[value < 0] = 0
    value.sum().backward()
    assert leaf.grad.tolist() == [2, 0, 2]


def test_integer_tensor_as_index_and_iteration() -> None:
    tensor = lt.arange(4)
    assert tensor[lt.tensor(2)].item() == 2 and [int(t) for t in tensor] == [0, 1, 2, 3]
    assert tensor[lt.tensor(1) : lt.tensor(3)].tolist() == [1, 2]
