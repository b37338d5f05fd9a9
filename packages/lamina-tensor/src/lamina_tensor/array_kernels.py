"""Faster kernels for operators on NumPy arrays, given to the operators themselves (``Operator.kernel``).

They serve eager tensors and the bodies of composites alike; a kernel returns ``NotImplemented`` to leave a call to the
reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_prims import operator

from . import _kernels

__all__ = ["install"]

_ERF = {np.dtype(np.float32): _kernels.erf32, np.dtype(np.float64): _kernels.erf64}


def _erf(input: Any) -> Any:
    function = _ERF.get(getattr(input, "dtype", None))
    if function is None or type(input) is not np.ndarray:
        return NotImplemented
    out = np.empty_like(input)  # dense, its dimensions in the input's order: the layout of all elementwise results
    order = sorted(range(out.ndim), key=lambda d: -out.strides[d])
    function(np.ascontiguousarray(input.transpose(order)), out.transpose(order))
    return out


def _philox(state: Any, shape: Any) -> Any:
    if type(state) is not np.ndarray or state.shape != (2,) or state.dtype != np.int64:
        return NotImplemented
    out = np.empty(tuple(shape), np.uint32)
    if out.size:
        seed, offset = state.tolist()
        _kernels.philox(out, seed & 0xFFFFFFFFFFFFFFFF, offset & 0xFFFFFFFFFFFFFFFF)
    return out


def install() -> None:
    """Give the operators their kernels."""
    operator("erf").kernel = _erf
    operator("philox").kernel = _philox
