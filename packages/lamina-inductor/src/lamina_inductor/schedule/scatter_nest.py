"""The kernel of a scatter: one phase copies the input, one stores the updates in order.

Updates run in parallel over blocks of a dimension along which they never meet (the last one, as a vector, where it
is one of
those); a scatter without such a dimension is serial.
"""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import Integer, Min, Symbol

from ..ir.dtypes import compute_dtype
from ..ir.kernel import Loop
from ..ir.loops import Index, Size, Value
from .blocks import as_index, grain, in_order, nest
from .emitter import Emitter, linear_index
from .flat import Flat, analyse, substitute
from .groups import axis_symbol
from .pointwise_nest import pointwise_nest

__all__ = ["scatter_phases"]

BLOCK = 64


def scatter_phases(
    value: Value, emitter: Emitter, target: tuple[str, tuple[Size, ...]], in_place: bool = False
) -> tuple[Loop, ...]:
    """Both phases; ``target`` is the result's parameter and strides. ``in_place``: the input lies there, and is not
    copied."""
    if in_place:
        return (_updates(value, emitter, target),)
    axes, sizes, index = _axes(value.shape)
    operand = emitter.read(value.inputs[0], index)
    held = compute_dtype(value.dtype)
    emitter.store(target[0], value.dtype, linear_index(index, target[1]), emitter.named(operand, held), value.dtype)
    first = pointwise_nest(analyse(emitter.statements, axes, sizes, frozenset()))
    emitter.statements, emitter.memo = [], {}
    return (*first, _updates(value, emitter, target))


def _axes(shape: tuple[Size, ...]) -> tuple[list[Symbol], dict[Symbol, Size], Index]:
    axes: list[Symbol] = []
    index: list[Size] = []
    for size in shape:
        if type(size) is int and size == 1:
            index.append(0)
        else:
            axes.append(axis_symbol(len(axes), size))
            index.append(axes[-1])
    return (
        axes,
        {a: s for a, s in zip(axes, [s for s in shape if not (type(s) is int and s == 1)], strict=True)},
        tuple(index),
    )


def _updates(value: Value, emitter: Emitter, target: tuple[str, tuple[Size, ...]]) -> Loop:
    plan, updates = value.attrs, value.inputs[1]
    axes, sizes, index = _axes(updates.shape)
    place = linear_index(plan.target(emitter, value, index), target[1])
    operand = emitter.read(updates, index)
    emitter.store(target[0], value.dtype, place, operand, value.dtype, mode=plan.mode)
    flat = analyse(emitter.statements, axes, sizes, frozenset())
    kept = [index[d] for d in plan.kept(updates, value.inputs[2:]) if isinstance(index[d], Symbol)]
    if not kept:
        body = nest(axes, flat, in_order(flat, set(flat.info)), "serial")
        return Loop(axis_symbol(len(axes), 1), Integer(1), "parallel", body, grain=Integer(1))
    if kept[-1] is axes[-1]:
        return _by_blocks(flat, axes)
    return _by_axis(flat, axes, kept[0])


def _by_blocks(flat: Flat, axes: list[Symbol]) -> Loop:
    last = axes[-1]
    size: Any = flat.sizes[last]
    block = axis_symbol(len(axes), (size + BLOCK - 1) // BLOCK)
    place = axis_symbol(len(axes) + 1, BLOCK)
    statements = [substitute(s, {last: block * BLOCK + place}) for s in flat.statements]
    sizes = dict(flat.sizes) | {block: (size + BLOCK - 1) // BLOCK, place: Min(BLOCK, size - block * BLOCK)}
    split = analyse(statements, [block, *axes[:-1], place], sizes, frozenset())
    body = nest([*axes[:-1], place], split, in_order(split, set(split.info)))
    work = split.extent(axes[:-1])
    return Loop(
        block, as_index(sizes[block]), "parallel", body, grain=grain(work * BLOCK if type(work) is int else None)
    )


def _by_axis(flat: Flat, axes: list[Symbol], axis: Symbol) -> Loop:
    rest = [a for a in axes if a is not axis]
    body = nest(rest, flat, in_order(flat, set(flat.info)), "serial")
    work = flat.extent(rest)
    return Loop(axis, as_index(flat.sizes[axis]), "parallel", body, grain=grain(work if type(work) is int else None))
