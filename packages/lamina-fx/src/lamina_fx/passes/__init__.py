"""Passes: functions from a graph to a graph, one a file. They change the graph that they are given and return it.

>>> from lamina_fx import parse, passes
>>> g = parse("graph { %x = placeholder  %a = exp(%x)  %b = exp(%x)  %dead = neg(%a)  %m = mul(%a, %b)  return %m }")
>>> g = passes.eliminate_common_subexpressions(passes.eliminate_dead_code(g))
>>> [n.name for n in g.nodes]
['x', 'a', 'm', 'output']
"""

from __future__ import annotations

from .canonicalize_names import canonicalize_names
from .eliminate_common_subexpressions import eliminate_common_subexpressions
from .eliminate_dead_code import eliminate_dead_code
from .fold_constants import fold_constants
from .fold_identities import IDENTITIES, Identity, Variable, fold_identities
from .inline_subgraphs import inline_subgraphs
from .propagate_specs import propagate_specs
from .runner import Pass, PassRun, Report, run_passes
from .sort_nodes import sort_nodes
from .split_graph import split_graph

split_module = split_graph
"""torch.fx's name for ``split_graph``."""

__all__ = [
    "IDENTITIES", "Identity", "Pass", "PassRun", "Report", "Variable", "canonicalize_names",
    "eliminate_common_subexpressions", "eliminate_dead_code", "fold_constants", "fold_identities", "inline_subgraphs",
    "propagate_specs", "run_passes", "sort_nodes", "split_graph", "split_module",
]  # fmt: skip
