"""The host program of a graph in C++: buffers as pointers, then one statement block per step.

``print_program`` gives the units of a library: the first holds ``lamina_run`` (and ``lamina_layout`` when sizes are
symbolic); kernels are spread over as many units as are worth compiling in parallel, equal kernels once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lamina_fx.symbolic import Expr

from ...ir.kernel import Kernel
from ...ir.program import Attention, AttentionBackward, Buffer, Convolution, CopyBuffer, Gemm, HostCall, Launch, Program
from .kernel_printer import phase_names, print_kernel
from .launch_printer import print_launch
from .literals import memory_type
from .preamble import preamble
from .sizes import SizeTerms, number, size_name
from .step_printer import print_attention, print_convolution, print_copy, print_gemm, print_host_call

__all__ = ["PrintedProgram", "layout_numbers", "print_program"]

_UNIT = 5000
"""Weight of code (see ``_weight``) that is worth a unit of its own: about 80 ms, where a unit costs 20 ms before its
first kernel."""


@dataclass(frozen=True)
class PrintedProgram:
    """C++ of a program.

    Attributes:
        units: complete texts, each a translation unit.
        kernels: per kernel name, its C++ (body only, under its own name).
        shared: per kernel name, the kernel whose code it uses (itself, unless another one has equal code).
    """

    units: tuple[str, ...]
    kernels: dict[str, str]
    shared: dict[str, str]


def print_program(program: Program, *, libmvec: bool, max_units: int = 1, timed: bool = False) -> PrintedProgram:
    """Print ``program`` as at most ``max_units`` kernel units (one: everything together).

    ``timed``: the library also exports ``lamina_times``, nanoseconds per step summed over the calls.

    Raises:
        NotImplementedError: an operator the backend has no code for.
    """
    kernels, shared = _distinct(program.kernels)
    names = [k for k in kernels if shared[k] == k]
    printer = _HostPrinter(program, shared, timed)
    host = printer.text() + (printer.layout() if program.sizes else "")
    weights = {k: _weight(kernels[k]) for k in names}
    count = max(1, min(max_units, len(names), (sum(weights.values()) + len(host) // _HOST_SHARE) // _UNIT))
    if count == 1:
        body = "\n".join([kernels[k] for k in names]) + "\n" + host
        return PrintedProgram((preamble(body, libmvec=libmvec) + body,), kernels, shared)
    groups = _balance(weights, [len(host) // _HOST_SHARE, *[0] * (count - 1)])
    units = []
    for i, group in enumerate(groups):
        text = "\n".join([_exported(kernels[k]) for k in group])
        if i == 0:
            others = [k for g in groups[1:] for k in g]
            text += "\n" + "".join([_declarations(program, k) for k in others]) + host
        units.append(preamble(text, libmvec=libmvec) + text)
    return PrintedProgram(tuple(units), kernels, shared)


_HIDDEN = 'extern "C" __attribute__((visibility("hidden"))) '


def _exported(text: str) -> str:
    return re.sub(r"^static ", _HIDDEN, text, flags=re.MULTILINE)


def _declarations(program: Program, name: str) -> str:
    kernel = next(k for k in program.kernels if k.name == name)
    return "".join([f"{_HIDDEN}void {p}(void *context, i64 begin, i64 end);\n" for p in phase_names(kernel)])


def _distinct(kernels: Sequence[Kernel]) -> tuple[dict[str, str], dict[str, str]]:
    """Code of every kernel, and which kernel's code each one uses."""
    texts: dict[str, str] = {}
    shared: dict[str, str] = {}
    first: dict[str, str] = {}
    for kernel in kernels:
        text = texts[kernel.name] = print_kernel(kernel)
        shared[kernel.name] = first.setdefault(text.replace(kernel.name, "?"), kernel.name)
    return texts, shared


_HOST_SHARE = 4
"""The host program is compiled without optimisation: a character of it costs this much less than one of a kernel."""


def _weight(text: str) -> int:
    """What compiling a kernel takes, in characters of loops: one has a fixed part, too."""
    return len(text) + 500


def _balance(weights: dict[str, int], given: list[int]) -> list[list[str]]:
    """Groups of names of about equal weight; ``given`` is what each group weighs already."""
    groups: list[list[str]] = [[] for _ in given]
    for name in sorted(weights, key=lambda n: -weights[n]):
        lightest = given.index(min(given))
        groups[lightest].append(name)
        given[lightest] += weights[name]
    order = list(weights)
    return [sorted(group, key=order.index) for group in groups]


