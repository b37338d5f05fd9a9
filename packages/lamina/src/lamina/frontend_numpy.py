"""Which functions are captured as NumPy code: those that are given arrays and have nothing to do with tensors."""

from __future__ import annotations

from types import CodeType
from typing import Any

from lamina_dynamo.numpy_frontend import NumpyFrontend
from lamina_tensor import Tensor
from lamina_tensor.nn import Module

__all__ = ["frontend_of"]

_NUMPY = NumpyFrontend()


def frontend_of(code: CodeType, local: dict[str, Any], global_: dict[str, Any]) -> NumpyFrontend | None:
    """NumPy's front end where an argument is an array, none is a tensor or a module, and no name that the function
    reads is one of Lamina's (``lamina.from_numpy(x)`` works with tensors); otherwise None.
    """
    if any(isinstance(value, (Tensor, Module)) for value in local.values()):
        return None
    if any(_is_ours(global_[name]) for name in code.co_names if name in global_):
        return None
    return _NUMPY


def _is_ours(value: Any) -> bool:
    if isinstance(value, (Tensor, Module)):
        return True
    name = getattr(value, "__name__", None) if type(value).__name__ == "module" else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0].startswith("lamina")
