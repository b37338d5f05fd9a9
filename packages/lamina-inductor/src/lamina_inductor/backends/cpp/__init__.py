"""The C++ backend: programs as shared libraries.

``compile_program(program)`` prints kernels and host program, compiles them (or finds them in the cache) and opens the
artifact.
``supports(op, dtype)`` says whether an elementwise operator can be printed.
"""

from __future__ import annotations

from .compile import NoCompiler, compile_program, find_compiled
from .elementwise import supports
from .toolchain import CompileError, Toolchain, find_toolchain

__all__ = ["CompileError", "NoCompiler", "Toolchain", "compile_program", "find_compiled", "find_toolchain", "supports"]
