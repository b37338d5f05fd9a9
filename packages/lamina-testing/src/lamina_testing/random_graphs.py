"""Random graphs of a few operators, for tests that two ways of running a graph agree.

>>> import numpy as np
>>> graph, inputs = random_graph(np.random.default_rng(0), 5)
>>> len(graph.placeholders) == len(inputs)
True

Values stay of moderate size (growing functions are followed by tanh), so that results can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_fx import Graph, GraphBuilder, TensorSpec, float32, int32
from lamina_prims import ops
from lamina_prims.arrays import spec_of

__all__ = ["random_graph"]

_UNARY = ("neg", "abs", "sin", "cos", "tanh", "sigmoid", "relu", "exp", "erf")
_BINARY = ("add", "sub", "mul", "maximum", "minimum")
_COMPARE = ("lt", "ge", "eq")
_REDUCE = ("sum", "mean", "amax", "amin")


class _Maker:
    """Grows one graph; ``values`` are the proxies made so far."""

    def __init__(self, rng: np.random.Generator, inputs: int) -> None:
        self.rng = rng
        self.graph = Graph()
        self.builder = GraphBuilder(self.graph)
        self.inputs: list[Any] = []
        self.values: list[Any] = [self.new_input(self.shape()) for _ in range(inputs)]

    def shape(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.rng.choice((1, 2, 3, 5, 8), self.rng.integers(1, 4)))

    def new_input(self, shape: tuple[int, ...]) -> Any:
        array = self.rng.uniform(-2, 2, shape).astype(np.float32)
        self.inputs.append(array)
        return self.builder.proxy(self.graph.placeholder(f"x{len(self.inputs)}", spec=spec_of(array)))

    def pick(self) -> Any:
        """Some value, as float32; late ones are likelier."""
        place = len(self.values) - 1 - min(int(self.rng.exponential(2.0)), len(self.values) - 1)
        value = self.values[place]
        return value if value.dtype is float32 else ops.convert_element_type(value, float32)

    def partner(self, value: Any) -> Any:
        """A value of the same shape, a new input that broadcasts, or a number."""
        same = [v for v in self.values if v.shape == value.shape and v.dtype is float32]
        kind = self.rng.integers(3)
        if kind == 0 and same:
            return same[int(self.rng.integers(len(same)))]
        if kind == 1:
            return float(np.float32(self.rng.uniform(-2, 2)))
        keep = self.rng.integers(0, 2, len(value.shape))
        return self.new_input(tuple(n if k else 1 for n, k in zip(value.shape, keep, strict=True)))

    def word(self, words: tuple[str, ...]) -> Any:
        return getattr(ops, words[int(self.rng.integers(len(words)))])

    def dim(self, value: Any) -> int:
        return int(self.rng.integers(len(value.shape)))

    # -- one step of each kind ---------------------------------------------------------------------

    def unary(self) -> Any:
        op = self.word(_UNARY)
        value = self.pick()
        return op(ops.tanh(value)) if op.id == "exp" else op(value)

    def binary(self) -> Any:
        value = self.pick()
        return ops.tanh(self.word(_BINARY)(value, self.partner(value)))

    def reduce(self) -> Any:
        value = self.pick()
        if not value.shape:
            return ops.neg(value)
        return self.word(_REDUCE)(value, self.dim(value), bool(self.rng.integers(2)))

    def scan(self) -> Any:
        value = self.pick()
        return ops.cumsum(value, self.dim(value)) if value.shape else value

    def reorder(self) -> Any:
        value = self.pick()
        return ops.permute(value, tuple(int(d) for d in self.rng.permutation(len(value.shape))))

    def flatten(self) -> Any:
        return ops.reshape(self.pick(), (-1,))

    def cut(self) -> Any:
        value = self.pick()
        if not value.shape:
            return ops.unsqueeze(value, 0)
        dim = self.dim(value)
        size = int(value.shape[dim])
        start = int(self.rng.integers(size))
        return ops.slice(value, dim, start, int(self.rng.integers(start, size)) + 1, int(self.rng.integers(1, 3)))

    def join(self) -> Any:
        value = self.pick()
        if not value.shape:
            return ops.unsqueeze(value, 0)
        return ops.cat([value, self.new_input(tuple(value.shape))], self.dim(value))

    def turn(self) -> Any:
        value = self.pick()
        return ops.flip(value, (self.dim(value),)) if value.shape else value

    def multiply(self) -> Any:
        value = self.pick()
        if not value.shape:
            return ops.neg(value)
        other = self.new_input((int(value.shape[-1]), int(self.rng.integers(1, 5))))
        return ops.tanh(ops.matmul(value, other))

    # -- steps that jump: a rounding difference before them is a large one behind ----------------------

    def round_trip(self) -> Any:
        return ops.convert_element_type(ops.mul(self.pick(), 4.0), int32)

    def choose(self) -> Any:
        value = self.pick()
        condition = self.word(_COMPARE)(value, self.partner(value))
        return ops.where(condition, value, self.partner(value))

    def floor(self) -> Any:
        return ops.floor(self.pick())

    def place(self) -> Any:
        value = self.pick()
        return ops.argmax(value, self.dim(value)) if value.shape else ops.neg(value)


_STEPS: tuple[Callable[[_Maker], Any], ...] = (
    _Maker.unary, _Maker.unary, _Maker.binary, _Maker.binary, _Maker.reduce, _Maker.reduce, _Maker.scan,
    _Maker.reorder, _Maker.flatten, _Maker.cut, _Maker.join, _Maker.turn, _Maker.multiply,
)  # fmt: skip
_JUMPS = (_Maker.choose, _Maker.round_trip, _Maker.floor, _Maker.place)


def random_graph(
    rng: np.random.Generator, steps: int, *, inputs: int = 2, jumps: bool = True
) -> tuple[Graph, list[Any]]:
    """A graph of about ``steps`` operators that returns every value nothing else uses, and arrays for its inputs.

    The operators are the front end's: decompose the graph for a backend. ``jumps=False`` leaves out comparisons,
    rounding and argmax, behind which a rounding difference can become a large one.
    """
    maker = _Maker(rng, inputs)
    choice = _STEPS + _JUMPS if jumps else _STEPS
    for _ in range(steps):
        maker.values.append(choice[int(rng.integers(len(choice)))](maker))
    ends = [v for v in maker.values if not v.node.users and v.node.op == "call_function"]
    assert all(isinstance(v.node.spec, TensorSpec) for v in ends)
    nodes = tuple(v.node for v in ends) or (maker.values[-1].node,)
    maker.graph.output(tuple(dict.fromkeys(nodes)))
    return maker.graph, maker.inputs
