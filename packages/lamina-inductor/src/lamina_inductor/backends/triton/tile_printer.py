"""A phase of ``schedule.tiled_nest`` as statements of a phase's writer: a program takes a tile of two or three axes.

Programs side by side take tiles side by side along the last axis. Each access is affine in the indices of the tile, so
the compiler sees along which dimension its addresses are neighbours, gives it threads in that order, and exchanges
elements between threads where orders differ.

    program = tl.program_id(0)
    i1 = program % 4 * XBLOCK + tl.arange(0, XBLOCK)[None, :]
    i0 = program // 4 % 2 * YBLOCK + tl.arange(0, YBLOCK)[:, None]
    i2 = program // 8
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina_fx.symbolic import Symbol

from ...ir.kernel import Load, Loop, Stmt, Store
from ...schedule.blocks import closure, in_order
from ...schedule.coalesce import walked_axis
from ...schedule.flat import affine, analyse
from .axis_tiles import tile_loops
from .row_loads import stores_last
from .tiles import constant

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["write_tiles"]


def write_tiles(writer: PhaseWriter, phase: Loop) -> None:
    """The whole phase."""
    loops = tile_loops(phase)
    writer.add(f"program = tl.program_id(0){'.to(tl.int64)' if writer.wide else ''}")
    rest = "program"
    for loop, dim in zip(reversed(loops), reversed(writer.dims), strict=True):
        last = loop is loops[0] and constant(phase.extent) == 1
        rest = _begin_axis(writer, loop, dim, rest, last)
    if constant(phase.extent) != 1:
        writer.add(f"{phase.axis.name} = {rest}")
    writer.shapes[phase.axis.name] = frozenset()
    body = _by_layout(loops[-1].body, [loop.axis for loop in loops])
    updated = {s.buffer for s in body if type(s) is Load}
    for stmt in body:
        if type(stmt) is Store and stmt.buffer in updated:
            writer.add("tl.debug_barrier()")  # the old element may be another thread's to read
            updated = set()
        writer.statement(stmt)


def _begin_axis(writer: PhaseWriter, loop: Loop, dim: str, rest: str, last: bool) -> str:
    """The index along an axis, and its mask; returns the number of the program among those with this index.

    ``last``: there is one such program.
    """
    name, block = loop.axis.name, f"{dim.upper()}BLOCK"
    extent, side = constant(loop.extent), writer.tile.side(dim)
    count = f"{name}_tiles" if extent is None else str(-(-extent // side))
    if extent is None:
        writer.add(f"{count} = ({writer.index(loop.extent)} + {side - 1}) // {side}")
    number = rest if last else f"{rest} % {count}"
    wide = ".to(tl.int64)" if writer.wide else ""
    if count != "1":
        writer.add(f"{name} = {number} * {block} + tl.arange(0, {block}){writer.across(dim)}")
    else:
        writer.add(f"{name} = tl.arange(0, {block}){writer.across(dim)}{wide}")
    writer.shapes[name] = frozenset(dim)
    if side > 1 and (extent is None or extent % side):
        writer.add(f"inside_{dim} = {name} < {writer.index(loop.extent)}")
        writer.masks[dim] = (f"inside_{dim}", frozenset(dim))
    return rest if count == "1" else f"{rest} // {count}"


def _by_layout(body: tuple[Stmt, ...], axes: list[Symbol]) -> list[Stmt]:
    """The statements with loads that walk memory by another axis than the last, and what they need, in front, and
    stores at the end.

    The compiler takes one layout for an operator whose operands have several: that of the load which it saw last. So
    an element changes hands once, on its way from a transposed operand to the result.
    """
    ordered = stores_last(body)
    values = [s for s in ordered if type(s) is not Store]
    if ordered[: len(values)] != values:
        return ordered
    known = frozenset(axes)
    flat = analyse(values, axes, {}, frozenset())
    front: dict[Any, None] = {}
    for axis in axes[:-1]:
        loads = [s for s in values if type(s) is Load and walked_axis(affine(s.index, known), axes[-1]) is axis]
        needed = closure(flat, [s.name for s in loads], lambda i: False)
        front.update(dict.fromkeys([i.key for i in in_order(flat, needed)]))
    rest = [i.stmt for key, i in flat.info.items() if key not in front]
    return [*[flat.info[key].stmt for key in front], *rest, *ordered[len(values) :]]
