"""Turn a group into a kernel and the call of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lamina_fx import DType
from lamina_fx.symbolic import Expr, Symbol

from ..ir.kernel import BindIndex, BufferParam, IndexValue, Kernel, Load, Loop, Store, walk
from ..ir.loops import Index, Size, Value
from ..lower.sorts import is_first_part
from .emitter import Emitter, Unfusable, linear_index
from .groups import Group
from .nests import build_nest
from .row_nest import Partial
from .scatter_nest import scatter_phases

__all__ = ["BuiltKernel", "Target", "build_kernel", "build_scatter", "safe_in_place"]


@dataclass(frozen=True, slots=True)
class Target:
    """A place where a value is stored: buffer name, dtype and strides."""

    buffer: str
    dtype: DType
    strides: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A kernel with the program's names of its buffers and sizes. ``partials`` are buffers to be made."""

    kernel: Kernel
    buffers: tuple[str | Partial, ...]
    sizes: tuple[Symbol, ...]
    checks: tuple[tuple[Value, int], ...]


class _Params:
    """Numbers the buffers of a kernel in order of use."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.dtypes: dict[str, DType] = {}

    def name(self, buffer: str, dtype: DType) -> str:
        found = self.names.get(buffer)
        if found is None:
            found = self.names[buffer] = f"b{len(self.names)}"
            self.dtypes[buffer] = dtype
        return found


def build_kernel(
    group: Group,
    place: Callable[[Value], Target | None],
    targets: Callable[[Value], list[Target]],
    first_check: int,
    columns: Size | None = None,
    nest: Callable[..., Any] = build_nest,
) -> BuiltKernel:
    """Write the kernel of ``group``. ``place``: where a value that others made lies; ``targets``: where to store a
    member;
    ``columns``: make the phase run over rows of so many elements, if that is possible; ``nest``: makes the loops.

    Raises:
        Unfusable: its members cannot be computed by one kernel.
    """
    try:
        return _build_kernel(group, place, targets, first_check, columns, nest)
    except Unfusable as error:
        raise Unfusable(str(error), frozenset([m.order for m in group.members])) from error


def _build_kernel(
    group: Group,
    place: Callable[[Value], Target | None],
    targets: Callable[[Value], list[Target]],
    first_check: int,
    columns: Size | None,
    nest: Callable[..., Any],
) -> BuiltKernel:
    params = _Params()

    def where(value: Value) -> tuple[str, tuple[Size, ...]] | None:
        # Only what the group is ordered after: an index transform of a source may lie in memory too, but written later.
        known = value in group.sources and value not in group.index
        found = place(value) if known else None
        return None if found is None else (params.name(found.buffer, found.dtype), found.strides)

    def canonical(value: Value) -> tuple[Index, Index, frozenset[Symbol]] | None:
        index = group.index.get(value)
        if index is None:
            return None
        if value.kind in ("scan", "sort"):
            return index, index, frozenset()
        axes = [value.full[d].free_symbols for d in value.axes if isinstance(value.full[d], Expr)]  # type: ignore[union-attr]
        return index, value.full, frozenset().union(*axes)

    emitter = Emitter(where, canonical, first_check)
    for value in group.members:
        if value not in group.stored:
            continue
        index = group.index[value]
        operand = emitter.read(value, index)
        how = {"mask": _first_part(emitter, value, index)} if is_first_part(value) else {}
        for target in targets(value):
            param = params.name(target.buffer, target.dtype)
            emitter.store(param, target.dtype, linear_index(index, target.strides), operand, value.dtype, **how)
    sizes = dict(zip(group.axes, group.sizes, strict=True))
    body, partials, note = nest(emitter.statements, list(group.axes), sizes, group.inner, columns)
    return _assemble(group.members, params, body, partials, note, tuple(emitter.checks))


def _first_part(emitter: Emitter, value: Value, index: Index) -> str | None:
    """The condition under which the loops are at an element of ``value``."""
    place: Any = index[value.axes[0]]
    found = emitter.condition(place < value.attrs.count)
    return found if type(found) is str else None


def build_scatter(
    value: Value,
    place: Callable[[Value], Target | None],
    target: Target,
    first_check: int,
    phases: Callable[..., Any] = scatter_phases,
    in_place: bool = False,
    before: tuple[Value, ...] = (),
) -> BuiltKernel:
    """Write the kernel of a scatter; it stores to ``target``. ``in_place``: that is where its input lies, which it
    changes. ``before``: scatters of a chain that this one ends, which the kernel makes, too."""
    params = _Params()

    def where(item: Value) -> tuple[str, tuple[Size, ...]] | None:
        found = place(item)
        return None if found is None else (params.name(found.buffer, found.dtype), found.strides)

    emitter = Emitter(where, lambda item: None, first_check)
    more = (before,) if before else ()
    body = phases(value, emitter, (params.name(target.buffer, target.dtype), target.strides), in_place, *more)
    kept = frozenset((target.buffer,)) if in_place else frozenset()
    return _assemble((*before, value), params, body, [], "scatter", tuple(emitter.checks), kept)


def _assemble(
    members: Sequence[Value],
    params: _Params,
    body: tuple[Loop, ...],
    partials: list[Partial],
    note: str,
    checks: tuple[tuple[Value, int], ...],
    kept: frozenset[str] = frozenset(),
) -> BuiltKernel:
    """``kept``: buffers that the kernel does not write all of."""
    read, written, sizes = _usage(body)
    declared = []
    buffers: list[str | Partial] = []
    for buffer, name in params.names.items():
        if name in read or name in written:
            role = (
                "inout" if (name in read or buffer in kept) and name in written else "out" if name in written else "in"
            )
            declared.append(BufferParam(name, params.dtypes[buffer], role))
            buffers.append(buffer)
    for partial in partials:
        declared.append(BufferParam(partial.param, partial.dtype, "inout"))
        buffers.append(partial)
    origins = tuple(dict.fromkeys(m.origin for m in members))
    kernel = Kernel("", tuple(declared), sizes, body, origins, note)
    return BuiltKernel(kernel, tuple(buffers), sizes, checks)


def _usage(body: tuple[Loop, ...]) -> tuple[set[str], set[str], tuple[Symbol, ...]]:
    """Buffers read, buffers written, and size symbols of a kernel's body."""
    read: set[str] = set()
    written: set[str] = set()
    bound: set[Any] = set()
    used: dict[Symbol, None] = {}

    def note(expr: Any) -> None:
        if isinstance(expr, Expr):
            used.update(dict.fromkeys(sorted(expr.free_symbols, key=str)))

    for stmt in walk(body):
        kind = type(stmt)
        if kind is Loop:
            bound.add(stmt.axis)
            note(stmt.extent)
        elif kind is Load:
            read.add(stmt.buffer)
            note(stmt.index)
        elif kind is Store:
            written.add(stmt.buffer)
            note(stmt.index)
        elif kind is IndexValue:
            note(stmt.expr)
        elif kind is BindIndex:
            bound.add(stmt.symbol)
            note(stmt.size)
    return read, written, tuple([s for s in used if s not in bound])


def safe_in_place(built: BuiltKernel, buffer: str) -> bool:
    """Is every element of ``buffer``, which the kernel writes, read at its own index only, and before it is written?"""
    params = [p.name for p, b in zip(built.kernel.params, built.buffers, strict=True) if b == buffer]
    if not params:
        return True
    (name,) = params
    phases = [[s for s in walk(p.body) if type(s) in (Load, Store) and s.buffer == name] for p in built.kernel.body]
    stores = [s for phase in phases for s in phase if type(s) is Store]
    if len(stores) != 1:
        return False
    (store,) = stores
    seen_store = False
    for phase in phases:  # a barrier stands between phases: what is read in an earlier one is the old value
        if store not in phase:
            if phase and seen_store:
                return False
            continue
        for stmt in phase:
            seen_store = seen_store or stmt is store
            if type(stmt) is Load and (seen_store or stmt.index != store.index):
                return False
    return True
