"""Ahead-of-time autograd: joint graphs, functionalisation, partitioning."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
