"""The symbolic bytecode interpreter: from a frame to a graph, guards and new bytecode.

>>> from lamina_dynamo.numpy_frontend import NumpyFrontend
>>> from lamina_dynamo.backends import interpret
>>> import numpy as np
>>> def f(x, y):
...     return x * 2 + y
>>> result = translate_frame(
...     f.__code__, {"x": np.ones(3), "y": np.ones(3)}, f.__globals__, __builtins__, (), NumpyFrontend(),
...     interpret)
>>> [n.target for n in result.captured.graph.nodes]
['x', 'y', 'operator.mul', 'operator.add', 'output']
"""

from __future__ import annotations

from .result import TranslationResult
from .run import translate_frame

__all__ = ["TranslationResult", "translate_frame"]
