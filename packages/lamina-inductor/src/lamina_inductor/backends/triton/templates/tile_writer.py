"""Statements of kernel IR inside a template: an epilogue printed on the tile that the template has computed.

The template says which tile dimensions each axis of the kernel has (``x``: down, ``BLOCK_M`` elements; ``r``: across,
``BLOCK_N``), which masks hold along them, and what stands for an element of the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Expr, as_expr

from ....ir.kernel import BindIndex, Let, Load, Loop, Stmt
from ....ir.program import KernelCall
from ....schedule.share import rename
from ..kernel_printer import PhaseWriter, Shape
from ..tiles import Tile
from .kernel_text import KernelText
from .short_forms import Short, short_forms

__all__ = ["TileWriter", "statements_of"]


def statements_of(call: KernelCall) -> tuple[Loop, list[Stmt]]:
    """The phase of an epilogue, and its statements in a row, with the call's sizes in their place."""
    (phase,) = call.kernel.body
    given: dict[Expr, Any] = {s: as_expr(v) for s, v in zip(call.kernel.sizes, call.sizes, strict=True)}
    flat: list[Stmt] = []
    for stmt in phase.body:
        flat.extend(stmt.body if type(stmt) is Loop else (stmt,))
    return phase, [_with_sizes(stmt, given) for stmt in flat]


def _with_sizes(stmt: Stmt, given: dict[Expr, Any]) -> Stmt:
    if type(stmt) is BindIndex and isinstance(stmt.size, Expr):
        return replace(stmt, size=as_expr(stmt.size).substitute(given))
    return rename(stmt, given)


class TileWriter(PhaseWriter):
    """Writes an epilogue's statements as lines of ``text``.

    ``shapes``: axis name -> its dimensions. ``masks``: dimension -> the name of the mask along it. ``computed``:
    parameter -> (name of the tile that holds its elements, dtype of that).
    """

    rows, columns = "BLOCK_M", "BLOCK_N"

    def __init__(
        self,
        text: KernelText,
        call: KernelCall,
        phase: Loop,
        shapes: dict[str, str],
        masks: dict[str, str],
        computed: dict[str, tuple[str, DType]],
    ) -> None:
        super().__init__(call.kernel, phase, Tile(16, 16), text.wide)
        self.text, self.call, self.computed = text, call, computed
        self.short: dict[str, Short] = {}
        self.names = text.symbols
        self.lines = []
        self.shapes.update({name: frozenset(dims) for name, dims in shapes.items()})
        self.masks.update({dim: (name, frozenset(dim)) for dim, name in masks.items()})

    def index(self, expr: Any) -> str:
        """Text of an index expression; sizes in it become parameters of the kernel."""
        if isinstance(expr, Expr):
            self.text.use(s for s in expr.free_symbols if s.name not in self.shapes)
        return super().index(expr)

    def tile_text(self, shape: Shape) -> str:
        """A tile's sizes."""
        return f"[{self.rows if 'x' in shape else '1'}, {self.columns if 'r' in shape else '1'}]"

    def write_all(self, statements: Sequence[Stmt]) -> bool:
        """Write the statements and declare the pointers they use; tells whether there is an index check."""
        checks = False
        self.short = short_forms(statements, {p.name: p.dtype for p in self.call.kernel.params})
        for stmt in statements:
            checks = checks or (type(stmt) is BindIndex and stmt.size is not None)
            self.statement(stmt)
        self.text.add(*self.lines)
        for param, buffer in zip(self.call.kernel.params, self.call.buffers, strict=True):
            if param.name in self.buffers:
                self.text.pointer(param.name, param.dtype, buffer)
        return checks

    def statement(self, stmt: Stmt) -> None:
        """A statement; loads of the product are the tile itself."""
        if type(stmt) is Load and stmt.buffer in self.computed and stmt.mask is None:
            name, dtype = self.computed[stmt.buffer]
            self.define(stmt.name, name, dtype, frozenset("xr"))
            return
        short = self.short.get(getattr(stmt, "name", ""))
        if short is not None:
            assert type(stmt) is Let
            if short.function:
                text = f"lm_{short.function}_narrow({short.argument})"
                self.define(stmt.name, text, stmt.dtype, self.shape_of(short.argument))
            return
        super().statement(stmt)
