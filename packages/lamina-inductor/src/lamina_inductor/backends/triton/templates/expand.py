"""Turn the steps of a program that have templates into launches, and the rest into what the emitter knows.

A step with an epilogue becomes one kernel, or the library's step and the epilogue as a kernel of its own, whatever the
planner chose. Kernels with equal texts are one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ....inspect.text import format_body
from ....ir.kernel import Kernel
from ....ir.program import Gemm, KernelCall, Launch, Program, Step
from ....schedule.flat_calls import flat_call
from ....schedule.share import words
from ..program import TritonKernel, TritonLaunch
from .flat_grid import with_flat_grid
from .kernel_text import ANONYMOUS
from .prologue import Prologue, find_prologues

__all__ = ["Expansion", "NoTemplates", "Planner", "expand_steps"]


class Planner(Protocol):
    """Chooses templates."""

    def prepare(self, program: Program) -> None:
        """Called before anything is asked about the program's steps."""
        ...

    def launches(self, step: Any, program: Program) -> list[TritonLaunch] | None:
        """Launches of kernels without names, in order; None where a library should run the step."""
        ...

    def fused(self, step: Gemm, program: Program, prologues: dict[str, Prologue]) -> list[TritonLaunch] | None:
        """The same with what makes the operands ``left`` and ``right``; None where that does not pay."""
        ...


class NoTemplates:
    """Libraries and references run everything that has no loops."""

    def prepare(self, program: Program) -> None:
        """Nothing."""

    def launches(self, step: Any, program: Program) -> list[TritonLaunch] | None:
        """None."""
        return None

    def fused(self, step: Gemm, program: Program, prologues: dict[str, Prologue]) -> list[TritonLaunch] | None:
        """None."""
        return None


@dataclass
class Expansion:
    """Steps with lists of launches where templates stand, and the templates' kernels. planned: the program's steps,
    with epilogues behind what takes none. made: told of each kernel."""

    steps: list[Step | list[TritonLaunch]] = field(default_factory=list)
    kernels: dict[TritonKernel, TritonKernel] = field(default_factory=dict)
    planned: list[Step] = field(default_factory=list)
    behind: dict[str, Kernel] = field(default_factory=dict)
    made: Callable[[TritonKernel], None] | None = None

    def named(self, launch: TritonLaunch) -> TritonLaunch:
        """The launch with a kernel that has a name, in a grid that a device takes."""
        launch = with_flat_grid(launch)
        anonymous = replace(launch.kernel, origins=())
        found = self.kernels.get(anonymous)
        if found is None:
            name = f"t{len(self.kernels)}_{words(launch.kernel.origins)}"
            source = launch.kernel.source.replace(ANONYMOUS, name)
            found = self.kernels[anonymous] = replace(launch.kernel, name=name, source=source)
            if self.made is not None:
                self.made(found)
        return replace(launch, kernel=found)

    def add(self, *steps: Step) -> None:
        """Steps without a template."""
        self.steps.extend(steps)
        self.planned.extend(steps)

    def alone(self, epilogue: KernelCall) -> KernelCall:
        """An epilogue that is launched by itself: over all elements, where its rows mean nothing."""
        call = flat_call(epilogue)
        return replace(call, kernel=self.behind.setdefault(format_body(call.kernel), call.kernel))


def expand_steps(
    program: Program, planner: Planner | None, made: Callable[[TritonKernel], None] | None = None
) -> Expansion:
    """Every step, its epilogue either printed into the template or a launch behind it. ``made`` is told of each
    template's kernel, once."""
    result = Expansion(made=made)
    if planner is not None:
        planner.prepare(program)
    fused = {} if planner is None else _fused(program, planner)
    gone = {buffer for _, buffers in fused.values() for buffer in buffers}
    for number, step in enumerate(program.steps):
        if type(step) is Launch:
            parts = tuple([call for call in step.parts if gone.isdisjoint(_made(call))])
            result.add(*((replace(step, parts=parts),) if parts else ()))
            continue
        launches = (
            None if planner is None else planner.launches(step, program) if number not in fused else fused[number][0]
        )
        if launches is not None:
            result.steps.append([result.named(launch) for launch in launches])
            result.planned.append(step)
            continue
        epilogue = getattr(step, "epilogue", None)
        if epilogue is None:
            result.add(step)
        else:
            fields: dict[str, Any] = {"epilogue": None} | ({"scratch": False} if hasattr(step, "scratch") else {})
            result.add(replace(step, **fields), Launch((result.alone(epilogue),)))  # type: ignore[type-var]
    return result


def _fused(program: Program, planner: Planner) -> dict[int, tuple[list[TritonLaunch], list[str]]]:
    """By the number of a product: its launches with the kernels in front of it, and the buffers that are not made."""
    result: dict[int, tuple[list[TritonLaunch], list[str]]] = {}
    known = find_prologues(program) if any(type(s) is Gemm for s in program.steps) else {}
    for number, step in enumerate(program.steps):
        if type(step) is Gemm and known:
            found = {n: known[b] for n in ("left", "right") if (b := getattr(step, n).buffer) in known}
            for some in (
                found,
                {n: p for n, p in found.items() if n == "right"},
                {n: p for n, p in found.items() if n == "left"},
            ):
                launches = planner.fused(step, program, some) if some else None
                if launches is not None:
                    result[number] = launches, [getattr(step, n).buffer for n in some]
                    break
    return result


def _made(call: KernelCall) -> set[str]:
    return {b for p, b in zip(call.kernel.params, call.buffers, strict=True) if p.role != "in"}
