"""From program IR to Triton: each phase of a kernel is a function, each call of it a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lamina_fx.symbolic import Expr, as_expr

from ...ir.kernel import Kernel, Loop
from ...ir.program import (
    Attention,
    AttentionBackward,
    Convolution,
    CopyBuffer,
    Gemm,
    HostCall,
    KernelCall,
    Launch,
    Program,
)
from ...schedule.copies import copy_call
from ...schedule.index_matches import narrow_index_matches
from .axis_tiles import choose_axis_tile
from .bound_indices import ERROR
from .crossed_tiles import choose_crossed_tile
from .even_sizes import with_even_sizes
from .grids import program_count
from .index_reach import most_of
from .index_widths import is_large, largest_indices, needs_64_bits
from .kernel_printer import PrintedPhase, print_phase
from .literals import pointer_type
from .program import ExternStep, Scratch, TritonKernel, TritonLaunch, TritonProgram
from .scan_tiles import choose_scan_tile
from .sorting import choose_sort_tile
from .tables import table_launches
from .templates.expand import Planner, expand_steps
from .templates.kernel_text import is_multiple
from .tiles import choose_tile, constant
from .whole_tiles import with_whole_tiles

__all__ = ["emit_program"]


@dataclass(frozen=True, slots=True)
class _Phase:
    """A phase of a kernel, printed; None where it does nothing."""

    kernel: TritonKernel | None
    printed: PrintedPhase | None


def emit_program(
    program: Program,
    planner: Planner | None = None,
    made: Callable[[TritonKernel], None] | None = None,
    index_bits: int = 32,
) -> TritonProgram:
    """Print every kernel of a program whose loops are those of ``schedule.grid_nest``.

    ``planner`` chooses templates for products, attention and convolutions. What Triton has no code for becomes an
    external step, as references on the host are. ``made`` is told of each template's kernel as soon as there is one.
    ``index_bits``: 32: sizes without a bound are taken for small (``TritonProgram.below`` says how small); 64: they may
    be large.
    """
    program = replace(program, narrow=index_bits == 32)
    below = largest_indices(program) if program.narrow else ()
    expansion = expand_steps(program, planner, made)
    program = replace(program, steps=tuple(expansion.planned))
    steps = [_without_copies(step, number) for number, step in enumerate(expansion.steps)]
    calls: dict[str, list[KernelCall]] = {}
    for call in _calls(steps):
        calls.setdefault(call.kernel.name, []).append(call)
    printed: dict[str, list[_Phase]] = {}
    refused: dict[str, str] = {}
    for name, found in calls.items():
        try:
            printed[name] = _print_kernel(program, found)
        except NotImplementedError as error:
            refused[name] = str(error)
    result: list[TritonLaunch | ExternStep] = []
    for step in steps:
        if type(step) is Launch:
            for found in _alike(step.parts):
                name = found[0].kernel.name
                if name in refused:
                    result.extend([_refused(call, refused[name]) for call in found])
                else:
                    result.extend(_launch_all(found, printed[name]))
        elif type(step) is list:
            result.extend(step)
        else:
            result.append(_extern(step))
    kernels = {s.kernel.name: s.kernel for s in result if type(s) is TritonLaunch}
    below = most_of([*below, *_scratch(result)]) if below else ()
    return TritonProgram(program.name, program, tuple(kernels.values()), tuple(result), below)


def _scratch(steps: list[TritonLaunch | ExternStep]) -> Iterator[Expr]:
    """Bytes of the templates' own memory, where they depend on sizes."""
    for step in steps:
        for buffer in step.buffers if type(step) is TritonLaunch else ():
            if type(buffer) is Scratch and isinstance(buffer.bytes, Expr):
                yield buffer.bytes


def _alike(parts: tuple[KernelCall, ...]) -> Iterator[list[KernelCall]]:
    """The calls of each kernel; they are independent of all others."""
    calls: dict[str, list[KernelCall]] = {}
    for call in parts:
        calls.setdefault(call.kernel.name, []).append(call)
    yield from calls.values()


def _launch_all(calls: list[KernelCall], phases: list[_Phase]) -> Iterator[TritonLaunch]:
    """Calls of one kernel, phase by phase: in few launches where there are many."""
    launches = [list(_launches(call, phases)) for call in calls]
    dtypes = {p.name: p.dtype for p in calls[0].kernel.params}
    for phase in zip(*launches, strict=True):
        yield from table_launches(phase, dtypes) or phase


def _without_copies(step: Any, number: int) -> Any:
    return Launch((copy_call(step, f"copy{number}"),)) if type(step) is CopyBuffer else step


def _calls(steps: list[Any]) -> Iterator[KernelCall]:
    for step in steps:
        if type(step) is Launch:
            yield from step.parts


