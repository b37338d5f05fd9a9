"""Philox in blocks: a pass over kernel IR.

The cipher makes four words at a time; a vectorised loop that asks for word ``i % 4`` of counter ``i // 4`` in every
lane computes each
block four times. Here such a loop is cut into pieces of 256 elements: ``FillRandom`` writes the words of a piece to a
small array, and
the loop reads them. The bits are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lamina_fx.dtype import uint32
from lamina_fx.symbolic import Expr, Integer, Min, Symbol, as_expr

from ...ir.kernel import (
    Accumulate,
    Accumulator,
    BindIndex,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Operand,
    Stmt,
    Store,
    walk,
)

__all__ = ["FillRandom", "block_random"]

_BLOCK = 256


@dataclass(frozen=True, slots=True)
class FillRandom:
    """``target[j] = philox(seed, offset, first + j)`` for ``j < count``. Only this backend makes and prints it."""

    target: str
    seed: Operand
    offset: Operand
    first: Expr
    count: Expr


def block_random(kernel: Kernel) -> Kernel:
    """The kernel with its random loops cut into blocks; the same object when it draws nothing."""
    if not any(type(s) is Let and s.op == "philox" for s in walk(kernel.body)):
        return kernel
    counter = iter(range(1000))
    body = []
    for phase in kernel.body:
        if phase.kind == "parallel simd" and phase.step == 1:
            body.append(_blocked(phase, next(counter), "parallel"))
        else:
            body.append(replace(phase, body=_inside(phase.body, counter)))
    return replace(kernel, body=tuple(body))


def _inside(body: tuple[Stmt, ...], counter: object) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if type(stmt) is Loop and stmt.kind == "simd" and stmt.step == 1:
            stmt = _blocked(stmt, next(counter), "serial")  # type: ignore[call-overload]
        elif hasattr(stmt, "body"):
            stmt = replace(stmt, body=_inside(stmt.body, counter))  # type: ignore[type-var, union-attr, attr-defined]
        result.append(stmt)
    return tuple(result)


def _blocked(loop: Loop, number: int, kind: str) -> Loop:
    """``loop`` over blocks when it draws by blocks, else itself."""
    draws = _draws(loop)
    if not draws or (kind == "parallel" and loop.accumulators) or _small(loop.extent):
        return loop
    moved = _invariants(loop, {a for draw, _ in draws for a in draw.args[:2]})
    block, inner = Symbol(f"rng{number}_b", 0), Symbol(f"rng{number}_j", 0, _BLOCK - 1)
    count = Integer(_BLOCK) if _whole(loop.extent) else Min(_BLOCK, loop.extent - block * _BLOCK)
    start = {loop.axis: block * _BLOCK}
    before: list[Stmt] = list(moved)
    words: dict[str, str] = {}
    for i, (draw, first) in enumerate(draws):
        words[draw.name] = target = f"rng{number}_{i}"
        before.append(Local(target, uint32, _BLOCK))
        before.append(FillRandom(target, draw.args[0], draw.args[1], first.substitute(start), count))  # type: ignore[arg-type]
    at = {loop.axis: block * _BLOCK + inner}
    gone = {id(s) for s in moved}
    body = tuple([_moved(s, at, words, inner) for s in loop.body if id(s) not in gone])
    outer, parts, after = _accumulators(loop, body)
    piece = Loop(inner, count, "simd", parts[1], parts[0])
    extent = (loop.extent + (_BLOCK - 1)) // _BLOCK
    grain = None if loop.grain is None else (loop.grain + (_BLOCK - 1)) // _BLOCK
    return Loop(block, extent, kind, (*before, piece, *after), outer, grain=grain)


def _small(extent: Expr) -> bool:
    return type(extent) is Integer and extent.value < 16


def _whole(extent: Expr) -> bool:
    return type(extent) is Integer and extent.value % _BLOCK == 0


def _draws(loop: Loop) -> list[tuple[Let, Expr]]:
    """Draws whose element number grows by one along the loop and whose state is fixed, with the number."""
    numbers = {s.name: s.expr for s in loop.body if type(s) is IndexValue}
    bound = {s.symbol for s in loop.body if type(s) is BindIndex}
    fixed = _fixed_names(loop)
    inside = {getattr(s, "name", None) for s in loop.body}
    found: list[tuple[Let, Expr]] = []
    for stmt in loop.body:
        if type(stmt) is Let and stmt.op == "philox":
            first = numbers.get(stmt.args[2])  # type: ignore[call-overload]
            steady = all(type(a) is not str or a in fixed or a not in inside for a in stmt.args[:2])
            if first is not None and steady and not bound & first.free_symbols:
                step = first.substitute({loop.axis: loop.axis + 1}) - first
                if step == 1:
                    found.append((stmt, first))
    return found if len(found) == sum(type(s) is Let and s.op == "philox" for s in loop.body) else []


def _fixed_names(loop: Loop) -> dict[str, Stmt]:
    """Values of the body that are the same in every iteration (loads of unwritten memory, and what is computed from
    them)."""
    bound = {s.symbol for s in loop.body if type(s) is BindIndex} | {loop.axis}
    written = {s.buffer for s in walk(loop.body) if type(s) is Store}
    inside = {name for s in loop.body if (name := getattr(s, "name", None))}
    fixed: dict[str, Stmt] = {}
    for stmt in loop.body:
        if type(stmt) is Load:
            steady = stmt.mask is None and not bound & as_expr(stmt.index).free_symbols and stmt.buffer not in written
        elif type(stmt) is Let:
            steady = all(type(a) is not str or a in fixed or a not in inside for a in stmt.args)
        else:
            steady = False
        if steady:
            fixed[stmt.name] = stmt  # type: ignore[union-attr]
    return fixed


def _invariants(loop: Loop, wanted: set[Operand]) -> list[Stmt]:
    """The statements that define ``wanted``, which move in front of the loop."""
    fixed = _fixed_names(loop)
    pending = [w for w in wanted if type(w) is str]
    names: set[str] = set()
    while pending:
        name = pending.pop()
        stmt = fixed.get(name)
        if stmt is not None and name not in names:
            names.add(name)
            pending += [a for a in getattr(stmt, "args", ()) if type(a) is str]
    return [s for s in loop.body if getattr(s, "name", None) in names]


def _moved(stmt: Stmt, at: dict[Symbol, Expr], words: dict[str, str], inner: Symbol) -> Stmt:
    kind = type(stmt)
    if kind is Let and stmt.name in words:  # type: ignore[union-attr]
        return Load(stmt.name, uint32, words[stmt.name], inner)  # type: ignore[union-attr]
    if kind is Load or kind is Store:
        return replace(stmt, index=as_expr(stmt.index).substitute(at))  # type: ignore[union-attr, arg-type]
    if kind is IndexValue:
        return replace(stmt, expr=stmt.expr.substitute(at))  # type: ignore[union-attr, arg-type]
    if kind is BindIndex and stmt.size is not None:  # type: ignore[union-attr]
        return replace(stmt, size=stmt.size.substitute(at))  # type: ignore[union-attr, arg-type]
    return stmt


def _accumulators(
    loop: Loop, body: tuple[Stmt, ...]
) -> tuple[tuple[Accumulator, ...], tuple[tuple[Accumulator, ...], tuple[Stmt, ...]], tuple[Stmt, ...]]:
    """Accumulators of the loop over blocks, those of a block with its body, and what feeds the first from the
    second."""
    if not loop.accumulators:
        return (), ((), body), ()
    part = {a.name: f"{a.name}_part" for a in loop.accumulators}
    inner = tuple([replace(a, name=part[a.name], init=None) for a in loop.accumulators])
    renamed = tuple([replace(s, accumulator=part[s.accumulator]) if type(s) is Accumulate else s for s in body])
    after = tuple([Accumulate(a.name, part[a.name]) for a in loop.accumulators])
    return loop.accumulators, (inner, renamed), after
