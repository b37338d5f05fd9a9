"""Kernel IR: one kernel as explicit loops over typed scalar statements; what a backend prints.

A kernel is a sequence of *phases*: the statements of ``Kernel.body`` are loops of kind ``"parallel"`` or
``"parallel simd"``, one axis each. The iterations of a phase are independent of each other; between two phases
stands a barrier. A backend prints a phase as a function of a range ``[begin, end)`` of its axis, so a host can give
chunks of several kernels to the threads of one parallel region (see ``program.Launch``).

Values are in static single assignment form: every ``Let``, ``Load``, ``IndexValue`` and accumulator defines a name
once on
each path (blocks that stand side by side may compute the same name again). Operands (``args``, ``value``) are such
names
(``str``) or Python constants (``bool``, ``int``, ``float``, ``complex``), which take the dtype of the statement that
uses
them (for comparisons: of the other operand). A name is visible in the rest of the block that defines it, and in blocks
nested there. An accumulator is visible to ``Accumulate`` inside its loop and as a value after the loop.

Indices are ``lamina_fx.symbolic`` expressions in elements (not bytes) from the start of the buffer, over loop axes,
size symbols and symbols bound by ``BindIndex``.

Softmax over rows of ``float32[R, C]``::

    Loop r in R: parallel
      Local t: float32[C]
      Loop c in C: simd, m = max
        x = load arg0[r*C + c];  store t[c] = x;  accumulate m, x
      Loop c1 in C: simd, s = sum
        y = load t[c1];  d = sub(y, m);  e = exp(d);  store t[c1] = e;  accumulate s, e
      Loop c2 in C: simd
        z = load t[c2];  q = div(z, s);  store out0[r*C + c2] = q
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from lamina_fx import DType

if TYPE_CHECKING:
    from lamina_fx.symbolic import Expr, Symbol

__all__ = [
    "Accumulate",
    "Accumulator",
    "BindIndex",
    "BufferParam",
    "IndexValue",
    "If",
    "Kernel",
    "Let",
    "Load",
    "Local",
    "Loop",
    "Operand",
    "Sort",
    "Stmt",
    "Store",
    "walk",
]

Operand = Union[str, bool, int, float, complex]
"""The name of a value, or a constant."""


@dataclass(frozen=True, slots=True)
class BufferParam:
    """A pointer parameter. ``role`` is ``"in"``, ``"out"`` or ``"inout"``. No two parameters of a call overlap,
    except that
    an ``in`` may be the very same memory as an ``out`` when ``aliased`` is the ``out``'s name: then every element is
    read before it is written, in the same iteration, at the same index (so vectorising stays legal)."""

    name: str
    dtype: DType
    role: str
    aliased: str | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """State of a reduction over one loop.

    ``kind``: ``sum prod max min any all xor logaddexp`` (one result, ``name``); ``argmax argmin`` (``name`` is the
    index, an int64, first of equals, a NaN wins over everything; ``dtype`` is the type of the values compared).
    ``max``/``min`` propagate NaN. The start value is the
    identity of the kind unless ``init`` (an operand visible before the loop) is given. A backend may reassociate.
    """

    name: str
    dtype: DType
    kind: str
    init: Operand | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """``for axis in range(0, extent, step)``.

    ``kind``: ``"serial"``; ``"simd"`` (iterations independent but for accumulators: vectorise; in order where one is
    ``running``); ``"parallel"`` and ``"parallel simd"`` (only as a phase: top level of a kernel); ``"blocks"`` (in a
    phase for a grid: iterations that are independent, too, and may be programs of their own); ``"tile"`` (in a phase
    for a grid, one in another with nothing beside: independent; a program takes some of each); ``"unroll"`` (serial,
    short constant extent).
    ``grain`` of a phase: the number of
    iterations that is worth a thread of its own; with fewer than ``2 * grain`` the phase should run serially.
    """

    axis: Symbol
    extent: Expr
    kind: str
    body: tuple[Stmt, ...]
    accumulators: tuple[Accumulator, ...] = ()
    step: int = 1
    grain: Expr | None = None


@dataclass(frozen=True, slots=True)
class Local:
    """A small array on the stack of the iteration, uninitialised. ``size`` is an upper bound in elements (a
    constant)."""

    name: str
    dtype: DType
    size: int


@dataclass(frozen=True, slots=True)
class Let:
    """``name = op(*args)`` with result type ``dtype``; ``op`` is an elementwise primitive's id, or one of ``IR_OPS``.

    Operands all have one dtype (the compute dtype): for ops whose result is another type (comparisons, isnan, ...)
    that of the first operand that is a name. ``convert_element_type``: from the operand's dtype to ``dtype``, as C
    casts (to bool: ``!= 0``).
    ``where(c, a, b)``: ``c`` is bool. ``philox(seed, offset, i)``: uint32, word ``i % 4`` of counter ``offset + i //
    4`` (all int64).
    ``bitcast(x)``: same bits. ``fma(a, b, c)``.
    """

    name: str
    dtype: DType
    op: str
    args: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """``name = buffer[index]``, of the buffer's dtype; with a ``mask`` (a bool value) only where it is true, else
    ``other``.

    ``buffer`` is a parameter or a ``Local``. Where the mask is false the memory must not be touched.
    """

    name: str
    dtype: DType
    buffer: str
    index: Expr
    mask: str | None = None
    other: Operand = 0


@dataclass(frozen=True, slots=True)
class IndexValue:
    """``name = dtype(expr)``: an index expression as a value. A comparison expression gives a bool."""

    name: str
    dtype: DType
    expr: Expr


@dataclass(frozen=True, slots=True)
class BindIndex:
    """Make the integer value ``value`` usable in indices as ``symbol``.

    With a ``size`` the value is checked: ``0 <= value < size`` (``-size <= value`` and wrapped when ``wrap``). A
    value that fails (under ``mask`` only where it is
    true) sets the kernel's error word to ``check`` (a positive number that the program maps to a message) and counts
    as 0.
    """

    symbol: Symbol
    value: str
    size: Expr | None = None
    wrap: bool = False
    check: int = 0
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """``buffer[index] = value``; the value has the buffer's dtype. Where ``mask`` is false nothing is written.

    ``mode``: ``"set"``, or ``add mul max min`` which combine with what is there (no two iterations that run in
    parallel or
    in one vector meet at one index unless ``atomic``)."""

    buffer: str
    index: Expr
    value: Operand
    mode: str = "set"
    mask: str | None = None
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Feed ``value`` to accumulator ``accumulator``; ``index`` (an int64 value or constant) for argmax and argmin.

    ``running``: the name of what has been fed so far, ``value`` included: an inclusive scan, in the order of the loop.
    The accumulator has no other such statement, and nothing reads it after the loop.
    """

    accumulator: str
    value: Operand
    index: Operand | None = None
    running: str | None = None


