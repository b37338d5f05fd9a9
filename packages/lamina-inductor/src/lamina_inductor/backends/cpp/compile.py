"""From program IR to a callable: print, look in the cache, compile, open.

Two keys: an artifact is stored under a hash of its C++, its description and the tool chain; a caller that can name
what it compiled (a graph's content and options) passes ``key``, and ``find_compiled(key)`` then needs no lowering.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...artifact import Artifact, ArtifactError
from ...cache.store import ArtifactStore, default_store
from ...host.description import Description, KernelInfo, describe, to_bytes
from ...host.encoding import NotStorable
from ...ir.kernel import Kernel, Loop, walk
from ...ir.program import Attention, AttentionBackward, Convolution, Gemm, HostCall, Launch, Program
from .prepare import prepare_program
from .program_printer import PrintedProgram, layout_numbers, print_program
from .sizes import constant, iterations
from .stored import full_key, require_toolchain

__all__ = ["compile_program"]


def compile_program(
    program: Program, *, key: str = "", store: ArtifactStore | None = None, timed: bool = False
) -> Artifact:
    """Compile ``program``, or open what was compiled from equal code before.

    ``timed``: calls add up the time of each step; ``lamina_inductor.inspect.time_steps`` reads it.

    Raises:
        NoCompiler: no compiler on this machine; the message says what to install.
        NotImplementedError: an operator the backend has no code for.
        CompileError: the compiler failed.
    """
    toolchain, store = require_toolchain(), store or default_store()
    program = prepare_program(program)
    workers = max(1, len(os.sched_getaffinity(0)))
    printed = print_program(program, libmvec=toolchain.has_libmvec, max_units=workers, timed=timed)
    description = describe(
        program, _kernel_infos(program, printed), "\n".join(printed.units), layout_numbers(program), _is_large(program)
    )
    stored = _stored(description)
    if key and stored is not None:
        name = full_key("graph", key, toolchain.key)
    else:
        name = full_key("source", *printed.units, repr(stored), toolchain.key)

    def build(path: Path) -> bytes:
        toolchain.build(printed.units, path)
        return stored or b""

    entry = store.find_or_add(name, build)
    try:
        return Artifact.open(entry, description)
    except ArtifactError:  # a whole file that does not load: made by another machine or an older system
        return Artifact.open(store.add(name, build), description)


def _stored(description: Description) -> bytes | None:
    try:
        return to_bytes(description)
    except NotStorable:
        return None


def _kernel_infos(program: Program, printed: PrintedProgram) -> tuple[KernelInfo, ...]:
    return tuple([_kernel_info(k, printed) for k in program.kernels])


def _kernel_info(kernel: Kernel, printed: PrintedProgram) -> KernelInfo:
    reads = tuple([p.name for p in kernel.params if p.role != "out"])
    writes = tuple([p.name for p in kernel.params if p.role != "in"])
    return KernelInfo(kernel.name, printed.kernels[kernel.name], kernel.origins, reads, writes, kernel.note)


def _is_large(program: Program) -> bool:
    """Whether a call runs long enough to let other Python threads go on meanwhile (giving up the GIL costs 0.1 us)."""
    work = 0
    for step in program.steps:
        if type(step) in (Gemm, Convolution, Attention, AttentionBackward, HostCall):
            return True
        for call in step.parts if type(step) is Launch else ():
            for phase in call.kernel.body:
                count = constant(iterations(call, phase))
                if count is None:
                    return True
                work += count * _inner(phase)
    return work > 20000


def _inner(loop: Loop) -> int:
    total = 1
    for stmt in walk(loop.body):
        if type(stmt) is Loop:
            total *= max(1, constant(stmt.extent) or 64)
    return total
