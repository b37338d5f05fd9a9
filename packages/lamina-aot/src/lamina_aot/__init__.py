"""Ahead-of-time autograd: joint graphs traced through the eager engine, functionalisation, partitioning."""

from __future__ import annotations

from .compile import compile_captured
from .joint import GradUpdate, InputInfo, JointGraph, OutputInfo
from .partition import Partition, partition
from .runtime import CompiledGraph, CompileGraph, Executable
from .second import gradient_graph
from .trace import trace_joint

__version__ = "0.1.0.dev0"
PROVIDES = {"joint": 0}
ACCEPTS = {"graph": (0,), "primset": (0,), "captured": (0,)}

__all__ = [
    "ACCEPTS",
    "PROVIDES",
    "CompileGraph",
    "CompiledGraph",
    "Executable",
    "GradUpdate",
    "InputInfo",
    "JointGraph",
    "OutputInfo",
    "Partition",
    "compile_captured",
    "gradient_graph",
    "partition",
    "trace_joint",
]
