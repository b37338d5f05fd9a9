"""Guards: what must hold of the frame for a compiled entry to be used.

A `Guard` is data: a kind, the source it reads, what it expects, and the user's line that made it necessary. A `GuardSet` collects them
while a frame is translated, drops duplicates and orders them by cost; `lamina_dynamo.guard_program` turns it into a C++
program. Guards hold no functions, modules or instances strongly, only plain constants, ids and weak references.

>>> guards = GuardSet()
>>> x = Local("x")
>>> guards.add(type_is(x, float))
>>> guards.add(equals(x, 2.5, reason="used as a constant"))
>>> for g in guards: print(g)
type(L['x']) is float
L['x'] == 2.5  (used as a constant)
>>> from .source import FrameScope
>>> guards[1].explain(FrameScope({"x": 3.5}, {}, {}))
"L['x'] == 2.5  (used as a constant), but it is 3.5"

Constructors, from cheap to dear (use these, not `Guard(...)`): `type_is`, `id_is`, `is_none`, `equals`, `length`, `code_is`, `cell_state`,
`name_absent`, `dict_keys`, `dict_has`, `attr_present`, `tensor_matches`, `array_matches`, `ambient_is`, `same_object`,
`all_distinct`, `no_overlap`, `overlap_is`, `shape_holds`, `python_check`.

Rules for who adds them:

- A guard on a source needs guards on its bases only where reading it could fail or read something else: a step that fails makes the
  guard false, so `type_is(Attr(x, "w"), int)` alone is safe.
- `InstanceAttr` and `DictItem` read raw memory and never run Python. `Attr` and `GetItem` may: use them last.
- A guard evaluates against the frame at its entry.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from lamina_fx import TensorSpec

from .source import FrameScope, Local, Source  # noqa: F401  (Local is for the doctest)

__all__ = [
    "Ambient",
    "Guard",
    "GuardKind",
    "GuardSet",
    "Identity",
    "TensorFacts",
    "all_distinct",
    "ambient_is",
    "array_matches",
    "attr_present",
    "cell_state",
    "code_is",
    "dict_has",
    "dict_keys",
    "equals",
    "id_is",
    "is_none",
    "length",
    "name_absent",
    "no_overlap",
    "overlap_is",
    "python_check",
    "same_object",
    "shape_holds",
    "tensor_matches",
    "type_is",
]


class GuardKind(IntEnum):
    """What a guard compares. The number is the order of evaluation: cheap first; the C++ program uses the same numbers."""

    ID = 0
    TYPE = 1
    NONE = 2
    CODE = 3
    CELL = 4
    LENGTH = 5
    EQUALS = 6
    TENSOR = 7
    DICT_HAS = 8
    DICT_KEYS = 9
    NAME_ABSENT = 10
    ATTR = 11
    AMBIENT = 12
    ARRAY = 13
    SAME = 14
    DISTINCT = 15
    NO_OVERLAP = 16
    OVERLAP = 17
    SHAPE = 18
    PYTHON = 19


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """One object, remembered without keeping it alive: its address and a weak reference where its type has them.

    Without weak references (numbers, strings, ufuncs) the object itself is held: such objects lead to no user function.
    """

    address: int
    held: object
    weak: bool
    text: str

    @staticmethod
    def of(value: object) -> Identity:
        """Remember this object."""
        text = getattr(value, "__qualname__", None)
        text = text if isinstance(text, str) else short(value)
        try:
            return Identity(id(value), weakref.ref(value), True, text)
        except TypeError:
            return Identity(id(value), value, False, text)

    def get(self) -> object:
        """The object; None when it was freed."""
        return self.held() if self.weak else self.held  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.address == other.address and self.held is other.held

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What a tensor or array must look like. None in `shape` or `strides` leaves that dimension unchecked.

    `kind` is the type (by identity); `strides` None leaves the layout unchecked; `flags` are bits of `lamina/tensor_abi.h`
    that must be as in `flag_values` where `flag_mask` is set.
    """

    kind: Identity
    dtype: str
    device: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    flag_mask: int = 0
    flag_values: int = 0

    def __str__(self) -> str:
        dims = ", ".join("*" if s is None else str(s) for s in self.shape)
        text = f"{self.dtype}[{dims}]"
        if self.strides is not None:
            text += f"@({', '.join('*' if s is None else str(s) for s in self.strides)})"
        if self.device != "cpu":
            text += f" {self.device}"
        if self.flag_mask & 1:
            text += " requires_grad" if self.flag_values & 1 else " no grad"
        return text


