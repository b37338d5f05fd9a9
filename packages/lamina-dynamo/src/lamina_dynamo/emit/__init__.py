"""Bytecode writing: an `Emitter` builds the code object that replaces a frame's own.

The `bytecode` library encodes (jumps, caches, line and exception tables) in raw mode; stack depths are ours,
because its own computation is wrong for code that is entered behind the start of a protected range, as resume
functions are. What differs between CPython versions is in one module each: `py311`, `py312`, `py313`, `py314`.
"""

from __future__ import annotations

from .assemble import Constant
from .emitter import Emitter

__all__ = ["Constant", "Emitter"]
