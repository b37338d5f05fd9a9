"""The graph layer of Lamina: IR, symbolic sizes, passes, text and JSON formats. Standard library only."""

from __future__ import annotations

from pathlib import Path

from .builder import GraphBuilder, OperatorLike, OperatorResolver
from .device import CPU, Device
from .dtype import *  # noqa: F403
from .dtype import __all__ as _dtype_all
from .graph import Graph
from .interpreter import Interpreter, Resolver
from .node import Argument, Node, map_arguments
from .proxy import Proxy
from .spec import ScalarSpec, Size, Spec, TensorSpec, contiguous_strides
from .structure import content_hash, graphs_equal
from .text import ArrayConstant, ParseError, UnprintableError, parse, print_graph
from .verifier import VerificationError, verify

__version__ = "0.1.0.dev0"
PROVIDES = {"graph": 0, "tensor_abi": 0}
"""Versions of the interfaces this package owns."""

__all__ = [
    *_dtype_all,
    "CPU",
    "PROVIDES",
    "Argument",
    "ArrayConstant",
    "ParseError",
    "UnprintableError",
    "VerificationError",
    "content_hash",
    "graphs_equal",
    "parse",
    "print_graph",
    "verify",
    "Device",
    "Graph",
    "GraphBuilder",
    "Interpreter",
    "Node",
    "OperatorLike",
    "OperatorResolver",
    "Proxy",
    "Resolver",
    "ScalarSpec",
    "Size",
    "Spec",
    "TensorSpec",
    "contiguous_strides",
    "get_include",
    "map_arguments",
]


def get_include() -> str:
    """Folder of the C headers (``lamina/tensor_abi.h``), for a compiler's include path."""
    return str(Path(__file__).parent / "include")
