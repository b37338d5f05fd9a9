"""The graph layer of Lamina: IR, symbolic sizes, passes, text and JSON formats. Standard library only.

>>> import lamina_fx as fx
>>> m = fx.symbolic_trace(lambda x, y: (x + y) * 2)
>>> m(3, 4)
14
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import dtype
from .builder import GraphBuilder, OperatorLike, OperatorResolver
from .device import CPU, Device
from .dtype import *  # noqa: F403
from .graph import Graph
from .interpreter import Interpreter, Resolver
from .node import Argument, Node, map_arguments, map_leaves
from .proxy import Proxy
from .spec import ScalarSpec, Size, Spec, TensorSpec, contiguous_strides, same_sizes
from .structure import content_hash, graphs_equal
from .text import ArrayConstant, ParseError, UnprintableError, parse, print_graph
from .verifier import VerificationError, verify

if TYPE_CHECKING:
    from .codegen import python_code
    from .drawing import to_dot
    from .graph_module import GraphModule
    from .json_format import from_json, to_json
    from .rewriter import Match, replace_pattern
    from .tracer import Tracer, symbolic_trace, wrap
    from .transformer import Transformer

__version__ = "0.1.0.dev0"
PROVIDES = {"graph": 0, "tensor_abi": 0}
"""Versions of the interfaces this package owns."""

_LATER = {
    "GraphModule": "graph_module", "Match": "rewriter", "Tracer": "tracer", "Transformer": "transformer",
    "from_json": "json_format", "python_code": "codegen", "replace_pattern": "rewriter", "symbolic_trace": "tracer",
    "to_dot": "drawing", "to_json": "json_format", "wrap": "tracer",
}  # fmt: skip
"""Public names that are imported when first used, so that importing the package stays fast; and their modules."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in ("passes", "pytree", "symbolic"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_include() -> str:
    """Folder of the C headers (``lamina/tensor_abi.h``), for a compiler's include path."""
    return __file__.rpartition("__init__")[0] + "include"


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "CPU",
    "PROVIDES",
    "Argument",
    "ArrayConstant",
    "Device",
    "Graph",
    "GraphBuilder",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "OperatorLike",
    "OperatorResolver",
    "ParseError",
    "Proxy",
    "Resolver",
    "ScalarSpec",
    "Size",
    "Spec",
    "TensorSpec",
    "Tracer",
    "Transformer",
    "UnprintableError",
    "VerificationError",
    "content_hash",
    "contiguous_strides",
    "from_json",
    "get_include",
    "graphs_equal",
    "map_arguments",
    "map_leaves",
    "parse",
    "print_graph",
    "python_code",
    "replace_pattern",
    "same_sizes",
    "symbolic_trace",
    "to_dot",
    "to_json",
    "verify",
    "wrap",
]
__all__ += dtype.__all__
