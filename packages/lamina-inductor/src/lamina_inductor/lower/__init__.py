"""From primitives to loop IR: ``lower_graph`` and one table of rules, filled by one module per family."""

from __future__ import annotations

from .graph import LoweredGraph, lower_graph

__all__ = ["LoweredGraph", "lower_graph"]
