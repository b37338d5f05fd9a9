"""Turn the steps of a program that have templates into launches, and the rest into what the emitter knows.

A step with an epilogue becomes one kernel, or the library's step and the epilogue as a kernel of its own, whatever the
planner chose. Kernels with equal texts are one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ....ir.program import Launch, Program, Step
from ....schedule.share import words
from ..program import TritonKernel, TritonLaunch
from .kernel_text import ANONYMOUS

__all__ = ["Expansion", "NoTemplates", "Planner", "expand_steps"]


class Planner(Protocol):
    """Chooses templates: ``launches(step, program)`` prints a step, or is None where a library should run it."""

    def launches(self, step: Any, program: Program) -> list[TritonLaunch] | None:
        """Launches of kernels without names, in order."""
        ...


class NoTemplates:
    """Libraries and references run everything that has no loops."""

    def launches(self, step: Any, program: Program) -> list[TritonLaunch] | None:
        """None."""
        return None


@dataclass
class Expansion:
    """Steps with lists of launches where templates stand, and the templates' kernels."""

    steps: list[Step | list[TritonLaunch]] = field(default_factory=list)
    kernels: dict[TritonKernel, TritonKernel] = field(default_factory=dict)

    def named(self, launch: TritonLaunch) -> TritonLaunch:
        """The launch with a kernel that has a name."""
        anonymous = replace(launch.kernel, origins=())
        found = self.kernels.get(anonymous)
        if found is None:
            name = f"t{len(self.kernels)}_{words(launch.kernel.origins)}"
            source = launch.kernel.source.replace(ANONYMOUS, name, 1)
            found = self.kernels[anonymous] = replace(launch.kernel, name=name, source=source)
        return replace(launch, kernel=found)


def expand_steps(program: Program, planner: Planner | None) -> Expansion:
    """Every step, its epilogue either printed into the template or a launch behind it."""
    result = Expansion()
    for step in program.steps:
        launches = None if planner is None or type(step) is Launch else planner.launches(step, program)
        if launches is not None:
            result.steps.append([result.named(launch) for launch in launches])
            continue
        epilogue = getattr(step, "epilogue", None)
        if epilogue is None:
            result.steps.append(step)
        else:
            fields: dict[str, Any] = {"epilogue": None} | ({"scratch": False} if hasattr(step, "scratch") else {})
            result.steps.extend((replace(step, **fields), Launch((epilogue,))))  # type: ignore[type-var]
    return result
