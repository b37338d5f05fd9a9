"""Numbers in place of symbols, in what is launched: kernels stay as they are and are given these sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from lamina_fx.symbolic import Expr, Symbol

from ....ir.kernel import Kernel
from ..program import TritonKernel
from ..tiles import constant

__all__ = ["with_sizes"]


def with_sizes(value: Any, sizes: Mapping[Symbol, int]) -> Any:
    """Launches, steps, buffers, operands, and tuples, lists and dicts of them, with these sizes; a size that others
    decide becomes an int."""
    if isinstance(value, Expr):
        found = value.substitute(sizes)  # type: ignore[arg-type]
        known = constant(found)
        return found if known is None else known
    if isinstance(value, (tuple, list)):
        return type(value)([with_sizes(item, sizes) for item in value])
    if isinstance(value, dict):
        return {key: with_sizes(item, sizes) for key, item in value.items()}
    if not is_dataclass(value) or isinstance(value, (type, Kernel, TritonKernel)):
        return value
    pairs = [(f.name, old, with_sizes(old, sizes)) for f in fields(value) for old in (getattr(value, f.name),)]
    changed = {name: new for name, old, new in pairs if new is not old and new != old}
    return replace(value, **changed) if changed else value
