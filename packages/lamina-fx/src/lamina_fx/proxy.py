"""Proxies: values that write a node for each operation done on them.

An operator called on a proxy adds a ``call_function`` node to the proxy's graph. When the operator knows
the result's spec, the proxy shows it (``shape``, ``dtype``), so code that asks for sizes can be traced.

>>> from lamina_fx import Graph, GraphBuilder
>>> g = Graph()
>>> b = GraphBuilder(g)
>>> x = b.proxy(g.placeholder("x"))
>>> _ = g.output((x + 1).node)
>>> [n.name for n in g.nodes]
['x', 'add', 'output']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .device import Device
from .dtype import DType
from .node import Node
from .spec import Size, TensorSpec

if TYPE_CHECKING:
    from .builder import GraphBuilder, OperatorLike

__all__ = ["Attribute", "Proxy"]

BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
"""Python's binary operators that have a reflected form, and the operator ids they mean."""

COMPARISON = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not", "pos": "positive"}

_SPEC_NAMES = frozenset(("spec", "shape", "dtype", "device", "ndim"))


class Proxy:
    """Stands for the value of a node.

    Python's operators call the operators of ``BINARY``, ``COMPARISON`` and ``UNARY`` (or what the builder's resolver
    has as ``__add__`` and so on); other attributes are methods.
    """

    __slots__ = ("builder", "node")
    __lamina_priority__ = 1000
    __array_ufunc__ = None  # NumPy leaves ``array + proxy`` to the proxy

    def __init__(self, node: Node, builder: GraphBuilder) -> None:
        self.node = node
        self.builder = builder

    def __lamina_operator__(self, operator: OperatorLike, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called by an operator that finds this proxy among its arguments."""
        return self.builder.call(operator, args, kwargs)

    # -- what is known of the value ------------------------------------------------------------------

    @property
    def spec(self) -> TensorSpec:
        """The tensor's spec.

        Raises:
            AttributeError: nothing is known of this value, or it is no tensor.
        """
        return self._known_spec()

    def _known_spec(self) -> TensorSpec:
        if not isinstance(self.node.spec, TensorSpec):
            raise AttributeError(f"the value of node {self.node.name!r} has no tensor spec (it is {self.node.spec})")
        return self.node.spec

    @property
    def shape(self) -> tuple[Size, ...]:
        """Sizes."""
        return self._known_spec().shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._known_spec().dtype

    @property
    def device(self) -> Device:
        """Device."""
        return self._known_spec().device

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._known_spec().shape)

    # -- calls -----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" and name[-2:] == "__":
            raise AttributeError(name)
        builder = self.builder
        if builder.resolver is None:
            return Attribute(self, name)
        if name in _SPEC_NAMES:
            raise AttributeError(f"the {name} of {self.node.name!r} is not known: its spec is {self.node.spec}")
        if not builder.has_method(name):
            raise AttributeError(f"no operator is a method {name!r} (asked of the proxy of {self.node.name!r})")
        return _Method(self, name)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.node.spec, TensorSpec) and self.builder.resolver is not None:
            return _dispatch(self.builder, "__getitem__", "index", (self, index))
        return self.builder.create("call_function", "getitem", (self, index))

    def __bool__(self) -> bool:
        raise TypeError(
            f"the truth of {self.node.name!r} is not known while tracing; use where(), or cond() for whole branches"
        )

    def __len__(self) -> int:
        size = self._length()
        if type(size) is not int:
            raise TypeError(f"the length of {self.node.name!r} is not known while tracing")
        return size

    def __iter__(self) -> Iterator[Any]:
        size = self._length()
        if type(size) is not int:
            raise TypeError(f"cannot iterate over {self.node.name!r} while tracing: its length is not known")
        return iter([self[index] for index in range(size)])

    def _length(self) -> Size | None:
        spec = self.node.spec
        return spec.shape[0] if isinstance(spec, TensorSpec) and spec.shape else None

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"


class Attribute:
    """``proxy.name`` when nothing says what it is: a method when called, otherwise read with ``getattr``."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Proxy, name: str) -> None:
        self.owner = owner
        self.name = name

    @property
    def value(self) -> Proxy:
        """The attribute's value, as a node of its own."""
        return self.owner.builder.create("call_function", "getattr", (self.owner, self.name))

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        """Call it as a method."""
        return self.owner.builder.create("call_method", self.name, (self.owner, *args), kwargs)

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" and name[-2:] == "__":
            raise AttributeError(name)
        return getattr(self.value, name)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index]

    def __repr__(self) -> str:
        return f"Proxy({self.owner.node.name}).{self.name}"


class _Method:
    """A method of a proxy, bound."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Proxy, name: str) -> None:
        self.owner = owner
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        builder = self.owner.builder
        operator = builder.method(self.name, (self.owner, *args), kwargs)
        if operator is None:
            raise AttributeError(f"no operator is a method {self.name!r}")
        return builder.call(operator, (self.owner, *args), kwargs)


def to_node(value: Any) -> Any:
    """The node of a proxy; other values as they are."""
    if isinstance(value, Proxy):
        return value.node
    return value.value.node if isinstance(value, Attribute) else value


def _dispatch(builder: GraphBuilder, method: str, id: str, args: tuple[Any, ...]) -> Any:
    """Call the resolver's ``method`` when it has it, otherwise the operator ``id``."""
    operator = builder.method(method, args, {})
    return builder.call_id(id, args) if operator is None else builder.call(operator, args, {})


def _binary(method: str, id: str) -> Callable[[Proxy, Any], Any]:
    def operator(self: Proxy, other: Any) -> Any:
        return _dispatch(self.builder, method, id, (self, other))

    return operator


def _reflected(method: str, id: str) -> Callable[[Proxy, Any], Any]:
    def operator(self: Proxy, other: Any) -> Any:
        found = self.builder.method(method, (self, other), {})
        if found is None:
            return self.builder.call_id(id, (other, self))
        return self.builder.call(found, (self, other), {})

    return operator


def _unary(method: str, id: str) -> Callable[[Proxy], Any]:
    def operator(self: Proxy) -> Any:
        return _dispatch(self.builder, method, id, (self,))

    return operator


def _install(owner: type[Proxy]) -> None:
    for name, id in BINARY.items():
        setattr(owner, f"__{name}__", _binary(f"__{name}__", id))
        setattr(owner, f"__r{name}__", _reflected(f"__r{name}__", id))
    for name, id in COMPARISON.items():
        setattr(owner, f"__{name}__", _binary(f"__{name}__", id))
    for name, id in UNARY.items():
        setattr(owner, f"__{name}__", _unary(f"__{name}__", id))


_install(Proxy)


def _on_attribute(name: str) -> Callable[..., Any]:
    def operator(self: Attribute, *args: Any) -> Any:
        return getattr(self.value, name)(*args)

    return operator


for _name in (*BINARY, *[f"r{name}" for name in BINARY], "neg", "abs", "invert"):
    setattr(Attribute, f"__{_name}__", _on_attribute(f"__{_name}__"))
