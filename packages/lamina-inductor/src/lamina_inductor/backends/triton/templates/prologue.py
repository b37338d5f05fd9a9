"""Cheap kernels in front of a product, printed onto its operand's tiles: a conversion, a scale, an activation.

    w16[x] = bfloat16(w[x])                      b = tl.load(right_b0 + right_at, ...)
    out = left @ w16            becomes          b = b.to(tl.bfloat16);  acc = tl.dot(a, b, acc)

The operand then passes through registers, and is computed again for every tile that reads it: this pays where it is
read once or twice, by thin products whose weights are most of what moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Expr

from ....ir.kernel import Kernel, Let, Load, Loop, Stmt, Store
from ....ir.program import Gemm, KernelCall, Launch, Program
from ..kernel_printer import PhaseWriter
from ..tiles import Tile
from .kernel_text import KernelText

__all__ = ["Prologue", "find_prologues", "reads_of"]

CHEAP = frozenset(("convert_element_type", "mul", "add", "sub", "neg", "relu", "maximum", "minimum", "sigmoid", "tanh"))
"""Operators of prologues: finite where their operand is 0, which is what lies behind the ends of a matrix."""

MOST = 6
"""Statements of a prologue beside loads and stores."""


@dataclass(frozen=True, slots=True)
class Prologue:
    """A kernel that makes each element of a product's operand from the same elements of other buffers."""

    call: KernelCall
    phase: Loop
    result: str

    @property
    def kernel(self) -> Kernel:
        """What is printed."""
        return self.call.kernel

    def print(self, text: KernelText, name: str, at: str, mask: str, target: str) -> None:
        """Lines that define ``target``, the tile of operand ``name``, whose elements stand at offsets ``at``."""
        writer = _Writer(self, text, name, at, mask)
        for stmt in self.phase.body:
            if type(stmt) is not Store:
                writer.statement(_renamed(stmt, name))
        text.add(*writer.lines, f"{target} = {name}_{self.result}")


class _Writer(PhaseWriter):
    """Statements on a tile of the operand; its names begin with the operand's."""

    def __init__(self, prologue: Prologue, text: KernelText, name: str, at: str, mask: str) -> None:
        super().__init__(prologue.kernel, prologue.phase, Tile(16, 16), text.wide)
        self.text, self.name, self.at, self.given = text, name, at, mask
        self.sources = {
            p.name: (p.dtype, b) for p, b in zip(prologue.kernel.params, prologue.call.buffers, strict=True)
        }

    def statement(self, stmt: Stmt) -> None:
        """A load is one of the tile."""
        if type(stmt) is not Load:
            super().statement(stmt)
            return
        dtype, buffer = self.sources[stmt.buffer]
        pointer = f"{self.name}_{stmt.buffer}"
        self.text.pointer(pointer, dtype, buffer)
        self.define(stmt.name, f"tl.load({pointer} + {self.at}{self.given})", dtype, frozenset("xr"))


def _renamed(stmt: Any, name: str) -> Any:
    stmt = replace(stmt, name=f"{name}_{stmt.name}")
    if type(stmt) is Let:
        return replace(stmt, args=tuple([f"{name}_{a}" if type(a) is str else a for a in stmt.args]))
    return stmt


# -- finding them ----------------------------------------------------------------------------------------


def find_prologues(program: Program) -> dict[str, Prologue]:
    """By the buffer that it makes, which one product reads, and nothing else."""
    readers = reads_of(program)
    written: dict[str, int] = {}
    found: dict[str, Prologue] = {}
    for step in program.steps:
        for call in step.parts if type(step) is Launch else ():
            for param, buffer in zip(call.kernel.params, call.buffers, strict=True):
                if param.role != "in":
                    written[buffer] = written.get(buffer, 0) + 1
            made = _prologue(call)
            if made is not None:
                found[made[0]] = made[1]
    others = _written_by_others(program)
    result: dict[str, Prologue] = {}
    for buffer, prologue in found.items():
        sources = [b for b in prologue.call.buffers if b != buffer]
        kept = all(program.buffers[b].storage in ("input", "constant") for b in sources)
        unchanged = not any(b in written or b in others for b in sources)
        alone = written[buffer] == 1 and buffer not in others and readers.get(buffer, 0) == 1
        if kept and unchanged and alone and program.buffers[buffer].storage == "workspace":
            result[buffer] = prologue
    return result


def _prologue(call: KernelCall) -> tuple[str, Prologue] | None:
    """(buffer, prologue) of a kernel that reads and writes elements where they are."""
    kernel = call.kernel
    if len(kernel.body) != 1 or kernel.body[0].kind != "parallel simd":
        return None
    (phase,) = kernel.body
    stores = [s for s in phase.body if type(s) is Store]
    lets = [s for s in phase.body if type(s) is Let]
    if len(stores) != 1 or len(lets) > MOST or any(s.op not in CHEAP for s in lets):
        return None
    for stmt in phase.body:
        if type(stmt) not in (Load, Let, Store):
            return None
        if isinstance(stmt, (Load, Store)) and (stmt.index is not phase.axis or stmt.mask is not None):
            return None
    (store,) = stores
    if store.mode != "set" or type(store.value) is not str:
        return None
    target = next(b for p, b in zip(kernel.params, call.buffers, strict=True) if p.name == store.buffer)
    return target, Prologue(call, phase, store.value)


def reads_of(program: Program) -> dict[str, int]:
    """How many products read a buffer as an operand; other readers count as many."""
    result: dict[str, int] = {}
    for step in program.steps:
        if type(step) is Gemm:
            names = [step.left.buffer, step.right.buffer, *(step.epilogue.buffers if step.epilogue else ()) * 2]
        elif type(step) is Launch:
            names = [b for c in step.parts for p, b in zip(c.kernel.params, c.buffers, strict=True) if p.role != "out"]
            names = names * 2
        else:
            names = [o for o in _buffers(step) for _ in range(2)]
        for name in names:
            result[name] = result.get(name, 0) + 1
    return result


def _written_by_others(program: Program) -> set[str]:
    """Buffers that steps other than launches write, or epilogues."""
    result: set[str] = set()
    for step in program.steps:
        if type(step) is Launch:
            continue
        if type(step) is Gemm:
            result.add(step.out.buffer)
            call = step.epilogue
            pairs = zip(call.kernel.params, call.buffers, strict=True) if call else ()
            result.update(b for p, b in pairs if p.role != "in")
        else:
            result.update(_buffers(step))
    return result


def _buffers(value: Any) -> list[str]:
    """Names of all buffers in a step."""
    if isinstance(value, (tuple, list)):
        return [name for item in value for name in _buffers(item)]
    if hasattr(value, "buffer") and isinstance(value.buffer, str):
        return [value.buffer]
    if isinstance(value, KernelCall):
        return list(value.buffers)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, (DType, Expr)):
        return [name for field in value.__dataclass_fields__ for name in _buffers(getattr(value, field))]
    return []
