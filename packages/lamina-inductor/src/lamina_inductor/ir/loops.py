"""Loop IR: a tensor is a function from an index to a value.

A ``Value`` says how one element is made from elements of other values; nothing is said of memory or order. Kinds:

- ``"buffer"``: lies in memory (an input, a constant, the result of an external step): an element is a load;
- ``"map"``: an index transform (reshape, permute, slice, ...): the element of its input at ``forward(index)``;
- ``"point"``: an operation on the elements of its inputs at the same index;
- ``"index"``: any other function of the index (iota, pad, cat, gather, philox): ``rule`` reads where it wants;
- ``"reduce"``: ``reduction`` of its input over ``axes``;
- ``"scan"``: ``attrs`` of its input's elements up to this one along ``axes[0]``;
- ``"sort"``: its input's elements along ``axes[0]`` in order, or their places (``attrs``, a ``SortPlan``);
- ``"extern"``: computed as a whole by a step of its own (matrix product, sort, ...), into memory;
- ``"item"``: one result of an extern value with several;
- ``"scatter"``: a copy of its first input into which its loops then store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from lamina_fx import DType

if TYPE_CHECKING:
    from lamina_fx.symbolic import Expr

__all__ = ["Index", "Size", "Value"]

Size = Union[int, "Expr"]
"""A size or an index: an int or an expression."""

Index = tuple[Size, ...]


class Value:
    """One tensor of the loop IR. Attributes as in the module's docstring, and:

    op: the operator's id; ``name``: of the node; ``origin``: (node name, operator id, "file:line").
    forward, back: of a ``map``: index of the value -> index of its input, and the reverse where it is one to one
    (else None).
    users: the values that read this one; ``order``: position in the program; ``cost``: rough work per element.
    lazy: made of indices and constants only; ``chain_cost``, ``chain_loads``: work and loads to compute an element
    from memory.
    backward: a large value of a backward pass: it joins no loops of the forward long before it.
    called: the operator that the user called, where this value is a part of it, for messages.
    gathers: of an ``index`` value that reads its first input at its own index but for this dimension.
    """

    __slots__ = (
        "attrs", "axes", "back", "backward", "buffer", "called", "chain_cost", "chain_loads", "cost", "dtype",
        "forward", "full", "gathers",
        "inputs", "kind", "lazy", "name", "op", "order", "origin", "outputs", "rule", "shape", "strides", "users",
    )  # fmt: skip

    def __init__(
        self, kind: str, op: str, name: str, inputs: tuple[Value, ...], shape: tuple[Size, ...], dtype: DType
    ) -> None:
        self.kind = kind
        self.op = op
        self.name = name
        self.inputs = inputs
        self.shape = shape
        self.dtype = dtype
        self.strides: tuple[Size, ...] | None = None
        self.rule: Callable[..., Any] | None = None
        self.forward: Callable[[Index], Index] | None = None
        self.back: Callable[[Index], Index | None] | None = None
        self.axes: tuple[int, ...] = ()
        self.attrs: Any = None
        self.origin: tuple[str, str, str] = (name, op, "")
        self.users: list[Value] = []
        self.outputs: list[Value] = []
        self.buffer: str | None = None
        self.called = ""
        self.order = 0
        self.cost = 1
        self.lazy = False
        self.backward = False
        self.chain_cost = 0
        self.chain_loads = 0
        self.gathers: int | None = None
        self.full: Index = ()
        for value in inputs:
            value.users.append(self)

    def __repr__(self) -> str:
        return f"{self.name}: {self.kind} {self.op}{list(self.shape)} {self.dtype}"
