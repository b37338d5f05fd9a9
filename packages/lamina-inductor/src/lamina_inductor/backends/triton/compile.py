"""Compile kernels to PTX and machine code, without a GPU.

Triton is imported by ``worker`` alone, and only when called.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from dataclasses import dataclass, replace
from typing import Any

from lamina_fx.cuda_messages import INSTALL

from .program import TritonKernel
from .resources import resource_usage
from .worker import Request, answer, load_text

__all__ = [
    "SHARED_LIMITS", "CompiledKernel", "MissingTriton", "compile_ptx", "compiled_kernel", "import_triton",
    "load_function", "request_for", "require_triton", "toolchain",
]  # fmt: skip

SHARED_LIMITS: dict[int, int] = {
    80: 163 << 10, 86: 99 << 10, 87: 163 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 120: 99 << 10,
}  # fmt: skip
"""Bytes of shared memory that one program may use, by compute capability; the compiler does not check it."""

OLDEST = (3, 6)
"""The first triton whose language has all that kernels use."""


class MissingTriton(ImportError):
    """Triton is not installed, is too old, or does not load."""


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """Machine code of a kernel for one compute capability.

    shared: bytes of shared memory. warps: of a program, specialised ones among them. registers, spills: per thread,
    None when the tool that tells them is not there. clusters: blocks that work together as one program. scratch: bytes
    of memory that each program wants from the launcher. descriptors: for each descriptor parameter (type, swizzle,
    bytes of an element, block), as the driver counts them. cooperative: its programs wait for each other, so all must
    run at once.
    """

    name: str
    sm: int
    ptx: str
    cubin: bytes
    shared: int
    warps: int
    registers: int | None = None
    spills: int | None = None
    clusters: int = 1
    scratch: int = 0
    descriptors: tuple[tuple[int, int, int, tuple[int, ...]], ...] = ()
    cooperative: bool = False


def require_triton() -> None:
    """Refuse where triton is missing or too old; reads no more than the package's metadata.

    Raises:
        MissingTriton: the message says what to install.
    """
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        raise MissingTriton(f"compiling Triton kernels needs the package triton: {INSTALL}") from None
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MissingTriton(f"compiling Triton kernels needs triton {oldest} or later, {version} is here: {INSTALL}")


def import_triton() -> Any:
    """The package.

    Raises:
        MissingTriton: it is not installed, too old or broken; the message says what to install.
    """
    require_triton()
    try:
        import triton  # type: ignore[import-not-found]  # optional dependency
    except ImportError as error:
        raise MissingTriton(f"the package triton does not load ({error}): {INSTALL} brings one that does") from error
    return triton


def load_function(kernel: TritonKernel) -> Any:
    """The kernel as what ``@triton.jit`` makes of it.

    Raises:
        MissingTriton: triton is not installed; the message says how to install it.
    """
    import_triton()
    return load_text(kernel.name, kernel.module)


def compile_ptx(kernel: TritonKernel, sm: int, *, enable_fp_fusion: bool = True, usage: bool = True) -> CompiledKernel:
    """Compile for compute capability ``sm`` (80, 90, ...).

    ``enable_fp_fusion``: may ``a * b + c`` be one operation, as in the C++ backend. ``usage``: ask for registers, too.

    Raises:
        MissingTriton: triton is not installed.
        RuntimeError: the kernel wants more shared memory than the device has.
    """
    import_triton()
    compiled = compiled_kernel(kernel, sm, answer(request_for(kernel, sm, enable_fp_fusion=enable_fp_fusion)))
    if not usage:
        return compiled
    registers, spills = resource_usage(compiled.cubin)
    return replace(compiled, registers=registers, spills=spills)


def request_for(kernel: TritonKernel, sm: int, *, enable_fp_fusion: bool = True) -> Request:
    """What the compiler is asked."""
    options = kernel.options | {"enable_fp_fusion": enable_fp_fusion}
    aligned = tuple(sorted(kernel.aligned))
    return kernel.name, kernel.module, kernel.parameters, kernel.constants, aligned, options, sm


def compiled_kernel(kernel: TritonKernel, sm: int, found: dict[str, Any]) -> CompiledKernel:
    """What the compiler answered.

    Raises:
        RuntimeError: the kernel wants more shared memory than the device has.
    """
    shared, limit = found["shared"], SHARED_LIMITS.get(sm)
    if limit is not None and shared > limit:
        raise RuntimeError(
            f"{kernel.name} needs {shared} bytes of shared memory, sm_{sm} has {limit}; use smaller tiles"
        )
    return CompiledKernel(
        kernel.name,
        sm,
        found["ptx"],
        found["cubin"],
        shared,
        found["warps"],
        clusters=found["clusters"],
        scratch=found["scratch"],
        descriptors=tuple([_descriptor(d) for d in found["descriptors"]]),
        cooperative=found["cooperative"],
    )


_ELEMENTS = {8: 10, 9: 8, 10: 9}
"""Element types of descriptors that the device and the driver's function count differently (float64, the floats)."""


def _descriptor(found: dict[str, Any]) -> tuple[int, int, int, tuple[int, ...]]:
    kind = found["elem_type"]
    return _ELEMENTS.get(kind, kind), found["swizzle"], found["elem_size"], tuple(found["block_size"])


def toolchain() -> str | None:
    """What machine code depends on beside the kernel: versions of triton and of its assembler; None without triton.

    Reads no more than the package's metadata.
    """
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return None
    assemblers = [os.environ.get(name, "") for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")]
    return " ".join(["triton", version, *assemblers])
