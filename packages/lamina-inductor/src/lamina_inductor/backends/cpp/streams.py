"""Large results are written past the caches: a pass over a program's kernels.

An ordinary store first reads the line that it overwrites. A result much larger than the second-level cache pays for
that with a third of its kernel's time, and throws out of the cache what the kernel still reads. So a loop over such
a result fills a small local array, which is then streamed to memory, a block at a time.

    Loop i in 4096: simd                        Loop b in 4: serial
      ...;  store out0[r*4096 + i] = v    ->      Local s[1024]
                                                  Loop j in 1024: simd
                                                    ...;  store s[j] = v
                                                  stream out0[r*4096 + b*1024 ...] = s, 1024 elements
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Expr, Integer, Min, Symbol, as_expr

from ...ir.kernel import Kernel, Load, Local, Loop, Stmt, Store, walk
from ...ir.program import KernelCall, Launch, Program
from ...schedule.share import rename

__all__ = ["StreamOut", "stream_results"]

LEAST_BYTES = 8 << 20
"""Results from this size on are streamed: four second-level caches, so a reader would not find them there anyway."""

BLOCK = 1024
LEAST_RUN = 64
"""Elements in a row below which partly written lines cost more than streaming gains."""


@dataclass(frozen=True, slots=True)
class StreamOut:
    """``buffer[index + i] = source[i]`` for ``i < count``, past the caches. Only this backend makes and prints it."""

    buffer: str
    index: Expr
    source: str
    count: Expr


def stream_results(program: Program) -> Program:
    """``program`` with the stores of large results that nothing reads streamed."""
    large = {b.name for b in program.buffers.values() if b.storage == "output" and _bytes(b) >= LEAST_BYTES}
    uses: dict[str, int] = {}
    calls: dict[str, int] = {}
    for step in program.steps:
        parts = step.parts if type(step) is Launch else ()
        for name in _mentioned(step):
            uses[name] = uses.get(name, 0) + 1
        for part in parts:
            calls[part.kernel.name] = calls.get(part.kernel.name, 0) + 1
    wanted = {name for name in large if uses.get(name) == 1}
    if not wanted:
        return program

    def part_of(call: KernelCall) -> KernelCall:
        if calls[call.kernel.name] > 1:
            return call
        params = zip(call.kernel.params, call.buffers, strict=True)
        chosen = {p.name: p.dtype for p, buffer in params if buffer in wanted and p.role == "out"}
        kernel = _streamed(call.kernel, chosen) if chosen else call.kernel
        return call if kernel is call.kernel else replace(call, kernel=kernel)

    steps = [Launch(tuple([part_of(p) for p in s.parts])) if type(s) is Launch else s for s in program.steps]
    return replace(program, steps=tuple(steps))


def _bytes(buffer: Any) -> int:
    size = buffer.dtype.itemsize
    for n in buffer.shape:
        if type(n) is not int:
            return 0
        size *= n
    return size


def _mentioned(step: Any) -> list[str]:
    """The buffers of a step, once for each place where they stand."""
    if type(step) is Launch:
        return [name for part in step.parts for name in part.buffers]
    found: list[str] = []
    work = [step]
    while work:
        item = work.pop()
        if type(item) is tuple or type(item) is list:
            work.extend(item)
        elif type(item) is KernelCall:
            found.extend(item.buffers)
        elif type(getattr(item, "buffer", None)) is str:
            found.append(item.buffer)
        elif hasattr(item, "__dataclass_fields__"):
            work.extend(getattr(item, name) for name in item.__dataclass_fields__)
    return found


def _streamed(kernel: Kernel, chosen: dict[str, DType]) -> Kernel:
    read = {s.buffer for s in walk(kernel.body) if type(s) is Load}
    partners = {p.aliased for p in kernel.params if p.aliased is not None}
    chosen = {n: d for n, d in chosen.items() if n not in read and n not in partners}
    writer = _Writer(chosen)
    body = tuple([writer.phase(p) for p in kernel.body])
    return replace(kernel, body=body) if writer.count else kernel


class _Writer:
    """Rewrites loops; counts its local arrays, which names them."""

    def __init__(self, chosen: dict[str, DType]) -> None:
        self.chosen = chosen
        self.count = 0

    def phase(self, phase: Loop) -> Loop:
        if phase.kind != "parallel simd":
            return replace(phase, body=self.block(phase.body))
        if phase.step != 1 or not self.fits(phase):
            return phase
        place = Symbol(f"{phase.axis.name}_p", 0, BLOCK - 1)
        body = self.filled(phase, place, phase.axis + place, as_expr(Min(BLOCK, phase.extent - phase.axis)))
        grain = None if phase.grain is None else as_expr((phase.grain + BLOCK - 1) // BLOCK)
        return replace(phase, kind="parallel", step=BLOCK, body=tuple(body), grain=grain)

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            if type(stmt) is Loop:
                result += self.loop(stmt)
            else:
                result.append(stmt)
        return tuple(result)

    def loop(self, loop: Loop) -> list[Stmt]:
        if loop.kind == "serial":
            return [replace(loop, body=self.block(loop.body))]
        if loop.kind != "simd" or not self.fits(loop):
            return [loop]
        if type(loop.extent) is Integer and loop.extent.value <= BLOCK:
            return self.filled(loop, loop.axis, loop.axis, loop.extent, Integer(0))
        block, place = Symbol(f"{loop.axis.name}_b", 0), Symbol(f"{loop.axis.name}_p", 0, BLOCK - 1)
        first = block * BLOCK
        body = self.filled(loop, place, first + place, as_expr(Min(BLOCK, loop.extent - first)), first)
        return [Loop(block, as_expr((loop.extent + BLOCK - 1) // BLOCK), "serial", tuple(body))]

    def fits(self, loop: Loop) -> bool:
        """Are all stores of the loop to consecutive elements of streamed buffers, or to others?"""
        extent = loop.extent
        if loop.accumulators or loop.step != 1 or (type(extent) is Integer and extent.value < LEAST_RUN):
            return False
        stores = [s for s in walk(loop.body) if type(s) is Store]
        if any(type(s) is Loop for s in loop.body):
            return False
        mine = [s for s in stores if s.buffer in self.chosen]
        plain = all(s.mode == "set" and s.mask is None and not s.atomic for s in mine)
        return bool(mine) and plain and all(_is_consecutive(as_expr(s.index), loop.axis) for s in mine)

    def filled(self, loop: Loop, place: Symbol, position: Expr, count: Expr, first: Expr | None = None) -> list[Stmt]:
        """Local arrays, the loop that fills them, and what streams them."""
        first = loop.axis if first is None else first
        before: list[Stmt] = []
        after: list[Stmt] = []
        body: list[Stmt] = []
        for stmt in loop.body:
            if type(stmt) is Store and stmt.buffer in self.chosen:
                self.count += 1
                array = f"stream{self.count}"
                before.append(Local(array, self.chosen[stmt.buffer], BLOCK))
                start = as_expr(stmt.index).substitute({loop.axis: first})
                after.append(StreamOut(stmt.buffer, start, array, count))  # type: ignore[arg-type]
                body.append(Store(array, place, stmt.value))
            else:
                body.append(rename(stmt, {loop.axis: position}))
        return [*before, Loop(place, count, "simd", tuple(body)), *after]


def _is_consecutive(index: Expr, axis: Symbol) -> bool:
    return index.substitute({axis: axis + 1}) - index == 1