@dataclass(frozen=True, slots=True)
class Sort:
    """``name``: of the values that ``value`` has in all iterations of a simd loop, the one that stands at this
    iteration's place when they are sorted; with ``places`` (an int64) where it stood. Equal ones stay in order, a NaN
    is the greatest number and zeros are equal, also ``descending``. Only in loops for a grid; ``value`` has the dtype
    of what is sorted. ``count``: nobody wants it but at so many of the first places.
    """

    name: str
    dtype: DType
    value: str
    descending: bool
    places: bool
    count: int | None = None


@dataclass(frozen=True, slots=True)
class If:
    """Run ``body`` when the bool value ``condition`` is true. Not inside simd loops."""

    condition: str
    body: tuple[Stmt, ...]


Stmt = Union[Loop, Local, Let, Load, IndexValue, BindIndex, Store, Accumulate, Sort, If]
"""A statement."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel.

    Attributes:
        name: unique in the program, descriptive (``"k0_softmax"``); equal bodies share one kernel.
        params: buffers, in the order of a call's arguments.
        sizes: size symbols, in the order of a call's size arguments.
        body: the phases.
        origins: what was fused, as ``(node name, operator id, "file:line" or "")``. Not part of the kernel's identity.
        note: why it looks as it does, in words.
    """

    name: str
    params: tuple[BufferParam, ...]
    sizes: tuple[Symbol, ...]
    body: tuple[Loop, ...]
    origins: tuple[tuple[str, str, str], ...] = ()
    note: str = ""


def walk(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Every statement, outer before inner, in order."""
    found: list[Stmt] = []
    _walk(body, found)
    return found


def _walk(body: tuple[Stmt, ...], found: list[Stmt]) -> None:
    for stmt in body:
        found.append(stmt)
        if type(stmt) is Loop or type(stmt) is If:
            _walk(stmt.body, found)
