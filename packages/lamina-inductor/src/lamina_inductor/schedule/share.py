"""Let kernels be shared: sizes of the parallel axis become a parameter, equal bodies become one kernel."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Expr, Symbol

from ..inspect.text import format_body
from ..ir.kernel import BindIndex, If, Kernel, Loop, Stmt
from ..lower.table import size_of
from .flat import substitute
from .kernels import BuiltKernel

__all__ = ["KernelPool", "over_parameter", "with_size_parameter", "words"]


def with_size_parameter(built: BuiltKernel) -> tuple[Kernel, tuple[Any, ...]]:
    """The kernel as others may share it, and the values of its size parameters.

    A phase that stands alone takes its number of iterations as a parameter ``n``, where that is known or nothing else
    in the kernel depends on its symbols; symbols are numbered, so that kernels over other sizes have the same text.
    """
    kernel, values = over_parameter(built.kernel)
    names = {s: Symbol(f"s{k}", s.lower, s.upper, s.divisor) for k, s in enumerate(kernel.sizes) if s.name != "n"}
    changed: dict[Expr, Any] = {s: t for s, t in names.items() if s is not t}
    if changed:
        body = tuple([_renamed_phase(p, changed) for p in kernel.body])
        kernel = replace(kernel, body=body, sizes=tuple([names.get(s, s) for s in kernel.sizes]))
    return kernel, values


def over_parameter(kernel: Kernel) -> tuple[Kernel, tuple[Any, ...]]:
    """The kernel with ``n`` iterations, and the values of its size parameters in its own symbols."""
    if len(kernel.body) != 1:
        return kernel, kernel.sizes
    (phase,) = kernel.body
    extent, value = phase.extent, size_of(phase.extent)
    sizes = kernel.sizes
    if type(value) is not int:
        used = frozenset().union(*map(_symbols_in, phase.body))
        if used & extent.free_symbols:
            return kernel, sizes
        sizes = tuple([s for s in sizes if s not in extent.free_symbols])
    elif value == 1:
        return kernel, sizes
    size = Symbol("n", 0)
    axis = Symbol(phase.axis.name, 0, size - 1)
    body = tuple([rename(s, {phase.axis: axis}) for s in phase.body])
    grain = None if phase.grain is None or phase.grain.free_symbols & extent.free_symbols else phase.grain
    changed = replace(phase, axis=axis, extent=size, body=body, grain=grain)
    return replace(kernel, body=(changed,), sizes=(*sizes, size)), (*sizes, value)


def _symbols_in(stmt: Stmt) -> frozenset[Symbol]:
    """The symbols that a statement, or one in it, depends on."""
    exprs = [getattr(stmt, name, None) for name in ("index", "expr", "size", "extent")]
    own = frozenset().union(*[e.free_symbols for e in exprs if isinstance(e, Expr)])
    return own.union(*map(_symbols_in, getattr(stmt, "body", ())))


def _renamed_phase(phase: Loop, mapping: dict[Expr, Any]) -> Loop:
    grain = None if phase.grain is None else phase.grain.substitute(mapping)
    return replace(rename(phase, mapping), grain=grain)  # type: ignore[arg-type]


def rename(stmt: Stmt, mapping: dict[Expr, Any]) -> Stmt:
    """A statement, and those in it, with symbols replaced."""
    if type(stmt) is Loop:
        body = tuple([rename(s, mapping) for s in stmt.body])
        return replace(stmt, body=body, extent=stmt.extent.substitute(mapping))
    if type(stmt) is If:
        return replace(stmt, body=tuple([rename(s, mapping) for s in stmt.body]))
    if type(stmt) is BindIndex:
        return replace(stmt, size=stmt.size.substitute(mapping)) if isinstance(stmt.size, Expr) else stmt
    return substitute(stmt, mapping)


class KernelPool:
    """Gives equal kernels one name and one object."""

    def __init__(self) -> None:
        self.kernels: dict[str, Kernel] = {}

    def add(self, kernel: Kernel) -> Kernel:
        """The kernel of the pool with this body; a new one is named by what it computes."""
        ranges = ",".join(f"{s.lower} {s.upper} {s.divisor}" for s in kernel.sizes)
        key = f"{ranges}\n{format_body(kernel)}"
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
