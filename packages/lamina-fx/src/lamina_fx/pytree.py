"""Nested containers as a flat list of leaves and a description of the nesting.

>>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
>>> leaves, str(spec)
([1, 2, 3], "{'a': *, 'b': (*, [*])}")
>>> tree_unflatten([x * 10 for x in leaves], spec)
{'a': 10, 'b': (20, [30])}

tuple, list, dict, OrderedDict, defaultdict, deque and named tuples are containers; ``register`` adds types. None and
everything else are leaves. Subclasses of containers are leaves unless registered (named tuples excepted).
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

__all__ = [
    "LEAF", "TreeSpec", "register", "register_dataclass", "tree_flatten", "tree_leaves", "tree_map",
    "tree_structure", "tree_unflatten",
]  # fmt: skip

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Iterable[Any]], Any]


class _Kind(NamedTuple):
    flatten: Flatten
    unflatten: Unflatten


_KINDS: dict[type, _Kind] = {}


class TreeSpec:
    """The nesting of a tree: type of container, its context (keys and the like), specs of the children."""

    __slots__ = ("children", "context", "kind", "leaves")

    def __init__(self, kind: type | None, context: Any, children: tuple[TreeSpec, ...]) -> None:
        self.kind = kind
        self.context = context
        self.children = children
        self.leaves: int = 1 if kind is None else sum(c.leaves for c in children)

    @property
    def is_leaf(self) -> bool:
        """True for a single leaf."""
        return self.kind is None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TreeSpec)
            and self.kind is other.kind
            and self.context == other.context
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.leaves, self.children))

    def __str__(self) -> str:
        return "*" if self.kind is None else _show(self)

    def __repr__(self) -> str:
        return f"TreeSpec({self})"


LEAF = TreeSpec(None, None, ())
"""The spec of a leaf."""


def register(kind: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Make ``kind`` a container.

    Args:
        kind: the exact type.
        flatten: from a value to (children, context); the context is compared with ``==``.
        unflatten: from (context, children) to a value.

    Raises:
        ValueError: the type is registered already.
    """
    if kind in _KINDS:
        raise ValueError(f"{kind.__name__} is registered already")
    _KINDS[kind] = _Kind(flatten, unflatten)


def register_dataclass(kind: type, children: Iterable[str] | None = None) -> None:
    """Make a dataclass a container of the fields ``children`` (all by default); other fields are context."""
    fields = tuple(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    inside = fields if children is None else tuple(children)
    outside = tuple(f for f in fields if f not in inside)

    def flatten(value: Any) -> tuple[Iterable[Any], Any]:
        return [getattr(value, f) for f in inside], tuple([getattr(value, f) for f in outside])

    def unflatten(context: Any, parts: Iterable[Any]) -> Any:
        return kind(**dict(zip(inside, parts, strict=True)), **dict(zip(outside, context, strict=True)))

    register(kind, flatten, unflatten)


register(tuple, lambda v: (v, None), lambda c, parts: tuple(parts))
register(list, lambda v: (v, None), lambda c, parts: list(parts))
register(dict, lambda v: (v.values(), tuple(v)), lambda c, parts: dict(zip(c, parts, strict=True)))
register(OrderedDict, lambda v: (v.values(), tuple(v)), lambda c, parts: OrderedDict(zip(c, parts, strict=True)))
register(
    defaultdict,
    lambda v: (v.values(), (v.default_factory, tuple(v))),
    lambda c, parts: defaultdict(c[0], zip(c[1], parts, strict=True)),
)
register(deque, lambda v: (v, v.maxlen), lambda c, parts: deque(parts, c))
_NAMED_TUPLE = _Kind(lambda v: (v, None), lambda c, parts: None)


def _kind_of(value: Any) -> _Kind | None:
    kind = type(value)
    found = _KINDS.get(kind)
    if found is None and isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _NAMED_TUPLE
    return found


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the nesting. ``is_leaf`` stops at containers that it is true for."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return LEAF
    children, context = kind.flatten(tree)
    return TreeSpec(type(tree), context, tuple([_flatten(c, leaves, is_leaf) for c in children]))


def tree_unflatten(leaves: Iterable[Any], spec: TreeSpec) -> Any:
    """The tree of this nesting with these leaves.

    Raises:
        ValueError: too few or too many leaves.
    """
    items = list(leaves)
    if len(items) != spec.leaves:
        raise ValueError(f"{spec} has {spec.leaves} leaves, got {len(items)}")
    return _unflatten(iter(items), spec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.kind is None:
        return next(leaves)
    children = [_unflatten(leaves, c) for c in spec.children]
    kind = _KINDS.get(spec.kind)
    return spec.kind(*children) if kind is None else kind.unflatten(spec.context, children)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any) -> TreeSpec:
    """The nesting."""
    return tree_flatten(tree)[1]


def tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Apply ``fn`` to each leaf (and the leaves of ``rest`` at the same places).

    Raises:
        ValueError: the trees are nested differently; shows both.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves]
    for other in rest:
        other_leaves, other_spec = tree_flatten(other, is_leaf)
        if other_spec != spec:
            raise ValueError(f"trees are nested differently: {spec} and {other_spec}")
        columns.append(other_leaves)
    return tree_unflatten([fn(*items) for items in zip(*columns, strict=True)], spec)


def _show(spec: TreeSpec) -> str:
    parts = [str(c) for c in spec.children]
    if spec.kind is tuple:
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if spec.kind is list:
        return f"[{', '.join(parts)}]"
    assert spec.kind is not None
    if spec.kind in (dict, OrderedDict, defaultdict):
        keys = spec.context if spec.kind is not defaultdict else spec.context[1]
        inner = "{" + ", ".join([f"{k!r}: {p}" for k, p in zip(keys, parts, strict=True)]) + "}"
        return inner if spec.kind is dict else f"{spec.kind.__name__}({inner})"
    return f"{spec.kind.__name__}({', '.join(parts)})"
