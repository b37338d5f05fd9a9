"""Writes ``__init__.pyi``, the types of the generated surface, from the operators' schemas.

Run ``python -m lamina_tensor.stubs`` after a change of operators or of ``Tensor``; ``--check`` only says whether the
file is what it should be (a test does so, too).
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import lamina_tensor
from lamina_fx import DTYPES
from lamina_prims import Operator
from lamina_prims.registry import names
from lamina_prims.schema import NUMPY_NAMES

from .dtype_names import ALIASES
from .methods import _PROPERTIES, _creates
from .tensor import Tensor

__all__ = ["stub_text"]

_HEADER = """\
# Written by `python -m lamina_tensor.stubs`: do not edit.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Callable as Callable, Iterator, Sequence
from typing import Any, Union, overload

import numpy as np
from lamina_fx import Device as Device, DType as DType, TensorSpec
from lamina_fx.symbolic import SymInt

from . import autograd as autograd, nn as nn, optim as optim, utils as utils
from ._C import TensorBase
from .autograd.hooks import RemovableHandle
"""
_ALIASES = """
Scalar = Union[_int, _float, _bool, _complex]
Size_ = Union[_int, SymInt]
Ints = Sequence[_int]
Shape = Sequence[Size_]
device = Device
dtype = DType
"""
_FIELDS = """\
    @property
    def shape(self) -> Size: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def device(self) -> Device: ...
    @property
    def ndim(self) -> _int: ...
    @property
    def spec(self) -> TensorSpec: ...
    @property
    def storage(self) -> Any: ...
    @property
    def grad(self) -> Any: ...
    @grad.setter
    def grad(self, value: Any) -> None: ...
    @property
    def _version(self) -> _int: ...
    @property
    def _base(self) -> Tensor | None: ...
