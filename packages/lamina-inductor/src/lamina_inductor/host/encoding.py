"""Values of a program description as JSON and back: no pickle, so a tampered cache file cannot run code while it is
read.

Numbers, strings, None, lists and tuples, dicts, element types, devices, slices, operands (``{"": "operand", ...}``)
and size expressions.

>>> decode(encode((1, float("inf"), None, slice(0, 2, 1))))
(1, inf, None, slice(0, 2, 1))
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from lamina_fx import Device, DType, dtype_of
from lamina_fx.symbolic import Expr, Symbol, parse_expr

from ..ir.program import Attention, AttentionBackward, Convolution, Gemm, HostCall, Operand

__all__ = ["NotStorable", "decode", "encode"]


_STEPS: dict[str, Any] = {c.__name__: c for c in (Attention, AttentionBackward, Convolution, Gemm, HostCall)}
"""Steps that run by their reference, by name."""


class NotStorable(TypeError):
    """A value that has no stored form."""


def encode(value: Any) -> Any:
    """A JSON value for ``value``.

    Raises:
        NotStorable: something of another type, such as a subgraph.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"": "float", "v": repr(value)}
    if type(value) is complex:
        return {"": "complex", "v": [encode(value.real), encode(value.imag)]}
    if type(value) in (tuple, list):
        return {"": type(value).__name__, "v": [encode(v) for v in value]}
    if type(value) is dict:
        return {"": "dict", "v": [[encode(k), encode(v)] for k, v in value.items()]}
    if type(value) is DType:
        return {"": "dtype", "v": value.name}
    if type(value) is Device:
        return {"": "device", "v": str(value)}
    if type(value) is slice:
        return {"": "slice", "v": [encode(v) for v in (value.start, value.stop, value.step)]}
    if type(value) is Operand:
        parts = (value.buffer, value.dtype, value.offset, value.shape, value.strides)
        return {"": "operand", "v": [encode(f) for f in parts]}
    if type(value).__name__ in _STEPS and type(value) is _STEPS[type(value).__name__]:
        return {"": "step", "v": [type(value).__name__, [encode(getattr(value, f.name)) for f in fields(value)]]}
    if isinstance(value, Expr):
        symbols = [[s.name, s.lower, s.divisor] for s in sorted(value.free_symbols, key=lambda s: s.name)]
        return {"": "size", "v": [repr(value), symbols]}
    raise NotStorable(f"a {type(value).__name__} cannot be stored: {value!r:.80}")


def decode(value: Any) -> Any:
    """The value that ``encode`` wrote.

    Raises:
        ValueError: not what ``encode`` writes.
    """
    if not isinstance(value, dict):
        return value
    kind, inner = value.get(""), value.get("v")
    if kind not in _DECODERS:
        raise ValueError(f"no stored value is of kind {kind!r}")
    return _DECODERS[kind](inner)


def _size(inner: Any) -> Expr:
    text, symbols = inner
    return parse_expr(text, {name: Symbol(name, lower, None, divisor) for name, lower, divisor in symbols})


_DECODERS: dict[Any, Any] = {
    "float": float,
    "complex": lambda v: complex(decode(v[0]), decode(v[1])),
    "tuple": lambda v: tuple([decode(i) for i in v]),
    "list": lambda v: [decode(i) for i in v],
    "dict": lambda v: {decode(k): decode(i) for k, i in v},
    "dtype": dtype_of,
    "device": Device,
    "slice": lambda v: slice(*[decode(i) for i in v]),
    "operand": lambda v: Operand(*[decode(i) for i in v]),
    "size": _size,
    "step": lambda v: _STEPS[v[0]](*[decode(i) for i in v[1]]),
}
