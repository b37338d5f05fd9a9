from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina_fx import pytree as tree

Point = namedtuple("Point", "x y")


class Opaque(dict):
    pass


TREES = [
    (3, [3], "*"),
    (None, [None], "*"),
    ((1, (2,)), [1, 2], "(*, (*,))"),
    ([], [], "[]"),
    ([1, [2, []]], [1, 2], "[*, [*, []]]"),
    ({"b": 1, "a": [2]}, [1, 2], "{'b': *, 'a': [*]}"),
    (OrderedDict(a=1), [1], "OrderedDict({'a': *})"),
    (defaultdict(list, a=1), [1], "defaultdict({'a': *})"),
    (deque([1, 2], 5), [1, 2], "deque(*, *)"),
    (Point(1, [2]), [1, 2], "Point(*, [*])"),
]


@pytest.mark.parametrize(("value", "leaves", "text"), TREES, ids=[t for _, _, t in TREES])
def test_flatten_and_back(value, leaves, text):
    found, spec = tree.tree_flatten(value)
    assert found == leaves == tree.tree_leaves(value)
    assert str(spec) == text
    assert repr(spec) == f"TreeSpec({text})"
    again = tree.tree_unflatten(found, spec)
    assert again == value
    assert type(again) is type(value)
    assert tree.tree_structure(again) == spec
    assert hash(tree.tree_structure(again)) == hash(spec)
    assert spec.leaves == len(leaves)
    assert getattr(again, "maxlen", None) == getattr(value, "maxlen", None)
    assert getattr(again, "default_factory", None) == getattr(value, "default_factory", None)


def test_different_structures():
    specs = [tree.tree_structure(v) for v, _, _ in TREES]
    distinct = {str(s) for s in specs}
    assert len({*specs}) == len(distinct)
    assert tree.tree_structure({"a": 1}) != tree.tree_structure({"b": 1})
    assert tree.tree_structure(3).is_leaf
    assert tree.tree_structure("x") == tree.LEAF


def test_subclasses_are_leaves():
    assert tree.tree_leaves(Opaque(a=1)) == [Opaque(a=1)]


def test_map():
    assert tree.tree_map(lambda a, b: a + b, {"x": (1, 2)}, {"x": (10, 20)}) == {"x": (11, 22)}
    assert tree.tree_map(str, [(1, 2), 3], is_leaf=lambda v: isinstance(v, tuple)) == ["(1, 2)", "3"]
    with pytest.raises(ValueError, match=r"nested differently: \(\*, \*\) and \[\*, \*\]"):
        tree.tree_map(max, (1, 2), [1, 2])
    with pytest.raises(ValueError, match=r"\(\*, \*\) has 2 leaves, got 1"):
        tree.tree_unflatten([1], tree.tree_structure((1, 2)))


@dataclass
class Batch:
    data: object
    name: str
    rest: object = None


def test_registering():
    tree.register_dataclass(Batch, ["data", "rest"])
    value = Batch([1, 2], "b", 3)
    leaves, spec = tree.tree_flatten(value)
    assert leaves == [1, 2, 3]
    assert str(spec) == "Batch([*, *], *)"
    assert tree.tree_map(lambda v: v * 2, value) == Batch([2, 4], "b", 6)
    assert spec != tree.tree_structure(Batch([1, 2], "other", 3))
    with pytest.raises(ValueError, match="Batch is registered already"):
        tree.register_dataclass(Batch)


@given(
    st.recursive(
        st.integers(),
        lambda v: st.one_of(st.lists(v), st.tuples(v, v), st.dictionaries(st.text(), v), st.builds(Point, v, v)),
        max_leaves=20,
    )
)
def test_round_trip(value):
    leaves, spec = tree.tree_flatten(value)
    assert tree.tree_unflatten(leaves, spec) == value
    assert spec.leaves == len(leaves)
