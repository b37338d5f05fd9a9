"""Results lie in memory as the operator's rule says, whatever order the array library or a reference chose.

Compiled code gives its results the inferred strides, so eager must, too. Row-major operands give row-major results:
only where an operand or the result is not, the rule is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec
from lamina_prims import Operator
from lamina_prims.arrays import array_namespace, is_array

__all__ = ["in_inferred_layout"]

_KEPT = 1024
_known: dict[Any, Any] = {}
"""Inferred specs: a composite's rule runs its whole body."""


def in_inferred_layout(op: Operator, value: Any, arrays: Any, args: Any, kwargs: Any) -> Any:
    """``value`` (arrays, perhaps nested), copied where its strides are others than inferred.

    ``arrays`` are the call's arguments as arrays, ``args`` and ``kwargs`` with specs in their place.
    """
    if not (_any_unordered(value) or _any_unordered(arrays)) or "dynamic" in op.tags:
        return value
    return _placed(value, _inferred(op, args(), kwargs()))


def _any_unordered(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_any_unordered, value))
    return _is_array(value) and value.ndim > 1 and not value.flags.c_contiguous


def _is_array(value: Any) -> bool:
    return type(value) is np.ndarray or is_array(value)


def _inferred(op: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
    try:
        key = (op.id, args, tuple(kwargs.items()))
        found = _known.get(key)
    except TypeError:  # a list among the arguments
        return op.infer(args, kwargs)
    if found is None:
        if len(_known) >= _KEPT:
            _known.clear()
        found = _known[key] = op.infer(args, kwargs)
    return found


def _placed(value: Any, spec: Any) -> Any:
    if isinstance(value, (tuple, list)) and isinstance(spec, (tuple, list)) and len(value) == len(spec):
        parts = [_placed(v, s) for v, s in zip(value, spec, strict=True)]
        return parts if type(value) is list else tuple(parts)
    if not _is_array(value) or type(spec) is not TensorSpec or value.ndim < 2 or not value.size:
        return value
    item = value.itemsize
    wanted = [s * item for s in spec.strides]
    pairs = zip(value.shape, value.strides, wanted, strict=True)
    if all(n == 1 or have == want for n, have, want in pairs):
        return value
    order = sorted(range(value.ndim), key=lambda d: -spec.strides[d])
    made = array_namespace(value).ascontiguousarray(value.transpose(order))
    return made.transpose([order.index(d) for d in range(value.ndim)])