_CLOCK = """struct lm_time { long seconds, nanoseconds; };
extern "C" int clock_gettime(int, lm_time *);
static i64 lm_now() { lm_time t; clock_gettime(1, &t); return (i64)t.seconds * 1000000000 + t.nanoseconds; }
extern "C" __attribute__((visibility("default"))) i64 lamina_times[COUNT];
i64 lamina_times[COUNT];
"""


class _HostPrinter:
    def __init__(self, program: Program, shared: dict[str, str], timed: bool = False) -> None:
        self.program = program
        self.shared = shared
        self.timed = timed
        self.host_calls = 0

    def text(self) -> str:
        with SizeTerms() as terms:
            return self._text(terms)

    def _text(self, terms: SizeTerms) -> str:
        steps: list[str] = []
        for index, step in enumerate(self.program.steps):
            steps += self.step(step)
            if self.timed:
                steps.append(f"    now = lm_now(); lamina_times[{index}] += now - before; before = now;")
        body = "\n".join(steps)
        head = ["    i64 error = 0;"]
        if self.timed:
            head.append("    i64 now, before = lm_now();")
        head += [f"    const i64 {size_name(s.symbol)} = sizes[{i}];" for i, s in enumerate(self.program.sizes)]
        used = set(re.findall(r"\w+", body))
        pointers = [f"    {self.pointer(b)}" for b in self.program.buffers.values() if b.name in used]
        head += [f"    {line}" for line in terms.definitions] + pointers
        inner = "\n".join([*head, body, "    return error;"])
        signature = "i64 lamina_run(const lm_host *h, void *const *io, const i64 *sizes, char *ws)"
        # Straight-line code that runs once a call: optimising it takes as long as ten kernels and saves nothing.
        run = f'extern "C" __attribute__((visibility("default"))) LM_PLAIN {signature} {{\n{inner}\n}}\n'
        clock = _CLOCK.replace("COUNT", str(max(1, len(self.program.steps)))) if self.timed else ""
        return clock + run

    def pointer(self, buffer: Buffer) -> str:
        kind = memory_type(buffer.dtype)
        if buffer.storage == "workspace":
            return f"{kind} *const {buffer.name} = ({kind} *)(ws + {number(buffer.offset)});"
        base = {
            "input": 0,
            "output": len(self.program.inputs),
            "constant": len(self.program.inputs) + count_outputs(self.program),
        }[buffer.storage]
        return f"{kind} *const {buffer.name} = ({kind} *)io[{base + buffer.index}];"

    def step(self, step: object) -> list[str]:
        kind = type(step)
        if kind is Launch:
            lines = print_launch(step, self.shared)  # type: ignore[arg-type]
        elif kind is Gemm:
            lines = print_gemm(step, self.shared)  # type: ignore[arg-type]
        elif kind is Convolution:
            lines = print_convolution(step, self.shared)  # type: ignore[arg-type]
        elif kind is Attention or kind is AttentionBackward:
            lines = print_attention(step)  # type: ignore[arg-type]
        elif kind is HostCall:
            lines = print_host_call(step, self.host_calls)  # type: ignore[arg-type]
            self.host_calls += 1
        elif kind is CopyBuffer:
            lines = print_copy(step)  # type: ignore[arg-type]
        else:
            raise TypeError(f"program {self.program.name}: {kind.__name__} is no step")
        return [f"    {line}" for line in lines]

    def layout(self) -> str:
        lines = [f"    const i64 {size_name(s.symbol)} = sizes[{i}];" for i, s in enumerate(self.program.sizes)]
        lines += [f"    n[{i}] = {number(e)};" for i, e in enumerate(layout_numbers(self.program))]
        text = "\n".join(lines)
        head = 'extern "C" __attribute__((visibility("default"))) void lamina_layout(const i64 *sizes, i64 *n)'
        return f"{head} {{\n{text}\n}}\n"


def count_outputs(program: Program) -> int:
    """How many buffers the launcher allocates for results."""
    return sum(1 for b in program.buffers.values() if b.storage == "output")


def output_buffers(program: Program) -> list[Buffer]:
    """Buffers of results, by their index."""
    return sorted((b for b in program.buffers.values() if b.storage == "output"), key=lambda b: b.index)


def layout_numbers(program: Program) -> list[Expr | int]:
    """The numbers a launcher needs, in the order it reads them: sizes and strides of each tensor input, then of each
    output, the
    workspace's bytes, then sizes that are results.
    """
    found: list[Expr | int] = []
    for buffer in [b for b in program.inputs if b is not None] + output_buffers(program):
        found += [*buffer.shape, *buffer.strides]
    found.append(program.workspace)
    found += [r.value for r in program.outputs if r.kind == "scalar" and isinstance(r.value, Expr)]
    return found