def _extern(step: Any) -> ExternStep:
    if type(step) is Gemm:
        return ExternStep("dot_general", step)
    if type(step) is Convolution:
        return ExternStep("convolution", step)
    if type(step) in (Attention, AttentionBackward):
        return ExternStep("attention_with_lse" if type(step) is Attention else "attention_backward", step)
    assert type(step) is HostCall
    return ExternStep(step.operator, step, step.source)


def _refused(call: KernelCall, reason: str) -> ExternStep:
    operators = ", ".join(dict.fromkeys(op for _, op, _ in call.kernel.origins))
    line = next((line for _, _, line in call.kernel.origins if line), "")
    return ExternStep(operators, Launch((call,)), line, reason)


# -- kernels ---------------------------------------------------------------------------------------------


def _print_kernel(program: Program, calls: list[KernelCall]) -> list[_Phase]:
    kernel = narrow_index_matches(calls[0].kernel)
    wide = any(is_large(program.buffers[b], program.narrow) for call in calls for b in call.buffers)
    asked = dict.fromkeys([call.sizes for call in calls])
    wide = wide or any(needs_64_bits(kernel, sizes, program.narrow) for sizes in asked)
    phases = [p for p in kernel.body if p.body and constant(p.extent) != 0]
    result: list[_Phase] = []
    for number, phase in enumerate(kernel.body):
        name = kernel.name if len(phases) == 1 else f"{kernel.name}_{number}"
        result.append(_print(kernel, phase, name, wide, calls) if phase in phases else _Phase(None, None))
    return result


def _print(kernel: Kernel, phase: Loop, name: str, wide: bool, calls: list[KernelCall]) -> _Phase:
    extents = [constant(_in_call(phase.extent, call)) for call in calls]
    most = None if None in extents else max(e for e in extents if e is not None)
    tile = next(tile for choose in _CHOICES if (tile := choose(phase, most)) is not None)
    filled = all(e is not None and e % tile.step == 0 for e in extents)
    printed = print_phase(kernel, phase, name, tile, wide, filled)
    if "simd" in phase.kind and tile.x > 1 and any(_is_uneven(_in_call(phase.extent, c), tile.x) for c in calls):
        printed = with_whole_tiles(printed, print_phase(kernel, phase, name, tile, wide, filled=True), wide)
    even = [s for s in printed.sizes if all(_is_even(kernel, s, call) for call in calls)]
    narrow = [p.dtype.itemsize for p in kernel.params if p.name in printed.buffers and p.dtype.itemsize < 4]
    odd = [s for s in printed.sizes if s not in even]
    if tile.y and narrow and odd:
        printed = with_even_sizes(printed, odd, 16 // min(narrow))
    types = {p.name: pointer_type(p.dtype) for p in kernel.params}
    integer = "i64" if wide else "i32"
    parameters = [(b, types[b]) for b in printed.buffers] + [(s, integer) for s in printed.sizes]
    if printed.checks:
        parameters.append((ERROR, "*i64"))
    aligned = frozenset((*printed.buffers, *even))
    return _Phase(TritonKernel(name, printed.source, tuple(parameters), tile, aligned, kernel.origins), printed)


_CHOICES = (choose_sort_tile, choose_scan_tile, choose_axis_tile, choose_crossed_tile, choose_tile)
"""Which tile a phase has: the first that fits it."""


def _in_call(expr: Any, call: KernelCall) -> Any:
    values = {s: as_expr(v) for s, v in zip(call.kernel.sizes, call.sizes, strict=True)}
    return as_expr(expr).substitute(values) if values else expr  # type: ignore[arg-type]


def _is_uneven(extent: Any, tile: int) -> bool:
    """More than a tile, and not known to be a multiple of 16?"""
    known = constant(extent)
    return not is_multiple(extent, 16) and (known is None or known > tile)


def _is_even(kernel: Kernel, name: str, call: KernelCall) -> bool:
    """Is this size a multiple of 16 in the call?"""
    return is_multiple(_size(kernel, name, call), 16)


def _size(kernel: Kernel, name: str, call: KernelCall) -> Any:
    spelt = {s.name if s.name == "n" else f"n_{s.name}": v for s, v in zip(kernel.sizes, call.sizes, strict=True)}
    return spelt[name]


def _launches(call: KernelCall, phases: list[_Phase]) -> Iterator[TritonLaunch]:
    given = dict(zip([p.name for p in call.kernel.params], call.buffers, strict=True))
    for phase, loop in zip(phases, call.kernel.body, strict=True):
        kernel, printed = phase.kernel, phase.printed
        if kernel is None or printed is None:
            continue
        grid = program_count(loop, kernel.tile, lambda extent: _in_call(extent, call))
        sizes = tuple([_size(call.kernel, s, call) for s in printed.sizes])
        yield TritonLaunch(kernel, tuple([given[b] for b in printed.buffers]), sizes, (grid,))