@dataclass(frozen=True, slots=True, eq=False)
class Ambient:
    """State that belongs to no frame, such as the grad mode: a name and how to read it.

    `read()` must be cheap, return a plain immutable value and have no effect; on a hit it is called only where there is no `cell`.
    `cell` is a capsule named ``"lamina.int_cell"`` over an `int32_t` that has the same value: read in C++ without a call.
    """

    name: str
    read: Callable[[], object]
    cell: object = None


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition. `sources` has one entry, or several for the relational kinds; `expected` depends on `kind`."""

    kind: GuardKind
    sources: tuple[Source, ...]
    expected: object
    text: str
    """The condition as Python-like text."""
    reason: str = field(default="", compare=False)
    """Why it is needed, in words."""
    line: str = field(default="", compare=False)
    """``file:line`` of the user's code that made it necessary."""

    @property
    def source(self) -> Source:
        """The source of a guard that has one."""
        return self.sources[0]

    def __str__(self) -> str:
        return f"{self.text}  ({self.reason})" if self.reason else self.text

    def explain(self, scope: FrameScope) -> str:
        """Say in words why this guard fails in `scope`: the condition, then what is there instead."""
        return f"{self}, but {describe(self, scope)}"


class GuardSet:
    """Guards of one entry: no duplicates, in the order they are evaluated (by kind, then as added)."""

    __slots__ = ("_guards", "_sorted")

    def __init__(self, guards: Sequence[Guard] = ()) -> None:
        self._guards: dict[Guard, None] = {}
        self._sorted: list[Guard] | None = None
        for guard in guards:
            self.add(guard)

    def add(self, guard: Guard) -> None:
        """Add a guard, unless an equal one is there."""
        if guard not in self._guards:
            self._guards[guard] = None
            self._sorted = None

    def update(self, guards: Sequence[Guard] | GuardSet) -> None:
        """Add several."""
        for guard in guards:
            self.add(guard)

    def _ordered(self) -> list[Guard]:
        if self._sorted is None:
            self._sorted = sorted(self._guards, key=lambda guard: guard.kind)
        return self._sorted

    def __iter__(self) -> Iterator[Guard]:
        return iter(self._ordered())

    def __getitem__(self, index: int) -> Guard:
        return self._ordered()[index]

    def __len__(self) -> int:
        return len(self._guards)

    def __contains__(self, guard: Guard) -> bool:
        return guard in self._guards

    def copy(self) -> GuardSet:
        """A copy that can be changed alone (for speculation)."""
        copied = GuardSet()
        copied._guards = dict(self._guards)
        return copied

    def __str__(self) -> str:
        return "\n".join(map(str, self))


# ---- constructors ---------------------------------------------------------------------------------------------------


def type_is(source: Source, kind: type, *, reason: str = "", line: str = "") -> Guard:
    """`type(source) is kind`."""
    return Guard(GuardKind.TYPE, (source,), Identity.of(kind), f"type({source}) is {kind.__qualname__}", reason, line)


def id_is(source: Source, value: object, *, reason: str = "", line: str = "") -> Guard:
    """`source is value`: for functions, classes, modules, singletons. None has `is_none`."""
    identity = Identity.of(value)
    return Guard(GuardKind.ID, (source,), identity, f"{source} is {identity}", reason, line)


