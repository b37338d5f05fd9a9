"""Elementwise operators: one rule gives promotion, broadcasting, meta, the NumPy wrapper and the strict form.

An int input of a floating operator becomes the default dtype (float32). In references float16 and bfloat16
are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_fx import DType, Spec, TensorSpec, bool_, contiguous_strides

from .arrays import array_namespace, element_type, numpy_dtype
from .dims import broadcast_shapes, common_device, surely_same
from .promotion import get_default_dtype, real_dtype, result_dtype
from .registry import ops
from .strides import elementwise_strides

__all__ = ["Elementwise", "broadcast_shapes", "result_dtype"]

_KINDS = {bool: "bool", int: "int", float: "float", complex: "complex"}
_CAST = {"bool": bool, "int": int, "float": float, "complex": complex}


class Elementwise:
    """Rule of an elementwise operator, all of whose arguments are tensors or Python scalars.

    Args:
        name: for messages.
        compute: how the result's dtype follows from the promoted inputs: ``"same"``, ``"float"`` (ints become
            the default float), ``"bool"`` (comparisons), ``"abs"`` (complex gives its real type).
        allowed: the kinds that the operator takes; others raise a RuntimeError.
        advice: what to do instead, at the end of that message.
        exact: the reference wants float16 and bfloat16 operands as they are.
        rounds: numbers beside half types are rounded to them first: the half nearest 0.1 equals 0.1.
        tensors: how many leading arguments must be tensors (the others may be Python scalars).
        conditions: how many leading arguments are bool tensors that take no part in promotion.
    """

    def __init__(
        self,
        name: str,
        compute: str = "same",
        allowed: str = "bool int float complex",
        *,
        advice: str = "",
        exact: bool = False,
        rounds: bool = False,
        tensors: int = 0,
        conditions: int = 0,
    ) -> None:
        self.name = name
        self.compute = compute
        self.allowed = frozenset(allowed.split())
        self.advice = advice
        self.exact = exact
        self.rounds = rounds
        self.tensors = max(tensors, conditions)
        self.conditions = conditions
        self._cache: dict[Any, tuple[DType, DType]] = {}

    def dtypes(self, *values: Any) -> tuple[DType, DType]:
        """(dtype in which to compute, dtype of the result).

        Raises:
            RuntimeError: the operator is not defined for the common dtype.
        """
        if self.conditions:
            values = values[self.conditions :]
        key: list[Any] = [get_default_dtype()]
        for value in values:
            dtype = getattr(value, "dtype", None)
            if dtype is None:
                key.append(getattr(value, "kind", None) or type(value))
            else:
                key.append((dtype, not value.shape))
        found = self._cache.get(cached := tuple(key))
        if found is None:
            found = self._cache[cached] = self._dtypes(values)
        return found

    def _dtypes(self, values: tuple[Any, ...]) -> tuple[DType, DType]:
        common = result_dtype(*values)
        float8 = common.kind == "float" and common.itemsize == 1
        if common.kind not in self.allowed or float8:
            kinds = ", ".join(k for k in _CAST if k in self.allowed)
            advice = "convert it to a wider type first" if float8 else self.advice or f"it takes {kinds}"
            raise RuntimeError(f"{self.name} is not defined for {common}; {advice}")
        if self.compute == "float" and common.kind in ("bool", "int"):
            common = get_default_dtype()
        if self.compute == "bool":
            return common, bool_
        return common, real_dtype(common) if self.compute == "abs" else common

    def check(self, args: tuple[Any, ...]) -> None:
        """Every argument is a tensor or a number, the leading ones tensors, and there is at least one tensor.

        Raises:
            TypeError: otherwise.
        """
        some = False
        for position, value in enumerate(args):
            if hasattr(value, "dtype"):
                some = True
            elif position < self.tensors or not (
                type(value) in _KINDS
                or hasattr(value, "kind")
                or isinstance(value, (int, float, complex))
                or type(value).__name__ in ("SymInt", "SymFloat", "SymBool")
            ):
                wanted = "a tensor" if position < self.tensors else "a tensor or a number"
                raise TypeError(f"{self.name}: argument {position + 1} must be {wanted}, not {type(value).__name__}")
        if not some:
            raise TypeError(f"{self.name}: one of the arguments must be a tensor")
        for condition in args[: self.conditions]:
            if element_type(condition) is not bool_:
                raise RuntimeError(
                    f"{self.name}: expected condition to be a boolean tensor, but got {element_type(condition)}"
                )

    def __call__(self, *args: Any) -> Spec:
        """The spec of the result: the meta function."""
        tensors = [a for a in args if type(a) is TensorSpec]
        if len(tensors) != len(args) or self.conditions:
            self.check(args)
        _, result = self.dtypes(*args)
        first = tensors[0]
        shape, strides = first.shape, first.strides
        alike = all(
            t is first or (surely_same(t.shape, shape) and surely_same(t.strides, strides) and t.device == first.device)
            for t in tensors
        )
        if alike:
            dense = surely_same(strides, contiguous_strides(shape))
            return TensorSpec(shape, result, strides if dense else elementwise_strides(shape, tensors), first.device)
        shape = broadcast_shapes(self.name, [t.shape for t in tensors])
        device = common_device(self.name, tensors)
        return TensorSpec(shape, result, elementwise_strides(shape, tensors), device)

    def wrap_reference(self, reference: str | Callable[..., Any]) -> Callable[..., Any]:
        """A function of arrays that promotes as this rule says, around a NumPy name or ``f(xp, *arrays)``."""

        def run(*args: Any) -> Any:
            xp = array_namespace(*args)
            self.check(args)
            compute, result = self.dtypes(*args)
            half = not self.exact and compute.kind == "float" and compute.itemsize < 4
            to = np.dtype(np.float32) if half else numpy_dtype(compute)
            first = self.conditions
            if self.rounds:
                args = tuple([_rounded(a, compute) for a in args])
            operands = [*args[:first], *(_as_array(xp, a, numpy_dtype(compute), to) for a in args[first:])]
            with np.errstate(all="ignore"):
                try:
                    value = (
                        getattr(xp, reference)(*operands) if isinstance(reference, str) else reference(xp, *operands)
                    )
                except ValueError:
                    broadcast_shapes(self.name, [np.shape(o) for o in operands])  # raises the error of the rule
                    raise
                want = numpy_dtype(result)
                return xp.asarray(value) if value.dtype == want else xp.asarray(value).astype(want)

        return run

    # -- the strict form -------------------------------------------------------------------------------

    def is_strict(self, args: tuple[Any, ...]) -> bool:
        """Are all operands (specs) of one shape, device and the dtype in which to compute, or scalars of its kind."""
        compute, _ = self.dtypes(*args)
        if self.rounds and any(type(a) is float and a == a and a != _rounded(a, compute) for a in args):
            return False
        shape: Any = None
        device: Any = None
        for position, value in enumerate(args):
            if type(value) is TensorSpec:
                if value.dtype is not compute and position >= self.conditions:
                    return False
                if shape is None:
                    shape, device = value.shape, value.device
                elif (value.device is not device and value.device != device) or (
                    value.shape is not shape and not surely_same(value.shape, shape)
                ):
                    return False
            elif type(value) in _KINDS and _KINDS[type(value)] != compute.kind:
                return False
        return True

    def strict_operands(self, *args: Any) -> tuple[Any, ...]:
        """The operands in strict form: converted, moved (0-d tensors on the CPU) and broadcast by operators."""
        compute, _ = self.dtypes(*args)
        tensors = [a for a in args if hasattr(a, "shape")]
        shape = broadcast_shapes(self.name, [a.shape for a in tensors])
        device = common_device(self.name, tensors)
        operands = []
        for position, value in enumerate(args):
            if hasattr(value, "shape"):
                if position >= self.conditions and element_type(value) is not compute:
                    value = ops.convert_element_type(value, compute)
                if value.device != device:
                    value = ops.device_put(value, device)
                if value.shape is not shape and not surely_same(value.shape, shape):
                    lead = len(shape) - len(value.shape)
                    value = ops.broadcast_in_dim(value, shape, tuple(range(lead, len(shape))))
            elif type(value) in _KINDS and _KINDS[type(value)] != compute.kind:
                value = _CAST[compute.kind](value)
            operands.append(_rounded(value, compute) if self.rounds else value)
        return tuple(operands)


def _rounded(value: Any, dtype: DType) -> Any:
    """A number as the nearest one of a half type; anything else as it is."""
    if type(value) not in (int, float) or dtype.kind != "float" or dtype.itemsize > 2:
        return value
    with np.errstate(over="ignore"):
        return float(np.asarray(float(value)).astype(numpy_dtype(dtype)))


def _as_array(xp: Any, value: Any, rounded: np.dtype[Any], to: np.dtype[Any]) -> Any:
    if not hasattr(value, "dtype"):
        value = np.asarray(int(value) if type(value).__name__ == "SymInt" else value)
        return value.astype(to) if xp is np else value.astype(to)[()]  # a device takes a scalar, no array of the host
    if value.dtype == to:
        return value
    return value.astype(to) if value.dtype == rounded or to == rounded else value.astype(rounded).astype(to)
