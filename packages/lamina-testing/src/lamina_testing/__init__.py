"""Conformance suites for Lamina's layers, and what tests share: comparisons, golden files, a small reverse mode.

- ``suites.BackendSuite``, ``EagerSuite``, ``GradientSuite``: subclass them to prove a backend or an array library;
- ``operators``: checks of one operator against its samples;
- ``reverse.vjp``: gradients of a graph on NumPy arrays by the operators' own rules;
- ``random_graphs.random_graph``: graphs of a few operators, for tests that two ways of running agree;
- ``golden``: a pytest plugin for golden files;
- ``work.count_calls``: how much a function does, for tests of growth.
"""

from __future__ import annotations

from .compare import assert_same, tolerance
from .reverse import vjp

__version__ = "0.1.0.dev0"
ACCEPTS = {"graph": (0,), "primset": (0,)}

__all__ = ["ACCEPTS", "assert_same", "tolerance", "vjp"]