def is_none(source: Source, expected: bool = True, *, reason: str = "", line: str = "") -> Guard:
    """`source is None`, or that it is not."""
    return Guard(GuardKind.NONE, (source,), expected, f"{source} is {'' if expected else 'not '}None", reason, line)


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A plain value compared with its type: 1, 1.0 and True differ, nan equals nan, -0.0 differs from 0.0."""

    value: object

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))


def equals(source: Source, value: object, *, reason: str = "", line: str = "") -> Guard:
    """`source` has exactly the type of `value` and its value: numbers, strings, bytes, and tuples, frozensets, ranges and slices of such.

    Floats compare by bits, so nan matches itself and the zeros differ. Enum members, dtypes, devices: use `id_is`.
    """
    return Guard(GuardKind.EQUALS, (source,), Constant(value), f"{source} == {short(value)}", reason, line)


def length(source: Source, expected: int, *, reason: str = "", line: str = "") -> Guard:
    """`len(source) == expected` for list, tuple, dict, set, frozenset, str, bytes and their subclasses, raw; also deque."""
    return Guard(GuardKind.LENGTH, (source,), expected, f"len({source}) == {expected}", reason, line)


def code_is(source: Source, code: object, *, reason: str = "", line: str = "") -> Guard:
    """`source.__code__ is code` for a Python function (or the function of a bound method): allows other closures and defaults."""
    identity = Identity.of(code)
    text = f"{source}.__code__ is <code {getattr(code, 'co_qualname', '?')}>"
    return Guard(GuardKind.CODE, (source,), identity, text, reason, line)


def cell_state(source: Source, filled: bool, *, reason: str = "", line: str = "") -> Guard:
    """The cell `source` holds a value, or is empty."""
    return Guard(GuardKind.CELL, (source,), filled, f"{source} is {'filled' if filled else 'empty'}", reason, line)


def dict_keys(source: Source, keys: Sequence[object], *, reason: str = "", line: str = "") -> Guard:
    """The dict `source` has exactly these keys in this order. Keys are strings, numbers, tuples of such (by value), or anything (by id)."""
    wanted = tuple(Constant(k) if is_plain(k) else Identity.of(k) for k in keys)
    return Guard(GuardKind.DICT_KEYS, (source,), wanted, f"list({source}) == {short(list(keys))}", reason, line)


def dict_has(source: Source, key: object, present: bool, *, reason: str = "", line: str = "") -> Guard:
    """`key in source` for a dict, raw, or that it is not; `key` is hashable by C code (string, number, type, ...)."""
    text = f"{short(key)} {'' if present else 'not '}in {source}"
    return Guard(
        GuardKind.DICT_HAS,
        (source,),
        (Constant(key) if is_plain(key) else Identity.of(key), present),
        text,
        reason,
        line,
    )


def attr_present(
    source: Source, name: str, present: bool, *, raw: bool = False, reason: str = "", line: str = ""
) -> Guard:
    """`hasattr(source, name)`, or not. `raw`: look only in the instance's `__dict__` (no Python code runs)."""
    where = f"{source}.__dict__" if raw else f"dir({source})"
    text = f"{name!r} {'' if present else 'not '}in {where}"
    return Guard(GuardKind.ATTR, (source,), (name, present, raw), text, reason, line)


def name_absent(name: str, *, reason: str = "", line: str = "") -> Guard:
    """The frame's globals do not have `name` (so that the builtin is meant)."""
    return Guard(GuardKind.NAME_ABSENT, (), name, f"{name!r} not in globals()", reason, line)


def tensor_matches(
    source: Source,
    value: object,
    spec: TensorSpec,
    *,
    flag_mask: int = 0,
    flag_values: int = 0,
    check_strides: bool = True,
    reason: str = "",
    line: str = "",
) -> Guard:
    """`source` has the type of `value` and this spec; sizes and strides that are not plain ints are not checked.

    Read through `lamina/tensor_abi.h`: the type must have the `__lamina_abi__` capsule. Other arrays: `array_matches`.
    Flags are `LAMINA_*` bits: 1 requires_grad, 2 is_leaf, 8 has_grad, 16 is_view. The strides of dimensions of size 1 are not compared.
    """
    facts = TensorFacts(
        Identity.of(type(value)),
        str(spec.dtype),
        str(spec.device),
        tuple(s if type(s) is int else None for s in spec.shape),
        tuple(s if type(s) is int else None for s in spec.strides) if check_strides else None,
        flag_mask,
        flag_values,
    )
    return Guard(GuardKind.TENSOR, (source,), facts, f"{source}: {facts}", reason, line)


def array_matches(
    source: Source, value: object, spec: TensorSpec, *, check_strides: bool = True, reason: str = "", line: str = ""
) -> Guard:
    """As `tensor_matches` for an array that exports a buffer, such as `numpy.ndarray`; writability is checked as it is now.

    Element types without a buffer format (bfloat16 of ml_dtypes) are compared by the array's `dtype` attribute and `shape`.
    """
    facts = TensorFacts(
        Identity.of(type(value)),
        str(spec.dtype),
        str(spec.device),
        tuple(s if type(s) is int else None for s in spec.shape),
        tuple(s if type(s) is int else None for s in spec.strides) if check_strides else None,
    )
    return Guard(GuardKind.ARRAY, (source,), facts, f"{source}: {facts}", reason, line)


def ambient_is(ambient: Ambient, expected: object, *, reason: str = "", line: str = "") -> Guard:
    """The ambient state has this value (compared by type and value as in `equals`, or by identity)."""
    wanted = Constant(expected) if is_plain(expected) else Identity.of(expected)
    return Guard(GuardKind.AMBIENT, (), (ambient, wanted), f"{ambient.name} == {short(expected)}", reason, line)


def same_object(first: Source, second: Source, *, reason: str = "", line: str = "") -> Guard:
    """`first is second`."""
    return Guard(GuardKind.SAME, (first, second), True, f"{first} is {second}", reason, line)


