"""What runs when a compiled graph is called: results rebuilt, ``.grad`` updated, autograd connected.

``CompiledGraph`` holds the compiled halves. When nothing can be differentiated, a call is one call of the forward
half plus the few results that are no plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lamina_fx import Graph
from lamina_tensor import Tensor
from lamina_tensor.views import replay

from .joint import JointGraph, OutputInfo
from .partition import Partition
from .symbols import SizeReader
from .tape import call_recorded, tape_plan, write_rebased

__all__ = ["CompileGraph", "CompiledGraph", "Executable"]

Executable = Callable[..., Sequence[Any]]
"""A compiled functional graph: placeholders' values in, results out."""

CompileGraph = Callable[[Graph, str], Executable]
"""Compiles one functional graph (core level) under a name."""


@dataclass
class CompiledGraph:
    """A captured graph, compiled. Call it with the captured inputs; it returns the captured results."""

    joint: JointGraph
    halves: Partition | None
    forward: Executable
    compile_backward: Callable[[], Executable]
    """Compiles the backward half; called once, at the first backward."""
    compile_second: Callable[[Sequence[Any]], Executable]
    """Compiles the gradients as a differentiable function of inputs and tangents (for ``create_graph``)."""
    sizes: SizeReader = field(default_factory=lambda: SizeReader({}))
    saved_by_eager: frozenset[int] = frozenset()
    """Inputs that eager would save for the backward: they must not be made in inference mode."""
    _backward: Executable | None = field(default=None, repr=False)
    _second: dict[tuple[bool, ...], Executable] = field(default_factory=dict, repr=False)
    """By which arguments have gradients themselves."""

    def __post_init__(self) -> None:
        outputs = self.joint.outputs
        self._inference = tuple(k for k, o in enumerate(outputs) if o.inference)
        self._plain = (
            self.halves is None
            and not self._inference
            and not self.joint.grad_updates
            and not self.joint.grad_inputs
            and [(o.kind, o.index) for o in outputs] == [("value", k) for k in range(self.joint.forward_count)]
        )
        self._tape = None if self.halves is None else tape_plan(self.joint, self.halves)
        self._picked: tuple[int, ...] | None = None
        if not self.joint.grad_updates and all(o.kind == "value" for o in outputs):
            self._picked = tuple(o.index for o in outputs)

    @property
    def entry(self) -> Executable:
        """What a call needs to run: the forward half alone where it gives just the captured results."""
        return self.forward if self._plain else self

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """Run on these inputs."""
        if self._plain:
            return self.forward(*inputs)
        if self.joint.grad_inputs:
            inputs += tuple(inputs[k].grad for k in self.joint.grad_inputs)
        for k in self.joint.replaced:  # as early as in eager, for the memory
            inputs[k].grad = None
        if self._tape is None:
            results = self.forward(*inputs)
            write_rebased(self.joint, inputs, results)
        else:
            results = call_recorded(self, self._tape, inputs)
        if self._picked is not None:
            values = tuple([results[k] for k in self._picked])
        else:
            values = self._rebuild(inputs, results)
        for k in self._inference:
            values[k]._inference = True
        return values

    # -- results ---------------------------------------------------------------------------------

    def _rebuild(self, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        for update in self.joint.grad_updates:
            inputs[update.input].grad = None if update.value is None else results[update.value]
        values: list[Any] = []
        for info in self.joint.outputs:
            if info.kind == "value":
                values.append(results[info.index])
            elif info.kind == "input":
                values.append(inputs[info.index])
            elif info.kind == "view":
                values.append(self._view(inputs, inputs[info.index], info))
            elif info.kind == "alias":
                values.append(self._view(inputs, results[info.index], info))
            elif info.kind == "constant":
                values.append(self.sizes(inputs, info.value))
        return tuple(values)

    def _view(self, inputs: Sequence[Any], base: Tensor, info: OutputInfo) -> Tensor:
        """Take the steps that led from ``base`` to a result."""
        if not info.steps or (base.requires_grad and not info.tracked):
            base = base.detach()
        return replay(base, self.sizes.everywhere(inputs, info.steps)) if info.steps else base

    # -- derivatives -----------------------------------------------------------------------------

    def gradients(self, inputs: Sequence[Any], saved: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
        """Run the backward half, compiling it the first time."""
        assert self.halves is not None
        if self._backward is None:
            self._backward = self.compile_backward()
        return self._backward(*saved, *tangents, *(self.sizes(inputs, s) for s in self.halves.symbols))

    def differentiable_gradients(self, inputs: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
        """The gradients with a history of their own, from the original inputs."""
        arguments = (*inputs, *tangents)
        wanted = tuple([isinstance(a, Tensor) and a.requires_grad for a in arguments])
        found = self._second.get(wanted)
        if found is None:
            found = self._second[wanted] = self.compile_second(arguments)
        return found(*arguments)
