"""A concatenation of two pieces of one tensor in exchanged order is a rotation of it: one read of each element.

``cat((-x[..., h:], x[..., :h]), -1)``, the rotation of halves in a rotary embedding, reads ``x`` at ``(i + h) mod n``
and changes the sign of some elements; as a concatenation every element would be computed twice, under two masks. On a
grid only: on the CPU the division by ``n`` would cost more than the branch.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Symbol

from ..ir.loops import Index, Value
from .table import Call
from .views import map_value

__all__ = ["rotation"]


def rotation(call: Call, parts: tuple[Value, ...], dim: int) -> Value | None:
    """The value of the concatenation, or None when it is no rotation on a GPU."""
    if len(parts) != 2 or getattr(call.spec, "device", None) is None or call.spec.device.type != "cuda":
        return None
    sizes = [part.shape[dim] for part in parts]
    (first, turned_first), (second, turned_second) = (_without_sign(part) for part in parts)
    a, b = _piece(first, dim), _piece(second, dim)
    if a is None or b is None or a[0] is not b[0] or any(type(s) is not int for s in sizes):
        return None
    source, whole = a[0], sum(sizes)  # type: ignore[arg-type]
    if source.shape[dim] != whole or a[1] != sizes[1] or b[1] != 0 or source.dtype is not call.spec.dtype:
        return None

    def forward(index: Index) -> Index:
        return (*index[:dim], (index[dim] + sizes[1]) % whole, *index[dim + 1 :])

    def back(index: Index) -> Index:
        return (*index[:dim], (index[dim] + sizes[0]) % whole, *index[dim + 1 :])

    turned = map_value(source, source.shape, forward, back)
    value = call.value("index", (turned,))
    value.rule, value.attrs = _write, (dim, sizes[0], turned_first, turned_second)
    return value


def _without_sign(value: Value) -> tuple[Value, bool]:
    """(the value or what it is the negative of, whether it is)."""
    negative = value.kind == "point" and value.op == "neg" and len(value.inputs) == 1
    return (value.inputs[0], True) if negative else (value, False)


def _piece(value: Value, dim: int) -> tuple[Value, int] | None:
    """(tensor, first place) when the value is a piece of a tensor along ``dim``."""
    if value.kind != "map" or value.forward is None or len(value.inputs[0].shape) != len(value.shape):
        return None
    index = tuple([Symbol(f"d{k}", 0, size - 1) for k, size in enumerate(value.shape)])
    found = value.forward(index)
    begin = found[dim] - index[dim]
    same = all(a == b for k, (a, b) in enumerate(zip(found, index, strict=True)) if k != dim)
    number = begin if type(begin) is int else begin.value if begin.is_constant else None
    return (value.inputs[0], number) if same and type(number) is int else None


def _write(emitter: Any, value: Value, index: Index) -> Any:
    dim, end, first, second = value.attrs
    found = emitter.read(value.inputs[0], index)
    if not first and not second:
        return found
    minus = emitter.compute_let(value.dtype, "neg", [found])
    if first and second:
        return minus
    inside = emitter.condition(index[dim] < end)
    if type(inside) is not str:
        return minus if inside is first else found
    return emitter.compute_let(value.dtype, "where", [inside, *((minus, found) if first else (found, minus))])
