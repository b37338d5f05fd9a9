"""The joint graph: forward and backward of a captured program as one functional graph, and how to call it.

Placeholders are the captured inputs, then one tangent (cotangent of an output) per differentiable output.
The output is a tuple: forward results first, then one gradient (or None) per differentiable input.
Writes to inputs stand at the end as ``copy_to`` nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lamina_fx import Graph, Node, TensorSpec
from lamina_tensor.views import ViewStep

__all__ = ["BackwardStep", "GradUpdate", "InputInfo", "JointGraph", "OutputInfo"]


@dataclass(frozen=True, slots=True)
class InputInfo:
    """One input of the captured graph.

    ``spec`` is None for a Python number. ``written`` says whether the program changes the tensor in place;
    ``gradient`` is the index of this input's gradient among the backward results, None where there is none.
    """

    spec: TensorSpec | None
    requires_grad: bool = False
    is_leaf: bool = True
    written: bool = False
    gradient: int | None = None


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """One of several backward steps of a program that overwrites inputs which have a history.

    Such an input is, as the program leaves it, a tensor that others may be differentiated by: results derive from it,
    and it from the inputs. ``tangents`` of this step's results give ``gradients``: (kind, input, index among the
    gradients), where kind ``"input"`` is the input as it was and ``"rebased"`` as the program leaves it. ``rebased``
    is the input whose history this step is; None: all other results.
    """

    tangents: tuple[int, ...]
    gradients: tuple[tuple[str, int, int], ...]
    rebased: int | None = None


@dataclass(frozen=True, slots=True)
class OutputInfo:
    """How one result of the captured graph is made from what the compiled graph returns.

    ``kind`` is ``"value"`` (result ``index`` of the forward graph), ``"input"`` (the input tensor itself),
    ``"view"`` (of input ``index``, by ``steps``), ``"alias"`` (of result ``index``, by ``steps``: results that share
    memory in the program share it again) or ``"constant"``. Two kinds make no result: ``"root"`` (result ``index``,
    the memory that aliases view) and ``"rebase"`` (input ``index`` written in place with a gradient history: copy
    ``value`` of the forward graph into it).
    ``tracked`` says of a view or alias whether gradients flow through it, ``tangent`` is the index of the result's
    tangent among the backward inputs, None when not differentiable.
    """

    kind: str
    index: int = -1
    value: Any = None
    steps: tuple[ViewStep, ...] = ()
    tracked: bool = False
    requires_grad: bool = False
    tangent: int | None = None
    node: Node | None = None
    """The node of the captured graph whose value is differentiated, where there is one."""
    inference: bool = False
    """Made in an ``inference_mode`` inside the program: the result says so, and refuses to be saved for a backward."""


@dataclass(frozen=True, slots=True)
class GradUpdate:
    """``inputs[input].grad`` becomes forward result ``value`` (None: it is set to None)."""

    input: int
    value: int | None


@dataclass(frozen=True)
class JointGraph:
    """See the module. ``forward_count`` forward results come first in the output tuple."""

    graph: Graph
    inputs: tuple[InputInfo, ...]
    outputs: tuple[OutputInfo, ...]
    grad_updates: tuple[GradUpdate, ...] = ()
    forward_count: int = 0
    tangents: tuple[Node, ...] = ()
    backward_nodes: frozenset[Node] = field(default_factory=frozenset)
    """Nodes that were written while gradients were computed."""
    grad_inputs: tuple[int, ...] = ()
    """The last ``len(grad_inputs)`` inputs are the ``.grad`` of these inputs."""
    replaced: tuple[int, ...] = ()
    """Inputs whose ``.grad`` at entry nothing reads, because the program assigns it first."""
    steps: tuple[BackwardStep, ...] = ()
    """Empty: one step, whose gradients ``inputs`` tell."""
    refused: str | None = None
    """Why a backward pass over the results is an error (the gradients are then zeros that nobody sees)."""

    @property
    def results(self) -> tuple[Any, ...]:
        """Everything the graph returns: forward results, then gradients."""
        return tuple(self.graph.output_node.args[0])

    @property
    def overwritten(self) -> frozenset[int]:
        """Inputs that hold something else after a call, by position."""
        rebased = {info.index for info in self.outputs if info.kind == "rebase"}
        return frozenset(k for k, info in enumerate(self.inputs) if info.written or k in rebased)

    @property
    def backward_steps(self) -> tuple[BackwardStep, ...]:
        """``steps``, or the only one."""
        if self.steps:
            return self.steps
        found = sorted((info.gradient, k) for k, info in enumerate(self.inputs) if info.gradient is not None)
        return (BackwardStep(tuple(range(len(self.tangents))), tuple(("input", k, at) for at, k in found)),)

    @property
    def has_backward(self) -> bool:
        """True when some output can be differentiated."""
        return bool(self.tangents)
