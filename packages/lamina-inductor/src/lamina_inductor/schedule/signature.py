"""What a program tells whoever calls it: which errors it finds, its device, where its sizes are read."""

from __future__ import annotations

from typing import Any

from lamina_fx import CPU, TensorSpec
from lamina_fx.symbolic import Symbol, SymInt
from lamina_prims.index_errors import index_error_type

from ..ir.loops import Value
from ..ir.program import Check, SizeSource
from ..lower.graph import LoweredGraph
from ..lower.pointwise import DIVISIONS

__all__ = ["check_of", "device_of", "size_sources"]

_RUNTIME_ERRORS = frozenset(("gather", "scatter", "scatter_add", "scatter_reduce"))
"""Operators that raise this in eager, too, where an index is out of range."""


def check_of(number: int, source: Value, dim: int) -> Check:
    """What an index of ``source`` out of range raises."""
    _, op, line = source.origin
    where = f" (at {line})" if line else ""
    if op in DIVISIONS:
        return Check(number, "RuntimeError", f"ZeroDivisionError: integer division or modulo by zero{where}", 1)
    size, name = source.inputs[0].shape[dim], source.called or op
    kind = index_error_type(name, RuntimeError if op in _RUNTIME_ERRORS else IndexError).__name__
    said = f"{name}: {{index}} is out of bounds for dimension {dim} with size {{size}}{where}"
    return Check(number, kind, said, size)


def device_of(lowered: LoweredGraph) -> Any:
    """Where the inputs are."""
    for spec in lowered.input_specs:
        if isinstance(spec, TensorSpec):
            return spec.device
    return CPU


def size_sources(lowered: LoweredGraph) -> tuple[SizeSource, ...]:
    """The first place where each size symbol can be read."""
    found: dict[Any, SizeSource] = {}
    inputs = list(enumerate(zip(lowered.inputs, lowered.input_specs, strict=True)))
    for number, (value, spec) in inputs:
        if isinstance(value, Symbol):
            found.setdefault(value, SizeSource(value, number, hint=_hint(spec.value)))
    for number, (value, spec) in inputs:
        if type(value) is Value:
            for dim, size in enumerate(value.shape):
                if isinstance(size, Symbol):
                    found.setdefault(size, SizeSource(size, number, dim, _hint(spec.shape[dim])))
    return tuple(found.values())


def _hint(size: Any) -> int | None:
    return size.hint if isinstance(size, SymInt) else None
