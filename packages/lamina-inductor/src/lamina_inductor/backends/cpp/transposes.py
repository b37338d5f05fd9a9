"""Filling a tile the other way round: a pass over kernel IR that finds the loops which do it.

A schedule reads a tile along the memory and stores it transposed in a local array. As a vectorised loop that is a
scatter, 16 stores for
16 elements; as ``TransposeTile`` it is blocks of 8 x 8 in registers.

    Loop a in A: serial                              TransposeTile tile[b*P + a] = b0[... + a*S + b], a < A, b < B
      Loop b in B: simd                       ->
        v = load b0[... + a*S + b];  store tile[b*P + a] = v
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lamina_fx.symbolic import Expr, as_expr

from ...ir.kernel import Kernel, Load, Local, Loop, Stmt, Store, walk

__all__ = ["TransposeTile", "find_transposes"]


@dataclass(frozen=True, slots=True)
class TransposeTile:
    """``target[start + b * pitch + a] = buffer[first + a * stride + b]``. Only this backend makes and prints it."""

    target: str
    start: Expr
    pitch: Expr
    buffer: str
    first: Expr
    stride: Expr
    rows: Expr
    columns: Expr


def find_transposes(kernel: Kernel) -> Kernel:
    """The kernel with its transposing fills made explicit; the same object when there are none."""
    locals_ = {s.name for s in walk(kernel.body) if type(s) is Local and s.dtype.itemsize in (4, 8)}
    if not locals_:
        return kernel
    return replace(kernel, body=tuple([replace(p, body=_block(p.body, locals_)) for p in kernel.body]))


def _block(body: tuple[Stmt, ...], locals_: set[str]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if type(stmt) is Loop:
            result.append(_transpose(stmt, locals_) or replace(stmt, body=_block(stmt.body, locals_)))
        else:
            result.append(stmt)
    return tuple(result)


def _transpose(loop: Loop, locals_: set[str]) -> Stmt | None:
    inner = loop.body[0] if len(loop.body) == 1 else None
    if type(inner) is not Loop or inner.kind != "simd" or loop.kind != "serial" or loop.step != 1 or inner.step != 1:
        return None
    if len(inner.body) != 2 or inner.accumulators or loop.accumulators or loop.axis in inner.extent.free_symbols:
        return None
    load, store = inner.body
    if type(load) is not Load or type(store) is not Store or store.value != load.name or store.mode != "set":
        return None
    if load.mask is not None or store.mask is not None or store.buffer not in locals_ or load.buffer in locals_:
        return None
    source, target = as_expr(load.index), as_expr(store.index)
    steps = [_step(source, loop), _step(source, inner), _step(target, loop), _step(target, inner)]
    if any({loop.axis, inner.axis} & s.free_symbols for s in steps) or steps[1] != 1 or steps[2] != 1:
        return None
    zero: dict[Expr, Expr | int] = {loop.axis: 0, inner.axis: 0}
    return TransposeTile(  # type: ignore[return-value]
        store.buffer, target.substitute(zero), steps[3], load.buffer, source.substitute(zero), steps[0],
        as_expr(loop.extent), as_expr(inner.extent),
    )  # fmt: skip


def _step(index: Expr, loop: Loop) -> Expr:
    return index.substitute({loop.axis: loop.axis + 1}) - index
