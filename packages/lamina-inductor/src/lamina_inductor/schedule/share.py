"""Let kernels be shared: sizes of the parallel axis become a parameter, equal bodies become one kernel."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Expr, Symbol

from ..inspect.text import format_body
from ..ir.kernel import BindIndex, If, Kernel, Loop, Stmt
from .flat import substitute
from .kernels import BuiltKernel

__all__ = ["KernelPool", "with_size_parameter", "words"]


def with_size_parameter(built: BuiltKernel) -> tuple[BuiltKernel, tuple[Any, ...]]:
    """A kernel of one phase over a known number of iterations takes that number as a size parameter instead.

    Returns the kernel and the values of its size parameters.
    """
    kernel = built.kernel
    values: tuple[Any, ...] = built.sizes
    if len(kernel.body) != 1 or not kernel.body[0].extent.is_constant:
        return built, values
    (phase,) = kernel.body
    extent = phase.extent.value
    if extent == 1:
        return built, values
    size = Symbol("n", 0)
    axis = Symbol(phase.axis.name, 0, size - 1)
    body = tuple([rename(s, {phase.axis: axis}) for s in phase.body])
    changed = replace(phase, axis=axis, extent=size, body=body)
    kernel = replace(kernel, body=(changed,), sizes=(*kernel.sizes, size))
    return replace(built, kernel=kernel, sizes=(*built.sizes, size)), (*values, extent)


def rename(stmt: Stmt, mapping: dict[Expr, Any]) -> Stmt:
    """A statement, and those in it, with symbols replaced."""
    if type(stmt) is Loop:
        body = tuple([rename(s, mapping) for s in stmt.body])
        return replace(stmt, body=body, extent=stmt.extent.substitute(mapping))
    if type(stmt) is If:
        return replace(stmt, body=tuple([rename(s, mapping) for s in stmt.body]))
    if type(stmt) is BindIndex:
        return stmt
    return substitute(stmt, mapping)


class KernelPool:
    """Gives equal kernels one name and one object."""

    def __init__(self) -> None:
        self.kernels: dict[str, Kernel] = {}

    def add(self, kernel: Kernel) -> Kernel:
        """The kernel of the pool with this body; a new one is named by what it computes."""
        key = format_body(kernel)
        found = self.kernels.get(key)
        if found is None:
            found = replace(kernel, name=f"k{len(self.kernels)}_{words(kernel.origins)}")
            self.kernels[key] = found
        return found


def words(origins: tuple[tuple[str, str, str], ...]) -> str:
    """The operators of a kernel as a part of its name."""
    names = list(dict.fromkeys(re.sub(r"\W", "_", op) for _, op, _ in origins if op not in _DULL))
    return "_".join(names[:1] + names[-2:] if len(names) > 3 else names) or "copy"


_DULL = frozenset(("convert_element_type", "broadcast_in_dim", "reshape", "permute", "full", "iota", "slice"))
