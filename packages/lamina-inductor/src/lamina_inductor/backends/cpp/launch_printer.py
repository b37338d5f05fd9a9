"""Launches in C++: direct calls where the work is small, else chunks for the pool's threads."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.kernel import BindIndex, Loop, walk
from ...ir.program import KernelCall, Launch
from .kernel_printer import phase_names
from .sizes import constant, iterations, number, phase_grain

__all__ = ["call_arguments", "phase_functions", "print_launch"]


def print_launch(launch: Launch, shared: dict[str, str]) -> list[str]:
    """Statements that run the parts of ``launch``; ``shared`` maps a kernel's name to the one whose code it uses."""
    lines = _single(launch.parts[0], shared) if len(launch.parts) == 1 else _several(launch.parts, shared)
    return ["{", *[f"    {line}" for line in lines], "}"]


def phase_functions(call: KernelCall, shared: dict[str, str]) -> list[str]:
    """Names of the phase functions of a call's kernel."""
    own = shared.get(call.kernel.name, call.kernel.name)
    return [own + name[len(call.kernel.name) :] for name in phase_names(call.kernel)]


def call_arguments(call: KernelCall, name: str = "call") -> list[str]:
    """Declarations of the ``lm_call`` called ``name``."""
    lines = [f"void *const {name}_p[] = {{{', '.join(['(void *)' + b for b in call.buffers])}}};"]
    sizes = "nullptr"
    if call.sizes:
        sizes = f"{name}_s"
        lines.append(f"const i64 {sizes}[] = {{{', '.join([number(s) for s in call.sizes])}}};")
    lines.append(f"const lm_call {name} = {{{name}_p, {sizes}, &error}};")
    return lines


def _has_checks(call: KernelCall) -> bool:
    return any(type(s) is BindIndex and s.size is not None for s in walk(call.kernel.body))


def _single(call: KernelCall, shared: dict[str, str]) -> list[str]:
    lines = call_arguments(call)
    for function, phase in zip(phase_functions(call, shared), call.kernel.body, strict=True):
        lines.append(_run(function, call, phase))
    if _has_checks(call):
        lines.append("if (error) return error;")
    return lines


def _run(function: str, call: KernelCall, phase: Loop) -> str:
    n, grain = iterations(call, phase), phase_grain(call, phase)
    n_now, grain_now = constant(n), constant(grain)
    if n_now is not None and (n_now < 2 or (grain_now is not None and n_now < 2 * grain_now)):
        return f"{function}((void *)&call, 0, {n_now});"
    return f"h->parallel({function}, (void *)&call, {number(n)}, {number(grain)});"


def _several(parts: Sequence[KernelCall], shared: dict[str, str]) -> list[str]:
    pointers = [f"(void *){b}" for part in parts for b in part.buffers]
    sizes = [number(s) for part in parts for s in part.sizes] or ["0"]
    lines = [f"void *const p[] = {{{', '.join(pointers)}}};", f"const i64 s[] = {{{', '.join(sizes)}}};"]
    lines.append(f"lm_part parts[{len(parts)}];")
    lines.append(f"i64 starts[{len(parts) + 1}];")
    for index in range(max(len(part.kernel.body) for part in parts)):
        lines += _phase_of_several(parts, index, shared)
    if any(_has_checks(part) for part in parts):
        lines.append("if (error) return error;")
    return lines


def _phase_of_several(parts: Sequence[KernelCall], index: int, shared: dict[str, str]) -> list[str]:
    live = [part for part in parts if index < len(part.kernel.body)]
    counts = [number(iterations(part, part.kernel.body[index])) for part in live]
    grains = [number(phase_grain(part, part.kernel.body[index])) for part in live]
    fill: list[str] = []
    at_p = at_s = at = 0
    run_start = 0
    functions = [phase_functions(part, shared)[index] if index < len(part.kernel.body) else "" for part in parts]
    while run_start < len(parts):
        stop = run_start + 1
        # parts without this phase have different numbers of buffers: they are passed over one by one
        while functions[run_start] and stop < len(parts) and functions[stop] == functions[run_start]:
            stop += 1
        part, many = parts[run_start], stop - run_start
        width, sizes = len(part.buffers), len(part.sizes)
        if functions[run_start]:
            call = f"{{p + {at_p} + k * {width}, s + {at_s} + k * {sizes}, &error}}"
            fill.append(
                f"for (i64 k = 0; k < {many}; ++k) "
                f"parts[{at} + k] = {{{functions[run_start]}, {call}, n[{at} + k], g[{at} + k]}};"
            )
            at += many
        at_p += width * many
        at_s += sizes * many
        run_start = stop
    head = [f"const i64 n[] = {{{', '.join(counts)}}}, g[] = {{{', '.join(grains)}}};", *fill]
    return ["{", *[f"    {line}" for line in head], f"    lm_run_parts(h, parts, starts, {at});", "}"]
