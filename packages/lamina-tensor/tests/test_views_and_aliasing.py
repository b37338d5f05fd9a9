"""Views share memory, versions and history; NumPy says what each view shows."""

from __future__ import annotations

import numpy as np
import pytest

import lamina_tensor as lt

VIEWS = {
    "select": (lambda t: t[1], lambda a: a[1]),
    "slice": (lambda t: t[:, 1:3], lambda a: a[:, 1:3]),
    "step": (lambda t: t[::2], lambda a: a[::2]),
    "view": (lambda t: t.view(4, 3), lambda a: a.reshape(4, 3)),
    "infer": (lambda t: t.view(-1), lambda a: a.reshape(-1)),
    "t": (lambda t: t.t(), lambda a: a.T),
    "permute": (lambda t: t.view(2, 2, 3).permute(2, 0, 1), lambda a: a.reshape(2, 2, 3).transpose(2, 0, 1)),
    "unsqueeze": (lambda t: t.unsqueeze(1), lambda a: a[:, None]),
    "squeeze": (lambda t: t[None].squeeze(0), lambda a: a),
    "narrow": (lambda t: t.narrow(1, 1, 2), lambda a: a[:, 1:3]),
    "diagonal": (lambda t: t.diagonal(), lambda a: np.diagonal(a)),
    "chain": (lambda t: t.t()[1:3].t()[0], lambda a: a.T[1:3].T[0]),
    "chunk": (lambda t: t.chunk(2, 1)[1], lambda a: a[:, 2:]),
    "unbind": (lambda t: t.unbind(1)[2], lambda a: a[:, 2]),
    "flatten": (lambda t: t.flatten(), lambda a: a.reshape(-1)),
    "ellipsis": (lambda t: t[..., 0], lambda a: a[..., 0]),
    "none": (lambda t: t[:, None, 1:], lambda a: a[:, None, 1:]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_shares_memory_with_its_base(name: str) -> None:
    make, expected = VIEWS[name]
    base = lt.arange(12.0).reshape(3, 4).clone()
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = make(base)
    assert view.shape == expected(array).shape
    assert view.storage is base.storage
    assert view._base is base
    np.testing.assert_array_equal(view.numpy(), expected(array))
    view.mul_(10)
    np.testing.assert_array_equal(base.numpy() != array, _touched(expected, array) & (array != 0))
    base.fill_(7)
    assert (view == 7).all()
    assert view._version == base._version == 2


def _touched(view, array):
    places = np.zeros(array.shape, bool)
    flat = np.arange(array.size).reshape(array.shape)
    places.reshape(-1)[np.asarray(view(flat)).reshape(-1)] = True
    return places


@pytest.mark.parametrize("name", VIEWS)
def test_gradient_through_a_write_to_a_view(name: str) -> None:
    make, expected = VIEWS[name]
    leaf = lt.ones(3, 4, requires_grad=True)
    base = leaf * 1
    if name in ("chunk", "unbind"):
        other = make(base.detach())
        assert other.storage is base.storage
    make(base).mul_(3)
    base.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), np.where(_touched(expected, np.ones((3, 4))), 3, 1))


@pytest.mark.parametrize("name", VIEWS)
def test_traced_writes_equal_real_ones(name: str) -> None:
    from lamina_fx import Graph, Interpreter
    from lamina_prims import operator

    make, _ = VIEWS[name]

    def program(x):
        y = x * 2
        early = make(y)
        make(y).add_(100)
        late = early * 1
        y.mul_(2)
        return y, late, early

    x = lt.arange(12.0).reshape(3, 4).clone()
    graph = Graph()
    node = graph.placeholder("x", spec=x.spec)
    with lt.trace(graph) as tracer:
        results = program(tracer.input(node))
        graph.output(tuple(tracer.value(r) for r in results))
    assert all(n.effect is None for n in graph.nodes)
    for got, want in zip(Interpreter(graph, operator).run(x), program(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), want.numpy())


def test_reshape_copies_where_strides_do_not_allow_a_view() -> None:
    base = lt.arange(6.0).reshape(2, 3).clone()
    copy = base.t().reshape(6)
    assert copy.storage is not base.storage and copy._base is None
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        base.t().view(6)


def test_detach_shares_memory_and_version_but_data_counts_alone() -> None:
    x = lt.ones(3)
    alias, data = x.detach(), x.data
    alias.add_(1)
    data.add_(1)
    assert x.tolist() == [3, 3, 3]
    assert (x._version, alias._version, data._version) == (1, 1, 1)


def test_numpy_and_from_numpy_share_memory() -> None:
    array = np.zeros(3, np.float32)
    tensor = lt.from_numpy(array)
    tensor.add_(1)
    array[0] = 5
    assert tensor.tolist() == [5, 1, 1]
    assert np.shares_memory(tensor.numpy(), array)


def test_an_expanded_tensor_cannot_be_written() -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        lt.ones(3).expand(2, 3).add_(1)


def test_elements_of_an_expanded_tensor_can() -> None:
    base = lt.zeros(3)
    base.expand(2, 3)[0].add_(1)
    assert base.tolist() == [1, 1, 1]


def test_storage_offset_strides_and_abi_fields() -> None:
    base = lt.arange(12.0).reshape(3, 4)
    view = base[1:, ::2]
    assert (view.storage_offset(), view.stride(), view.shape) == (4, (4, 2), (2, 2))
    assert view.data_ptr() == base.data_ptr() + 16


def test_setting_data_swaps_the_memory() -> None:
    x, y = lt.ones(2, requires_grad=True), lt.zeros(3)
    x.data = y
    assert x.shape == (3,) and x.storage is y.storage and x.requires_grad


def test_metadata_changes_in_place() -> None:
    x = lt.arange(6.0).reshape(2, 3)
    assert x.t_().shape == (3, 2) and x.unsqueeze_(0).shape == (1, 3, 2) and x.squeeze_().shape == (3, 2)
    assert x.resize_(2, 2).tolist() == [[0, 3], [1, 4]]


def test_as_strided_in_place_counts_from_the_storage() -> None:
    x = lt.arange(6.0)
    y = x[2:]
    assert y.as_strided_((2, 2), (1, 2), 1) is y and y.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    y[0, 0] = 9
    assert x.tolist() == [0.0, 9.0, 2.0, 3.0, 4.0, 5.0]
    leaf = lt.arange(6.0).requires_grad_()
    z = leaf * 2
    z.as_strided_((2, 2), (1, 1)).sum().backward()
    assert leaf.grad.tolist() == [2.0, 4.0, 2.0, 0.0, 0.0, 0.0]
