"""One step of a graph: its kind, target, arguments, users, and what is known of its value.

A node is made by ``Graph`` only. Arguments are nested tuples, lists, dicts and slices of nodes, numbers,
strings, dtypes, devices and graphs (subgraphs).
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .spec import Spec

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["KINDS", "Argument", "Node", "map_arguments", "map_leaves"]

Argument = Any
"""A node, a constant, or a tuple, list, dict or slice of them."""

KINDS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
"""The six kinds of node, as in torch.fx."""


def map_arguments(arguments: Argument, fn: Callable[[Node], Any]) -> Any:
    """Copy nested arguments with ``fn`` applied to each node in them."""
    kind = type(arguments)
    if kind is Node:
        return fn(arguments)
    if kind is tuple:  # most items are nodes and integers: no call for those
        return tuple([fn(a) if type(a) is Node else a if type(a) is int else map_arguments(a, fn) for a in arguments])
    if kind is list:
        return [map_arguments(a, fn) for a in arguments]
    if kind is dict:
        return {key: map_arguments(a, fn) for key, a in arguments.items()}
    if kind is slice:
        return slice(
            map_arguments(arguments.start, fn),
            map_arguments(arguments.stop, fn),
            map_arguments(arguments.step, fn),
        )
    if isinstance(arguments, tuple):  # a named tuple
        return kind(*[map_arguments(a, fn) for a in arguments])
    return arguments


def map_leaves(arguments: Argument, fn: Callable[[Any], Any]) -> Any:
    """Copy nested arguments with ``fn`` applied to everything that is no container."""
    kind = type(arguments)
    if kind is tuple or kind is list:
        return kind([map_leaves(a, fn) for a in arguments])
    if kind is dict:
        return {key: map_leaves(a, fn) for key, a in arguments.items()}
    if kind is slice:
        return slice(*[map_leaves(a, fn) for a in (arguments.start, arguments.stop, arguments.step)])
    if isinstance(arguments, tuple):
        return kind(*[map_leaves(a, fn) for a in arguments])
    return fn(arguments)


class Node:
    """A step of a ``Graph``.

    Attributes:
        name: unique in its graph; a Python identifier.
        op: one of ``KINDS``.
        target: the operator id for ``call_function`` (a string such as ``"add"``), the method name,
            the module or attribute path, or the placeholder's name.
        args, kwargs: the arguments; set through the properties, so that ``users`` stays right.
        users: the nodes that have this one among their arguments, in order (a dict used as a set).
        spec: what is known of the value: ``TensorSpec``, ``ScalarSpec``, a tuple of specs, or None.
        effect: None for a pure node. Otherwise a word (``"write"``, ``"random"``, ``"print"``, ``"assert"``,
            ``"grad"``): the node is never removed, merged or moved across another with an effect.
        regions: tags of the regions that the node stands in (``"no_grad"``, ``"checkpoint:0"``), outermost first.
        meta: anything else; passes keep it. ``meta["source"]`` is the user's ``(file, line, function)``.
    """

    __slots__ = (
        "_args", "_kwargs", "_next", "_prev", "effect", "graph", "meta", "name", "op", "regions",
        "spec", "target", "users",
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: str,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
    ) -> None:
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.users: dict[Node, None] = {}
        self.spec: Spec = None
        self.effect: str | None = None
        self.regions: tuple[str, ...] = ()
        self.meta: dict[str, Any] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._prev: Node = self
        self._next: Node = self
        self.set_arguments(args, kwargs)

    @property
    def args(self) -> tuple[Argument, ...]:
        """Positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self.set_arguments(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Keyword arguments. Assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self.set_arguments(self._args, kwargs)

    @property
    def next(self) -> Node:
        """The following node; the root after the last one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The preceding node; the root before the first one."""
        return self._prev

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        return list(dict.fromkeys(iter_nodes((self._args, self._kwargs))))

    def replace_all_uses_with(self, value: Node, keep: Callable[[Node], bool] = lambda user: False) -> list[Node]:
        """Let every user of this node use ``value`` instead, except those that ``keep`` is true for.

        Returns the changed users.
        """
        changed = [user for user in self.users if user is not value and not keep(user)]
        for user in changed:
            user.replace_input_with(self, value)
        return changed

    def replace_input_with(self, old: Node, new: Node) -> None:
        """Put ``new`` wherever ``old`` stands among this node's arguments."""

        def swap(node: Node) -> Node:
            return new if node is old else node

        self.set_arguments(map_arguments(self._args, swap), map_arguments(self._kwargs, swap))

    def update_arg(self, index: int, value: Argument) -> None:
        """Change one positional argument."""
        args = list(self._args)
        args[index] = value
        self.args = tuple(args)

    def update_kwarg(self, name: str, value: Argument) -> None:
        """Change or add one keyword argument."""
        self.kwargs = {**self._kwargs, name: value}

    def prepend(self, node: Node) -> None:
        """Move ``node``, of the same graph, in front of this one."""
        if node is not self:
            node._prev._next, node._next._prev = node._next, node._prev
            node._prev, node._next = self._prev, self
            self._prev._next = node
            self._prev = node

    def append(self, node: Node) -> None:
        """Move ``node``, of the same graph, behind this one."""
        if node is not self:
            self._next.prepend(node)

    def set_arguments(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        """Replace all arguments at once."""
        if self._args or self._kwargs:
            for node in iter_nodes((self._args, self._kwargs)):
                node.users.pop(self, None)
        self._args = args
        self._kwargs = kwargs
        for item in args:
            if type(item) is Node:  # the usual case, without a generator
                item.users[self] = None
            elif type(item) not in _LEAVES:
                for node in iter_nodes(item):
                    node.users[self] = None
        if kwargs:
            for node in iter_nodes(kwargs):
                node.users[self] = None

    def __repr__(self) -> str:
        return self.name


def iter_nodes(arguments: Argument) -> Iterator[Node]:
    """Yield each node in nested arguments, as often as it stands there."""
    kind = type(arguments)
    if kind is Node:
        yield arguments
    elif kind is tuple or kind is list or isinstance(arguments, tuple):
        for item in arguments:
            if type(item) is Node:
                yield item
            elif type(item) not in _LEAVES:
                yield from iter_nodes(item)
    elif kind is dict:
        for item in arguments.values():
            yield from iter_nodes(item)
    elif kind is slice:
        yield from iter_nodes((arguments.start, arguments.stop, arguments.step))


_LEAVES = frozenset((int, float, bool, str, type(None), complex))
