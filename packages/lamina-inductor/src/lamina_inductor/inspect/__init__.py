"""Looking at what was compiled: text of kernels and programs, what was fused and why, bytes moved."""

from __future__ import annotations

from .report import Traffic, explain, traffic
from .text import format_kernel, format_program

__all__ = ["Traffic", "explain", "format_kernel", "format_program", "traffic"]
