"""Elementwise operators: one rule gives promotion, broadcasting, meta, the NumPy wrapper and the strict form.

Promotion is PyTorch's: categories bool < int < float < complex; Python scalars and 0-d tensors take part only
with their category when a tensor of more dimensions has that category already. An int input of a floating
operator becomes the default dtype (float32).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lamina_fx import DType, Size, Spec, TensorSpec, bool_, complex64, float32, int64
from lamina_fx.device import CPU

from .arrays import array_dtype, array_namespace, numpy_dtype
from .promotion import promote

__all__ = ["Elementwise", "broadcast_shapes", "result_dtype"]

_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}
_SCALAR = {bool: bool_, int: int64, float: float32, complex: complex64}


def result_dtype(*values: Any) -> DType:
    """The dtype in which these tensors (anything with ``dtype`` and ``shape``) and Python scalars meet."""
    best: list[DType | None] = [None, None, None]  # tensors with dimensions, 0-d tensors, scalars
    for value in values:
        dtype = getattr(value, "dtype", None)
        if dtype is None:
            group, dtype = 2, _SCALAR.get(type(value), int64)
        else:
            group = 0 if len(value.shape) else 1
            if type(dtype) is not DType:
                dtype = array_dtype(dtype)
        have = best[group]
        best[group] = dtype if have is None else promote(have, dtype)
    result = None
    for dtype in best:
        if dtype is None:
            continue
        if result is None:
            result = dtype
        elif _RANK[dtype.kind] > _RANK[result.kind]:
            result = promote(result, dtype) if dtype.kind == "complex" and result.kind == "float" else dtype
    assert result is not None
    return result


def broadcast_shapes(name: str, shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The common shape.

    Raises:
        ValueError: two sizes differ and neither is 1; names the operator, the shapes and the dimension.
    """
    first = tuple(shapes[0])
    if all(tuple(s) == first for s in shapes[1:]):
        return first
    rank = max(map(len, shapes))
    result: list[Size] = [1] * rank
    for shape in shapes:
        for k in range(1, len(shape) + 1):
            size, have = shape[-k], result[-k]
            if type(have) is int and have == 1:
                result[-k] = size
            elif not (type(size) is int and size == 1) and size != have:
                if have == 1:
                    result[-k] = size
                elif size != 1:
                    listed = " and ".join(str(tuple(s)) for s in shapes)
                    raise ValueError(
                        f"{name}: the shapes {listed} do not broadcast: sizes {have} and {size} at dimension {rank - k}"
                    )
    return tuple(result)


class Elementwise:
    """Rule of an elementwise operator.

    ``compute`` is how the result's dtype follows from the promoted inputs: ``"same"``, ``"float"`` (ints
    become the default float), ``"bool"`` (comparisons), ``"abs"`` (complex gives its real type).
    ``allowed`` lists the kinds that the operator takes; others raise a TypeError.
    """

    def __init__(self, name: str, compute: str = "same", allowed: str = "bool int float complex") -> None:
        self.name = name
        self.compute = compute
        self.allowed = frozenset(allowed.split())

    def dtypes(self, *values: Any) -> tuple[DType, DType]:
        """(dtype in which to compute, dtype of the result)."""
        common = result_dtype(*values)
        if common.kind not in self.allowed:
            raise TypeError(f"{self.name} is not defined for {common}; it takes {', '.join(sorted(self.allowed))}")
        if self.compute == "float" and common.kind in ("bool", "int"):
            common = float32
        if self.compute == "bool":
            return common, bool_
        if self.compute == "abs" and common.kind == "complex":
            return common, float32 if common is complex64 else _float64()
        return common, common

    def __call__(self, *args: Any, **kwargs: Any) -> Spec:
        _, result = self.dtypes(*args)
        tensors = [a for a in args if hasattr(a, "shape")]
        shape = broadcast_shapes(self.name, [t.shape for t in tensors])
        device = next((t.device for t in tensors if t.device != CPU), CPU)
        first = tensors[0]
        if all(t.shape == shape and t.strides == first.strides for t in tensors):
            return TensorSpec(shape, result, _dense_like(first), device)
        return TensorSpec(shape, result, None, device)

    def wrap_reference(self, reference: str | Callable[..., Any]) -> Callable[..., Any]:
        """A function of arrays that promotes as this rule says, around a NumPy name or ``f(xp, *arrays)``."""

        def run(*args: Any, **kwargs: Any) -> Any:
            xp = array_namespace(*args)
            compute, result = self.dtypes(*args)
            to = numpy_dtype(compute)
            operands = [
                (a if a.dtype == to else a.astype(to)) if hasattr(a, "dtype") else to.type(a) for a in args
            ]
            with np.errstate(all="ignore"):
                value = (
                    getattr(xp, reference)(*operands, **kwargs)
                    if isinstance(reference, str)
                    else reference(xp, *operands, **kwargs)
                )
            want = numpy_dtype(result)
            return xp.asarray(value) if value.dtype == want else xp.asarray(value).astype(want)

        return run


def _dense_like(spec: Any) -> tuple[Size, ...] | None:
    """Strides of ``spec`` when its elements are dense in some order of dimensions, else None."""
    if isinstance(spec, TensorSpec) and not spec.is_contiguous():
        step: Size = 1
        pairs = sorted(
            ((st, sz) for st, sz in zip(spec.strides, spec.shape, strict=True) if sz != 1), key=lambda p: p[0]
        )
        for stride, size in pairs:
            if stride != step:
                return None
            step = step * size
        return spec.strides
    return None


def _float64() -> DType:
    from lamina_fx import float64

    return float64
