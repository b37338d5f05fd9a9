"""The Triton backend as other layers see it: a graph of primitives in, kernels out.

>>> from lamina_fx import Graph, GraphBuilder, TensorSpec, float32
>>> from lamina_prims import ops
>>> graph = Graph()
>>> x = GraphBuilder(graph).proxy(graph.placeholder("x", spec=TensorSpec((4096,), float32)))
>>> _ = graph.output((ops.exp(x).node,))
>>> emitted = TritonBackend().emit(graph, name="f")
>>> [(launch.kernel.name, launch.grid) for launch in emitted.launches]
[('k0_exp', (4,))]
>>> print(emitted.kernels[0].source)
@triton.jit
def k0_exp(b0, b1, n, XBLOCK: tl.constexpr):
    # exp
    i0 = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    inside_x = i0 < n
    v1 = tl.load(b0 + i0, inside_x, other=0.0)
    v2 = tl.exp(v1)
    tl.store(b1 + i0, v2, inside_x)
<BLANKLINE>
"""

from __future__ import annotations

from typing import Any

from lamina_fx import Graph

from ...ir.program import Program
from ...schedule.program import build_program
from ...schedule.style import GRID_LOOPS
from .elementwise import supports
from .emit import emit_program
from .program import TritonProgram

__all__ = ["TritonBackend"]

_NOT_YET = (
    "backend 'triton': running on a GPU is not there yet (a launcher and CUDA memory are missing); "
    "use TritonBackend().emit(graph) to see the kernels, or backend='cpp' to run on the CPU"
)


class TritonBackend:
    """Generates Triton kernels. Needs no triton to do so; ``compile_ptx`` does.

    keep: composites that are passed through as they are (none: softmax and norms fuse from their primitives).
    """

    name = "triton"
    keep: frozenset[str] = frozenset()

    def program(self, graph: Graph, *, name: str = "graph") -> Program:
        """The kernels and steps for ``graph`` in kernel IR, with loops for a grid of programs."""
        return build_program(graph, name=name, supports=supports, loops=GRID_LOOPS)

    def emit(self, graph: Graph, *, name: str = "graph", externs: bool = True) -> TritonProgram:
        """The kernels of a graph of strict primitives, and how they are launched.

        ``externs``: steps without a generated kernel (products, convolutions, operators that run by their reference,
        complex numbers) are listed; False: they are an error.

        Raises:
            NotImplementedError: with ``externs=False`` there is such a step; the message names it and the user's line.
        """
        result = emit_program(self.program(graph, name=name))
        if not externs and result.externs:
            raise result.externs[0].refuse()
        return result

    def require_device(self) -> None:
        """Called before anything is captured for this backend.

        Raises:
            NotImplementedError: always, until there is a launcher.
        """
        raise NotImplementedError(_NOT_YET)

    def compile(self, graph: Graph, *, name: str = "graph", options: dict[str, Any] | None = None) -> Any:
        """Not there yet.

        Raises:
            NotImplementedError: always, until there is a launcher.
        """
        raise NotImplementedError(_NOT_YET)