def all_distinct(sources: Sequence[Source], *, reason: str = "", line: str = "") -> Guard:
    """No two of these are one object (one guard for all inputs: sorted addresses)."""
    return Guard(GuardKind.DISTINCT, tuple(sources), True, f"distinct({', '.join(map(str, sources))})", reason, line)


def no_overlap(sources: Sequence[Source], *, reason: str = "", line: str = "") -> Guard:
    """The memory of these tensors or arrays is pairwise disjoint (by the extent from first to last element)."""
    return Guard(
        GuardKind.NO_OVERLAP, tuple(sources), True, f"no_overlap({', '.join(map(str, sources))})", reason, line
    )


def overlap_is(first: Source, second: Source, byte_offset: int, *, reason: str = "", line: str = "") -> Guard:
    """The first element of `second` lies `byte_offset` bytes after that of `first`."""
    text = f"address({second}) - address({first}) == {byte_offset}"
    return Guard(GuardKind.OVERLAP, (first, second), byte_offset, text, reason, line)


def shape_holds(expression: object, symbols: Mapping[str, Source], *, reason: str = "", line: str = "") -> Guard:
    """A condition over integers: `expression` is a `lamina_fx.symbolic` Expr or its Python text (`lamina_fx.symbolic.to_python`).

    `symbols` says where each symbol's value is: a `TensorProperty`, or any source of an int. Operators: + - * // % ** min max,
    comparisons, and, or, not, with Python's floor semantics in 64 bits; an overflow or division by zero fails the guard.
    """
    text = expression if isinstance(expression, str) else expression_text(expression)
    names = tuple(symbols)
    shown = text
    for name in sorted(names, key=len, reverse=True):
        shown = shown.replace(name, str(symbols[name]))
    return Guard(GuardKind.SHAPE, tuple(symbols.values()), (text, names), shown, reason, line)


def python_check(
    source: Source, check: Callable[[object], bool], text: str, *, reason: str = "", line: str = ""
) -> Guard:
    """Any condition in Python: `check(value)`. Slow (about 100 ns and more); `check` must not lead to user functions."""
    return Guard(GuardKind.PYTHON, (source,), check, text, reason, line)


# ---- words ----------------------------------------------------------------------------------------------------------


def expression_text(expression: object) -> str:
    """An Expr as Python text."""
    from lamina_fx.symbolic import to_python  # optional: only programs with symbolic sizes load it

    return to_python(expression)


def is_plain(value: object) -> bool:
    """Whether `equals` can compare this value."""
    if type(value) in (tuple, frozenset):
        return all(map(is_plain, value))  # type: ignore[call-overload]
    if type(value) is slice:
        return all(map(is_plain, (value.start, value.stop, value.step)))
    return value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes, range)


def short(value: object, limit: int = 80) -> str:
    """The value's repr, cut to a line."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (a user's __repr__ may raise anything; this is only a message)
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def describe(guard: Guard, scope: FrameScope) -> str:
    """What is there instead of what `guard` expects."""
    values: list[object] = []
    for source in guard.sources:
        try:
            values.append(source.fetch(scope))
        except Exception as error:  # noqa: BLE001  (reading may run user code; the failure is the answer)
            return f"{source} can not be read: {type(error).__name__}: {error}"
    kind = guard.kind
    if kind is GuardKind.NAME_ABSENT:
        return f"it is {short(scope.globals.get(str(guard.expected)))}"
    if kind is GuardKind.AMBIENT:
        return f"it is {short(guard.expected[0].read())}"  # type: ignore[index]
    if kind is GuardKind.TYPE:
        return f"it is {type(values[0]).__qualname__}"
    if kind is GuardKind.LENGTH:
        return f"it is {len(values[0])}"  # type: ignore[arg-type]
    if kind is GuardKind.DICT_KEYS:
        return f"the keys are {short(list(values[0]))}"  # type: ignore[call-overload]
    if kind in (GuardKind.TENSOR, GuardKind.ARRAY):
        return f"it is {describe_array(values[0])}"
    if kind in (GuardKind.DICT_HAS, GuardKind.ATTR):
        return "it is not so"
    if kind in (GuardKind.SAME, GuardKind.DISTINCT, GuardKind.NO_OVERLAP, GuardKind.OVERLAP):
        return "the objects are related otherwise"
    return "it is " + ", ".join(map(short, values))


def describe_array(value: object) -> str:
    """dtype, shape and flags of an array of any kind."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return f"{type(value).__qualname__}: {short(value)}"
    text = f"{str(dtype).rpartition('.')[2]}[{', '.join(map(str, shape))}]"
    if getattr(value, "requires_grad", False):
        text += " requires_grad"
    return text
