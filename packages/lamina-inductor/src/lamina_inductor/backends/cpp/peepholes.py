"""Small rewrites of kernel IR that make the printed code cheaper without changing what it means.

- a division by a value that does not change in an innermost loop becomes a product with its reciprocal (the softmax's
sum, a
  norm's deviation): one rounding more, a tenth of the time. Divisions by constants stay, so that they round as in
  eager;
- ``erf(x) + 1`` becomes one function, which needs one polynomial instead of two and does not cancel for negative ``x``;
- ``exp`` of what a mask may have set to minus infinity becomes our own polynomial: the C library's vector version
leaves
  its fast path for a whole vector when one element is far out of range (ten times the time).
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...ir.kernel import Kernel, Let, Loop, Stmt, walk

__all__ = ["rewrite_small"]


def rewrite_small(kernel: Kernel) -> Kernel:
    """The kernel with the rewrites of this module applied."""
    lets = {s.name: s for s in walk(kernel.body) if type(s) is Let}
    if not any(s.op in ("div", "erf", "where") for s in lets.values()):
        return kernel
    return replace(kernel, body=tuple([_block((phase,), lets)[0] for phase in kernel.body]))  # type: ignore[arg-type]


def _block(body: tuple[Stmt, ...], lets: dict[str, Let]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if type(stmt) is Let:
            result.append(_masked_exp(_erf_plus_one(stmt, lets), lets))
        elif type(stmt) is Loop:
            before, loop = _hoist_reciprocals(replace(stmt, body=_block(stmt.body, lets)))
            result += [*(let for let in before if let not in result), loop]  # a loop beside it may have the same
        elif hasattr(stmt, "body"):
            result.append(replace(stmt, body=_block(stmt.body, lets)))  # type: ignore[type-var, union-attr, attr-defined]
        else:
            result.append(stmt)
    return tuple(result)


def _erf_plus_one(stmt: Let, lets: dict[str, Let]) -> Let:
    if stmt.op != "add" or stmt.dtype.name != "float32" or 1 not in stmt.args:
        return stmt
    other = next((a for a in stmt.args if type(a) is str), None)
    inner = lets.get(other) if other is not None else None
    if inner is None or inner.op != "erf":
        return stmt
    return replace(stmt, op="erf_plus_one", args=inner.args)


def _masked_exp(stmt: Let, lets: dict[str, Let]) -> Let:
    if stmt.op != "exp" or stmt.dtype.name != "float32" or not _may_be_masked(stmt.args[0], lets, depth=6):
        return stmt
    return replace(stmt, op="exp_masked")


def _may_be_masked(value: object, lets: dict[str, Let], depth: int) -> bool:
    source = lets.get(value) if type(value) is str else None
    if source is None or not depth:
        return False
    if source.op == "where" and any(type(a) is float and a == -math.inf for a in source.args[1:]):
        return True
    through = source.op in ("where", "add", "sub", "mul", "div")
    return through and any(_may_be_masked(a, lets, depth - 1) for a in source.args)


def _hoist_reciprocals(loop: Loop) -> tuple[list[Stmt], Loop]:
    if loop.kind != "simd":
        return [], loop
    inside = {name for s in walk(loop.body) if (name := getattr(s, "name", None))}
    before: list[Stmt] = []
    body: list[Stmt] = []
    for stmt in loop.body:
        if _is_hoistable(stmt, inside):
            name = f"{stmt.args[1]}_inverse"  # type: ignore[union-attr]
            inverse = Let(name, stmt.dtype, "reciprocal", (stmt.args[1],))  # type: ignore[union-attr]
            if inverse not in before:
                before.append(inverse)
            stmt = replace(stmt, op="mul", args=(stmt.args[0], name))  # type: ignore[union-attr, type-var]
        body.append(stmt)
    return before, replace(loop, body=tuple(body)) if before else loop


def _is_hoistable(stmt: Stmt, inside: set[str]) -> bool:
    if type(stmt) is not Let or stmt.op != "div" or stmt.dtype.name not in ("float32", "float64"):
        return False
    divisor = stmt.args[1]
    return type(divisor) is str and divisor not in inside
