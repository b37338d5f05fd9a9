"""Loop IR, fusion and code generation for tensor graphs."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
