"""Several accumulators instead of one: a pass over kernel IR.

A vectorised sum waits four cycles for each addition; over a row in the first-level cache that, not
the loading, is what
takes the time. Short loops over a fixed number of elements are cut into four parts that run side by side, each with
accumulators of its
own, which are combined at the end.
"""

from __future__ import annotations

from dataclasses import replace

from lamina_fx.symbolic import Integer, as_expr

from ...ir.kernel import Accumulate, Accumulator, Kernel, Let, Load, Loop, Operand, Stmt, walk

__all__ = ["split_sums"]

_PARTS = 4
_LANES = 16
_CHEAP = frozenset(("add", "sub", "mul", "neg", "abs", "maximum", "minimum", "convert_element_type", "square", "where"))
_COMBINE = {"sum": "add"}
"""Maxima gained nothing when measured (their NaN flags are in the way)."""
_MOST_STATEMENTS = 8


def split_sums(kernel: Kernel) -> Kernel:
    """The kernel with its short, cheap reductions in parts."""
    if not any(type(s) is Loop and s.accumulators for s in walk(kernel.body)):
        return kernel
    return replace(kernel, body=tuple([replace(p, body=_block(p.body)) for p in kernel.body]))


def _block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if type(stmt) is Loop and _is_short_sum(stmt):
            result += _split(stmt)
        elif hasattr(stmt, "body"):
            result.append(replace(stmt, body=_block(stmt.body)))  # type: ignore[type-var, union-attr, attr-defined]
        else:
            result.append(stmt)
    return tuple(result)


def _is_short_sum(loop: Loop) -> bool:
    if loop.kind != "simd" or loop.step != 1 or not loop.accumulators or len(loop.body) > _MOST_STATEMENTS:
        return False
    if type(loop.extent) is not Integer or loop.extent.value % (_PARTS * _LANES) or loop.extent.value < 128:
        return False
    if any(a.kind not in _COMBINE or a.dtype.kind != "float" for a in loop.accumulators):
        return False
    return all(
        type(s) is Accumulate or (type(s) is Load and s.mask is None) or (type(s) is Let and s.op in _CHEAP)
        for s in loop.body
    )


def _split(loop: Loop) -> list[Stmt]:
    part = loop.extent.value // _PARTS  # type: ignore[attr-defined]
    accumulators: list[Accumulator] = []
    body: list[Stmt] = []
    for k in range(_PARTS):
        names = {name: f"{name}_{k}" for s in loop.body if (name := getattr(s, "name", None))}
        names |= {a.name: f"{a.name}_{k}" for a in loop.accumulators}
        accumulators += [replace(a, name=names[a.name], init=a.init if k == 0 else None) for a in loop.accumulators]
        body += [_part(s, names, loop, k * part) for s in loop.body]
    result: list[Stmt] = [replace(loop, extent=Integer(part), body=tuple(body), accumulators=tuple(accumulators))]
    for a in loop.accumulators:
        low, high = f"{a.name}_low", f"{a.name}_high"
        op = _COMBINE[a.kind]
        result.append(Let(low, a.dtype, op, (f"{a.name}_0", f"{a.name}_1")))
        result.append(Let(high, a.dtype, op, (f"{a.name}_2", f"{a.name}_3")))
        result.append(Let(a.name, a.dtype, op, (low, high)))
    return result


def _part(stmt: Stmt, names: dict[str, str], loop: Loop, shift: int) -> Stmt:
    def operand(value: Operand) -> Operand:
        return names.get(value, value) if type(value) is str else value

    if type(stmt) is Load:
        index = as_expr(stmt.index).substitute({loop.axis: loop.axis + shift})
        return replace(stmt, name=names[stmt.name], index=index)
    if type(stmt) is Let:
        return replace(stmt, name=names[stmt.name], args=tuple([operand(a) for a in stmt.args]))
    assert type(stmt) is Accumulate
    return Accumulate(names[stmt.accumulator], operand(stmt.value), stmt.index)