"""
_CREATION = ", requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None, pin_memory: _bool = False"
_BUILTINS = {"float", "int", "bool", "complex", "type", "dtype", "device"}
_GENERATING = ("lamina_tensor.methods", "lamina_tensor.creation")
_IGNORE = "  # type: ignore[override]"


def _annotation(text: str) -> str:
    """Spelled so that a method or function called ``float`` or ``bool`` does not hide the type."""
    words = text.replace("Size", "Size_").replace("Tensor_", "Tensor")
    for name in ("float", "int", "bool", "complex"):
        words = " ".join(f"_{w}" if w == name else w for w in words.replace("[", " [ ").replace("]", " ] ").split())
    return words.replace(" [ ", "[").replace(" ]", "]")


def _default(value: Any) -> str:
    return repr(value) if value is None or type(value) in (bool, int, float, str, tuple) else "..."


def _parameters(op: Operator, method: bool, separate: bool) -> str:
    parts: list[str] = []
    star = False
    for index, p in enumerate(op.schema.parameters):
        if index == 0 and method:
            parts.append("self")
            continue
        if separate and p.name == op.variadic:
            parts.append(f"*{p.name}: Size_")
            star = True
            continue
        if p.keyword_only and not star:
            parts.append("*")
            star = True
        text = f"{p.name}: {_annotation(p.annotation)}"
        parts.append(text if p.required else f"{text} = {_default(p.default)}")
    return ", ".join(parts)


def _numpy_parameters(op: Operator, method: bool) -> str | None:
    """The parameters with ``axis`` (required) for ``dim`` and ``keepdims`` for ``keepdim``; None without a ``dim``."""
    names_ = [p.name for p in op.schema.parameters]
    if "dim" not in names_ or op.variadic:
        return None
    parts = ["self"] if method else []
    at = names_.index("dim")
    for index, p in enumerate(op.schema.parameters):
        if index == 0 and method:
            continue
        if index == at or (p.keyword_only and index < at and "*" not in parts):
            parts += [] if "*" in parts else ["*"]
        name = {ours: theirs for theirs, ours in NUMPY_NAMES.items()}.get(p.name, p.name)
        text = f"{name}: {_annotation(p.annotation)}"
        parts.append(text if p.required or index == at else f"{text} = {_default(p.default)}")
    return ", ".join(parts)


def _definitions(name: str, spelling: str, overloads: tuple[Operator, ...], returns: str | None = None) -> list[str]:
    method = spelling.startswith("Tensor.")
    lines: list[str] = []
    extra = _CREATION if _creates(spelling, overloads) and not method else ""
    for op in overloads:
        result = returns or _annotation(op.schema.returns)
        for separate in (False, True) if op.variadic else (False,):
            tail = extra if not separate or "*" in _parameters(op, method, separate) else ""
            lines.append(f"def {name}({_parameters(op, method, separate)}{tail}) -> {result}: ...")
        numpy_parameters = _numpy_parameters(op, method)
        if numpy_parameters is not None:
            lines.append(f"def {name}({numpy_parameters}{extra}) -> {result}: ...")
    indent = "    " if method else ""
    mark = _IGNORE if name.startswith("__") else ""
    if len(lines) == 1:
        return [f"{indent}{lines[0]}{mark}"]
    return [text for line in lines for text in (f"{indent}@overload{mark}", f"{indent}{line}{mark}")]


def _written_methods() -> list[str]:
    """Signatures of the methods of ``Tensor`` that are written by hand."""
    lines: list[str] = []
    for cls in Tensor.__mro__:
        if cls.__module__.partition(".")[0] != "lamina_tensor" or cls.__module__.endswith("_C"):
            continue
        for name, member in vars(cls).items():
            if isinstance(member, property) and name not in _PROPERTIES:
                result = getattr(member.fget, "__annotations__", {}).get("return", "Any")
                lines += ["    @property", f"    def {name}(self) -> {_annotation(str(result))}: ..."]
                if member.fset is not None:
                    lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
            elif inspect.isfunction(member) and member.__module__ not in _GENERATING and not _is_dunder(name):
                lines.append(f"    def {name}{_signature(member)}: ...")
    return [line for line in lines if "<locals>" not in line]


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _signature(function: Any) -> str:
    parts = []
    star = False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        star = star or p.kind is p.VAR_POSITIONAL
        if not parts and p.kind is p.POSITIONAL_OR_KEYWORD:
            parts.append("self")
            continue
        text = f"{mark}{p.name}: {_annotation(str(p.annotation)) if p.annotation is not p.empty else 'Any'}"
        parts.append(text if p.default is p.empty else f"{text} = {_default(p.default)}")
    returns = inspect.signature(function).return_annotation
    return f"({', '.join(parts)}) -> {'Any' if returns is inspect.Signature.empty else _annotation(str(returns))}"


def _tensor_class() -> list[str]:
    lines = ["class Tensor(TensorBase):", *_FIELDS.splitlines()]
    lines += _written_methods()
    lines += [
        "    def __getitem__(self, index: Any) -> Tensor: ...",
        "    def __setitem__(self, index: Any, value: Any) -> None: ...",
        "    def __len__(self) -> _int: ...",
        "    def __iter__(self) -> Iterator[Tensor]: ...",
        "    def __bool__(self) -> _bool: ...",
        "    def __int__(self) -> _int: ...",
        "    def __float__(self) -> _float: ...",
    ]
    known = {line.split("def ")[1].split("(")[0] for line in lines if "def " in line}
    for spelling, overloads in sorted(names().items()):
        name = spelling[7:]
        if not spelling.startswith("Tensor.") or name in known:
            continue
        if name in _PROPERTIES:
            lines += ["    @property", f"    def {name}(self) -> Tensor: ..."]
            continue
        lines += _definitions(name, spelling, overloads)
        if f"{name}_" not in known and not name.startswith("__") and any(op.in_place for op in overloads):
            lines += _definitions(f"{name}_", spelling, tuple(o for o in overloads if o.in_place), "Tensor")
    return lines


def stub_text() -> str:
    """The whole text of ``__init__.pyi``."""
    lines = [_HEADER]
    exported = [n for n in sorted(set(lamina_tensor.__all__)) if n not in ("Tensor", "Device", "device", "dtype")]
    constants = []
    for name in exported:
        value = getattr(lamina_tensor, name)
        module = getattr(value, "__module__", "") or ""
        if module.startswith("lamina_tensor.") and hasattr(value, "__name__") and not module.endswith("._C"):
            lines.append(f"from {module.removeprefix('lamina_tensor')} import {name} as {name}")
        elif module.startswith("lamina_prims"):
            lines.append(f"from {module} import {name} as {name}")
        elif not inspect.ismodule(value):
            constants.append(f"{name}: {_constant_type(name, value)}")
    lines += [_ALIASES, *constants]
    lines += [f"{d}: DType" for d in (*DTYPES, *ALIASES) if str(d) not in _BUILTINS]
    lines += ["", "", *_tensor_class(), "", ""]
    taken = set(exported) | {"device", "dtype", "Tensor"}
    for spelling, overloads in sorted(names().items()):
        if "." not in spelling and spelling not in taken:
            lines += _definitions(spelling, spelling, overloads)
    return "\n".join(lines) + "\n"


def _constant_type(name: str, value: Any) -> str:
    return (
        "Any"
        if value is None or inspect.isbuiltin(value) or inspect.isclass(value)
        else f"_{type(value).__name__}"
        if type(value) in (int, float)
        else type(value).__name__
    )


def main(arguments: list[str]) -> int:
    """Write the file, or with ``--check`` compare it; returns the exit status."""
    path = Path(__file__).with_name("__init__.pyi")
    text = stub_text()
    if "--check" in arguments:
        if path.exists() and path.read_text() == text:
            return 0
        print(f"{path.name} is out of date; run python -m lamina_tensor.stubs", file=sys.stderr)
        return 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
