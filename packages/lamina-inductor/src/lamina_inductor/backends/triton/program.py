"""What the backend gives: kernels with their launches, and the steps that no kernel is generated for."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from lamina_fx.symbolic import Expr

from ...ir.program import Operand, Program, Step
from .prelude import IMPORTS, functions_for
from .tiles import Tile

__all__ = ["ExternStep", "Scratch", "TensorDescriptor", "TritonKernel", "TritonLaunch", "TritonProgram"]


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """One ``@triton.jit`` function.

    Attributes:
        name: says which operators are in it.
        source: the function alone; ``module`` is a text that can be run.
        parameters: names and types in Triton's spelling (``("b0", "*fp32")``, ``("n", "i32")``), ``tl.constexpr``
            parameters apart: those stand behind all others.
        tile: the block sizes and warps that the text was made for.
        aligned: parameters that are multiples of 16 in every launch: pointers, and sizes that happen to be.
        origins: what was fused, as (node name, operator id, "file:line").
        blocks: values of the ``tl.constexpr`` parameters, in order; None: those of the tile.
        stages: of software pipelines; None: the compiler's choice.
        registers: most that a thread may have; None: what it wants.
    """

    name: str
    source: str
    parameters: tuple[tuple[str, str], ...]
    tile: Tile
    aligned: frozenset[str]
    origins: tuple[tuple[str, str, str], ...]
    blocks: tuple[tuple[str, Any], ...] | None = None
    stages: int | None = None
    registers: int | None = None

    @property
    def constants(self) -> dict[str, Any]:
        """Values of the ``tl.constexpr`` parameters."""
        if self.blocks is not None:
            return dict(self.blocks)
        return self.tile.blocks

    @property
    def options(self) -> dict[str, int]:
        """What the compiler is told beside the text."""
        wanted = {"num_warps": self.tile.warps, "num_stages": self.stages, "maxnreg": self.registers}
        return {name: value for name, value in wanted.items() if value is not None}

    @property
    def checks(self) -> bool:
        """Whether the last parameter points to an int32, the error word that a bad index sets."""
        return bool(self.parameters) and self.parameters[-1][0] == "error"

    @property
    def module(self) -> str:
        """Imports, the functions of the prelude that are called, and the kernel."""
        return _module(self.source)


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory of a step: ``bytes`` from ``offset`` (a multiple of 256) in a region that all steps share, so it holds
    nothing from one step for the next, except between launches that stand side by side."""

    bytes: Expr | int
    offset: Expr | int = 0


@dataclass(frozen=True, slots=True)
class TensorDescriptor:
    """A descriptor that the host makes of an operand (parameter type ``tensordesc<fp16[64, 128]>``): ``block`` is the
    tile; the last stride is 1, the others are multiples of 16 bytes, as is the address."""

    operand: Operand
    block: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TritonLaunch:
    """Run a kernel on a grid of programs; arguments in the order of its parameters.

    Attributes:
        buffers: for pointers: names of the program's buffers, operands (a buffer's address plus the offset), scratch
            memory, descriptors, or a tuple: a table in device memory of addresses (of such) and numbers.
        sizes: integers (and numbers for ``fp32`` and ``fp64`` parameters) behind them; then comes the address of the
            error word where the kernel checks.
        grid: one to three numbers of programs.
    """

    kernel: TritonKernel
    buffers: tuple[str | Operand | Scratch | TensorDescriptor | tuple[Any, ...], ...]
    sizes: tuple[Expr | int | float, ...]
    grid: tuple[Expr | int, ...]


@dataclass(frozen=True, slots=True)
class ExternStep:
    """A step that the backend generates no kernel for: a matrix product, a convolution, an operator's reference; or a
    launch whose kernel has something that Triton has not, which ``reason`` names."""

    operator: str
    step: Step
    source: str = ""
    reason: str = ""

    def refuse(self) -> NotImplementedError:
        """The error for who wants a kernel of it."""
        line = f" (at {self.source})" if self.source else ""
        reason = self.reason or "the Triton backend generates no kernel for it"
        return NotImplementedError(
            f"{self.operator}{line}: {reason}; run this step with a library, or compile for backend='cpp'"
        )


@dataclass(frozen=True)
class TritonProgram:
    """A graph as launches and external steps; buffers, sizes, checks and results are those of ``program``.

    ``below``: what indices may reach, by the sizes of a call; each is below ``index_widths.LIMIT``, or the program must
    not be run.
    """

    name: str
    program: Program
    kernels: tuple[TritonKernel, ...]
    steps: tuple[TritonLaunch | ExternStep, ...]
    below: tuple[Expr, ...] = ()

    @property
    def externs(self) -> tuple[ExternStep, ...]:
        """The steps without a generated kernel."""
        return tuple([s for s in self.steps if type(s) is ExternStep])

    @property
    def launches(self) -> tuple[TritonLaunch, ...]:
        """The launches, in order."""
        return tuple([s for s in self.steps if type(s) is TritonLaunch])

    @functools.cached_property
    def source(self) -> str:
        """One module with all kernels."""
        return _module("\n\n".join([k.source for k in self.kernels]))


_GLUON = """\
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared as gl_fence
from triton.experimental.gluon.language.nvidia.hopper import mbarrier as gl_mbarrier
from triton.experimental.gluon.language.nvidia.hopper import tma as gl_tma
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma as gl_mma
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma_init as gl_mma_init
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma_wait as gl_mma_wait

gl_load = gl_tma.async_load if hasattr(gl_tma, "async_load") else gl_tma.async_copy_global_to_shared
gl_store = gl_tma.async_store if hasattr(gl_tma, "async_store") else gl_tma.async_copy_shared_to_global
gl_barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
"""


def _module(source: str) -> str:
    functions = functions_for(source)
    lower = [_GLUON] if "@gluon.jit" in source else []
    return "\n\n".join([IMPORTS, *lower, *([functions] if functions else []), source])


def launch_text(launch: TritonLaunch) -> str:
    """A launch in one line, for people."""
    arguments: tuple[Any, ...] = (*launch.buffers, *launch.sizes)
    grid = ", ".join(map(str, launch.grid))
    return f"{launch.kernel.name}[{grid}]({', '.join(map(str, arguments))})"
