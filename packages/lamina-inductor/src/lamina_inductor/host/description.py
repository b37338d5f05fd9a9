"""What must be known of a generated library to call it: stored with it, and enough to rebuild the callable.

``describe(program, kernels, source)`` makes it, ``to_bytes`` and ``from_bytes`` store it: JSON, then the bytes of
constants.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamina_fx import dtype_of
from lamina_fx.symbolic import Expr

from ..ir.program import Buffer, HostCall, Program
from .arguments import numpy_dtype
from .encoding import NotStorable, decode, encode

__all__ = ["Description", "KernelInfo", "describe", "from_bytes", "to_bytes"]


@dataclass(frozen=True)
class KernelInfo:
    """A generated kernel: its C++, what was fused into it as (node, operator, "file:line"), and what it reads and
    writes."""

    name: str
    source: str
    origins: tuple[tuple[str, str, str], ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class Description:
    """See the module. ``inputs``: (label, dtype name, ndim, written) or None; ``outputs``: (dtype name, ndim);
    ``sizes``: (symbol, input,
    dim or -1); ``numbers``: as the launcher reads them, None with symbolic sizes; ``results``: (kind, value);
    ``checks``: (number, exception, message, size), see ``Check``; ``host_calls``: steps that run a reference.
    """

    name: str
    inputs: tuple[tuple[str, str, int, bool] | None, ...]
    outputs: tuple[tuple[str, int], ...]
    sizes: tuple[tuple[str, int, int], ...]
    numbers: tuple[int, ...] | None
    results: tuple[tuple[str, Any], ...]
    checks: tuple[tuple[int, str, str, Expr | int], ...]
    host_calls: tuple[HostCall, ...]
    constants: tuple[Any, ...]
    kernels: tuple[KernelInfo, ...]
    source: str
    release_gil: bool = True


def describe(
    program: Program,
    kernels: Sequence[KernelInfo],
    source: str,
    numbers: Sequence[Expr | int],
    release_gil: bool = True,
) -> Description:
    """The description of ``program``; ``numbers``: see ``backends.cpp.program_printer.layout_numbers``."""
    writes = frozenset(program.writes)
    outputs = sorted((b for b in program.buffers.values() if b.storage == "output"), key=lambda b: b.index)
    index = {b.name: i for i, b in enumerate(outputs)}
    return Description(
        name=program.name,
        inputs=tuple([_input(b, i in writes) for i, b in enumerate(program.inputs)]),
        outputs=tuple([(b.dtype.name, len(b.shape)) for b in outputs]),
        sizes=tuple([(s.symbol.name, s.input, -1 if s.dim is None else s.dim) for s in program.sizes]),
        numbers=None if program.sizes else tuple([int(n) for n in numbers]),  # type: ignore[arg-type]
        results=tuple([_result(r.kind, r.value, index) for r in program.outputs]),
        checks=tuple([(c.number, c.error, c.template, c.size) for c in program.checks]),
        host_calls=tuple([s for s in program.steps if type(s) is HostCall]),
        constants=tuple([np.ascontiguousarray(c) for c in program.constants]),
        kernels=tuple(kernels),
        source=source,
        release_gil=release_gil,
    )


def _input(buffer: Buffer | None, written: bool) -> tuple[str, str, int, bool] | None:
    return None if buffer is None else (buffer.name, buffer.dtype.name, len(buffer.shape), written)


def _result(kind: str, value: Any, outputs: dict[str, int]) -> tuple[str, Any]:
    if kind == "buffer":
        return "output", outputs[value]
    if kind == "scalar":
        return ("number", 0) if isinstance(value, Expr) and not value.is_constant else ("constant", _plain(value))
    return kind, value


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Expr) else value  # type: ignore[call-overload]


_LENGTH = struct.Struct("<Q")


def to_bytes(description: Description) -> bytes:
    """The stored form.

    Raises:
        NotStorable: an argument of a host call has no stored form.
    """
    fields = dict(vars(description))
    constants = fields.pop("constants")
    fields["kernels"] = [tuple(getattr(k, f) for f in KernelInfo.__dataclass_fields__) for k in description.kernels]
    fields["host_calls"] = [(c.operator, c.args, c.kwargs, c.outs, c.source) for c in description.host_calls]
    fields["constants"] = [(_constant_dtype(c), c.shape) for c in constants]
    text = json.dumps(encode(fields), separators=(",", ":")).encode()
    return _LENGTH.pack(len(text)) + text + b"".join([c.tobytes() for c in constants])


def _constant_dtype(array: Any) -> str:
    name = array.dtype.name
    try:
        dtype_of(name)
    except ValueError as error:
        raise NotStorable(f"a constant of type {name}") from error
    return name


def from_bytes(data: bytes) -> Description:
    """The description that ``to_bytes`` stored.

    Raises:
        ValueError: not a description.
    """
    if len(data) < _LENGTH.size:
        raise ValueError("it is too short")
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    fields = decode(json.loads(data[_LENGTH.size : at]))
    constants = []
    for name, shape in fields["constants"]:
        kind = numpy_dtype(dtype_of(name))
        count = int(np.prod(shape, dtype=np.int64))
        constants.append(np.frombuffer(data, kind, count, at).reshape(shape).copy())
        at += count * kind.itemsize
    fields["constants"] = tuple(constants)
    fields["kernels"] = tuple([KernelInfo(*k) for k in fields["kernels"]])
    fields["host_calls"] = tuple([HostCall(*c) for c in fields["host_calls"]])
    return Description(**fields)
