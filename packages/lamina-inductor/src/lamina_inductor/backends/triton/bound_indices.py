"""Indices that are values, as statements of a phase's writer: bounded, with an error word for those out of range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina_fx import int64

from ...ir.kernel import BindIndex
from ...ir.program import INDEX_BITS
from .indices import address_text

if TYPE_CHECKING:
    from .kernel_printer import PhaseWriter

__all__ = ["ERROR", "write_bind"]

ERROR = "error"
"""Name of the parameter that points to the error word."""


def write_bind(writer: PhaseWriter, stmt: BindIndex) -> None:
    """Make a value an index."""
    name, shape = stmt.symbol.name, writer.shape_of(stmt.value)
    if stmt.mask is not None:
        shape |= writer.shapes[stmt.mask]
    writer.add(f"{name} = {stmt.value}")
    if stmt.size is not None:
        _check(writer, stmt, shape)
    if stmt.mask is not None:
        writer.add(f"{name} = tl.where({stmt.mask}, {name}, 0)")
    writer.define(name, f"{name}.to(tl.int{64 if writer.wide else 32})", int64, shape)


def _check(writer: PhaseWriter, stmt: BindIndex, shape: frozenset[str]) -> None:
    """Clamp an index; where it was out of range, write the error word."""
    name, size = stmt.symbol.name, writer.index(stmt.size)
    given = f"{name}_given" if stmt.wrap else name
    if stmt.wrap:
        writer.add(f"{given} = {name}")
        writer.add(f"{name} = tl.where({name} < 0, {name} + {size}, {name})")
    writer.add(f"{name}_bad = ({name} < 0) | ({name} >= {size})")
    mask, of_mask = writer.mask(shape, stmt.mask)
    place = address_text(ERROR, writer.widened("0", frozenset(), shape | of_mask))
    word = f"({given}.to(tl.int64) & {(1 << INDEX_BITS) - 1}) | {stmt.check << INDEX_BITS}"
    writer.add(f"tl.store({place}, {word}, {f'{name}_bad & {mask}' if mask else f'{name}_bad'})")
    writer.add(f"{name} = tl.where({name}_bad, 0, {name})")
