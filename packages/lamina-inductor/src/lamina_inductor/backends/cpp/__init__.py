"""The C++ backend: programs as shared libraries.

``compile_program(program)`` prints kernels and host program, compiles them (or finds them in the cache) and opens the
artifact.
``supports(op, dtype)`` says whether an elementwise operator can be printed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .stored import NoCompiler, find_compiled
from .toolchain import CompileError, Toolchain, find_toolchain

if TYPE_CHECKING:
    from .compile import compile_program
    from .elementwise import supports

__all__ = ["CompileError", "NoCompiler", "Toolchain", "compile_program", "find_compiled", "find_toolchain", "supports"]

_LAZY = {"compile_program": "compile", "supports": "elementwise"}
"""The code generator is loaded when something is compiled that no cache has."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    return value
