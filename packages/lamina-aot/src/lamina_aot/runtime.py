"""What runs when a compiled graph is called: results rebuilt, ``.grad`` updated, autograd connected.

``CompiledGraph`` holds the compiled halves. When nothing can be differentiated, a call is one call of the forward
half plus the few results that are no plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import lamina_tensor
from lamina_fx import Graph, Node, TensorSpec
from lamina_tensor import Tensor, autograd
from lamina_tensor.autograd.node import check_version
from lamina_tensor.views import replay

from .joint import JointGraph, OutputInfo
from .partition import Partition, ancestors
from .symbols import SizeReader

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
    _backward: Executable | None = field(default=None, repr=False)
    _second: Executable | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        outputs = self.joint.outputs
        self._plain = (
            self.halves is None
            and not self.joint.grad_updates
            and not self.joint.grad_inputs
            and [(o.kind, o.index) for o in outputs] == [("value", k) for k in range(self.joint.forward_count)]
        )
        needed = ancestors([r for r in self.joint.results[self.joint.forward_count :] if isinstance(r, Node)])
        self.differentiated = frozenset(k for k, n in enumerate(self.joint.graph.placeholders) if n in needed)
        """Inputs that the gradients depend on."""

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """Run on these inputs."""
        if self._plain:
            return self.forward(*inputs)
        if self.joint.grad_inputs:
            inputs += tuple(inputs[k].grad for k in self.joint.grad_inputs)
        if self.halves is None:
            results = self.forward(*inputs)
        else:
            results = CompiledFunction.apply(self, *inputs)
        return self._rebuild(inputs, results)

    # -- results ---------------------------------------------------------------------------------

    def _rebuild(self, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        for update in self.joint.grad_updates:
            inputs[update.input].grad = None if update.value is None else results[update.value]
        for info in self.joint.outputs:
            if info.kind == "rebase":  # before results that are views of it
                inputs[info.index].copy_(results[info.value])
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
        if self._second is None:
            self._second = self.compile_second(arguments)
        return self._second(*arguments)


class CompiledFunction(autograd.Function):
    """The tape entry of one call of a compiled graph."""

    @staticmethod
    def forward(ctx: Any, compiled: CompiledGraph, *inputs: Any) -> tuple[Any, ...]:
        """Run the forward half; keep what the backward needs."""
        assert compiled.halves is not None
        before = list(inputs)
        for k in compiled.differentiated & compiled.joint.overwritten:
            before[k] = _snapshot(inputs[k])
        results = compiled.forward(*inputs)
        count = compiled.joint.forward_count
        saved = [(inputs if place == "input" else results)[k] for place, k in compiled.halves.places]
        ctx.compiled = compiled
        ctx.numbers = {k: v for k, v in enumerate(saved) if not isinstance(v, Tensor)}
        ctx.saved_count = len(saved)
        ctx.inputs = before
        ctx.versions = [v._version if isinstance(v, Tensor) else None for v in before]
        ctx.save_for_backward(*(v for v in saved if isinstance(v, Tensor)))
        ctx.set_materialize_grads(False)
        results = tuple(results[:count])
        wanted = {o.value if o.kind == "rebase" else o.index for o in compiled.joint.outputs if o.tangent is not None}
        ctx.mark_non_differentiable(*(r for k, r in enumerate(results) if k not in wanted and isinstance(r, Tensor)))
        return results

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        """Run the backward half."""
        compiled: CompiledGraph = ctx.compiled
        tangents = _tangents(compiled, ctx.inputs, cotangents)
        tensors = iter(ctx.saved_tensors)
        saved = [ctx.numbers[k] if k in ctx.numbers else next(tensors) for k in range(ctx.saved_count)]
        if lamina_tensor.is_grad_enabled():
            for k in compiled.differentiated & set(range(len(ctx.inputs))):
                if ctx.versions[k] is not None:
                    check_version(ctx.name(), ctx.inputs[k], ctx.versions[k], ctx.inputs[k]._sizes)
            gradients = compiled.differentiable_gradients(ctx.inputs, tangents)
        else:
            gradients = compiled.gradients(ctx.inputs, saved, tangents)
        return (None, *(None if i.gradient is None else gradients[i.gradient] for i in compiled.joint.inputs))


def _snapshot(tensor: Any) -> Any:
    """An input that the call overwrites, as it was before, with its history: the gradients' own derivative needs it."""
    with lamina_tensor.enable_grad():
        return tensor.clone()


def _tangents(compiled: CompiledGraph, inputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """One tangent per differentiable output: the cotangent in the traced layout, zeros where there is none."""
    tangents = []
    for info in compiled.joint.outputs:
        if info.tangent is None:
            continue
        given = cotangents[info.value if info.kind == "rebase" else info.index]
        node = compiled.joint.tangents[info.tangent]
        spec = node.spec
        assert isinstance(spec, TensorSpec)
        if given is None:
            given = lamina_tensor.zeros([compiled.sizes(inputs, s) for s in spec.shape], dtype=spec.dtype)
        tangents.append(given if given.is_contiguous() else given.contiguous())
    return tangents
