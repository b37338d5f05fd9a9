"""Capture of Python frames into graphs.

>>> import numpy as np
>>> from lamina_dynamo.numpy_frontend import NumpyFrontend
>>> from lamina_fx import Interpreter
>>> def backend(graph, example_inputs, context):
...     run = Interpreter(graph, context.frontend.resolve).run
...     return run
>>> @optimize(backend, NumpyFrontend())
... def f(x):
...     return x * 2 + 1
>>> f(np.ones(3, np.float32)).tolist()
[3.0, 3.0, 3.0]
"""

from __future__ import annotations

from .capture import CaptureWarning, reset
from .config import Config
from .errors import BreakReason, DynamoError, InternalError, Unsupported
from .eval import CompiledFunction, DisabledFunction, disable, optimize
from .events import CompileEvent, add_listener, recording, remove_listener
from .frontend import Frontend
from .guard import Ambient, Guard, GuardSet
from .marks import mark_dynamic, mark_static, maybe_mark_dynamic
from .output import CaptureContext, CapturedGraph
from .skip import add_skipped_path
from .status import is_compiling

__version__ = "0.1.0.dev0"
PROVIDES = {"captured": 0}
"""Versions of the interfaces this package owns."""
ACCEPTS = {"graph": (0,), "tensor_abi": (0,)}
"""Versions of the interfaces it uses."""

__all__ = [
    "ACCEPTS",
    "PROVIDES",
    "Ambient",
    "BreakReason",
    "CaptureContext",
    "CaptureWarning",
    "CapturedGraph",
    "CompileEvent",
    "CompiledFunction",
    "Config",
    "DisabledFunction",
    "DynamoError",
    "Frontend",
    "Guard",
    "GuardSet",
    "InternalError",
    "Unsupported",
    "add_listener",
    "add_skipped_path",
    "disable",
    "is_compiling",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "optimize",
    "recording",
    "remove_listener",
    "reset",
]
