"""``as_strided`` as an index transform: its numbers count places in memory, where a value of loop IR has only indices.

A call is first taken back to the value whose memory it shows, through the views between. Where that value's elements
lie is what its spec says, as eager code lays them out; what memory the scheduler gives it, if any, does not matter.

>>> from lamina_fx import TensorSpec, float32
>>> element_at(5, TensorSpec((4, 3), float32, (1, 4)))
(1, 1)
"""

from __future__ import annotations

from typing import Any

from lamina_fx import Node, TensorSpec
from lamina_prims import operator
from lamina_prims.dims import surely_same

from ..ir.loops import Index, Value
from .table import Call, lowers, size_of, sizes_of
from .views import index_map, unflatten_index

__all__ = ["element_at", "from_memory"]

_SAME_START = frozenset(("alias", "broadcast_in_dim", "detach", "permute"))
_OTHER_VIEWS = frozenset(("as_strided", "reshape", "slice"))


def from_memory(node: Node) -> tuple[Node, Any, Any, Any]:
    """The arguments of an ``as_strided`` node, of the value that is no view of another."""
    input, size, stride, offset = operator("as_strided").schema.bind(node.args, node.kwargs)
    offset = offset or 0
    while input.op == "call_function":
        start = _start(input)
        if start is None:
            break
        input, offset = input.all_input_nodes[0], offset + start
    return input, size, stride, offset


def _start(node: Node) -> Any:
    """Where a view begins in the memory of its first argument; None of a call that makes a value."""
    if node.target in _SAME_START:
        return 0
    if node.target not in _OTHER_VIEWS:
        return None
    args = operator(node.target).schema.bind(node.args, node.kwargs)
    if node.target == "slice":
        _, dim, start, *_ = args
        return (start or 0) * args[0].spec.strides[dim]
    if node.target == "as_strided":
        return args[3] or 0
    return 0 if operator("reshape").views((args[0].spec, *args[1:]), {}) else None


def element_at(number: Any, spec: TensorSpec) -> Index | None:
    """Index of the element at a place in memory; None where strides leave that open (elements that overlap)."""
    shape, strides = sizes_of(spec.shape), sizes_of(spec.strides)
    if any(type(n) is int and n == 0 for n in shape):
        return (0,) * len(shape)
    dims = [d for d, n in enumerate(shape) if not (_is(n, 1) or _is(strides[d], 0))]
    step = min((strides[d] for d in dims if type(strides[d]) is int), default=1)
    found = _dense(number // step if step != 1 else number, dims, spec, step)
    found = _with_gaps(number, dims, shape, strides) if found is None else found
    return None if found is None else tuple([found.get(d, 0) for d in range(len(shape))])


def _is(size: Any, value: int) -> bool:
    return type(size) is int and size == value


def _dense(number: Any, dims: list[int], spec: TensorSpec, step: Any) -> dict[int, Any] | None:
    """Indices by dimension, where each dimension's stride is the extent of the one inside it."""
    order: list[int] = []
    left = list(dims)
    while left:
        inner = next((d for d in left if surely_same((spec.strides[d],), (step,))), None)
        if inner is None:
            return None
        left.remove(inner)
        order.insert(0, inner)
        step = step * spec.shape[inner]
    return dict(zip(order, unflatten_index(number, sizes_of([spec.shape[d] for d in order])), strict=True))


def _with_gaps(number: Any, dims: list[int], shape: Any, strides: Any) -> dict[int, Any] | None:
    """Indices by dimension, where each dimension's stride leaves room for those inside it."""
    if any(type(n) is not int for d in dims for n in (shape[d], strides[d])):
        return None
    order = sorted(dims, key=lambda d: -strides[d])
    room = 1
    for d in reversed(order):
        if strides[d] < room:
            return None
        room += strides[d] * (shape[d] - 1)
    found: dict[int, Any] = {}
    for d in order:
        found[d], number = number // strides[d], number % strides[d]
    return found


@lowers("as_strided")
def _as_strided(call: Call) -> Value | None:
    input, spec, strides = call["input"], call.specs[0], sizes_of(call["stride"])
    offset = size_of(call["storage_offset"])
    if input.kind == "buffer" and input.attrs[0] == "input" and not _is_whole(spec):
        return None  # the step reads the input's memory, with what lies between its elements and around them
    if element_at(0, spec) is None:
        raise NotImplementedError(
            f"as_strided: elements of {spec} overlap in memory, or lie apart by strides that cannot be compared, and "
            "it is no input of this program; give as_strided a clone() of it"
        )

    def forward(index: Index) -> Index:
        number: Any = offset
        for i, stride in zip(index, strides, strict=True):
            number = number + i * stride
        found = element_at(number, spec)
        assert found is not None
        return found

    return index_map(call, input, forward, None)


def _is_whole(spec: TensorSpec) -> bool:
    """Has memory no gaps, and several elements: then an index tells any place in it, also before and behind it."""
    several = [d for d, n in enumerate(spec.shape) if not _is(n, 1)]
    return bool(several) and _dense(0, several, spec, 1) is not None
