"""Constructors of guards, from cheap to dear."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from lamina_fx import TensorSpec

from ..source import Source
from .data import Ambient, Guard, GuardKind, TensorFacts
from .values import Constant, Identity, is_plain, short

__all__ = [
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


def type_is(source: Source, kind: type, *, reason: str = "", line: str = "") -> Guard:
    """`type(source) is kind`."""
    identity = Identity.of(kind)
    return Guard(GuardKind.TYPE, (source,), identity, lambda: f"type({source}) is {identity}", reason, line)


def id_is(source: Source, value: object, *, reason: str = "", line: str = "") -> Guard:
    """`source is value`: for functions, classes, modules, singletons. None has `is_none`."""
    identity = Identity.of(value)
    return Guard(GuardKind.ID, (source,), identity, lambda: f"{source} is {identity}", reason, line)


def is_none(source: Source, expected: bool = True, *, reason: str = "", line: str = "") -> Guard:
    """`source is None`, or that it is not."""
    return Guard(
        GuardKind.NONE, (source,), expected, lambda: f"{source} is {'' if expected else 'not '}None", reason, line
    )


def equals(source: Source, value: object, *, reason: str = "", line: str = "") -> Guard:
    """`source` has exactly the type of `value` and its value: numbers, strings, bytes, and tuples, frozensets,
    ranges and slices of such.

    Floats compare by bits, so nan matches itself and the zeros differ. Enum members, dtypes, devices: use `id_is`.
    """
    return Guard(GuardKind.EQUALS, (source,), Constant(value), lambda: f"{source} == {short(value)}", reason, line)


def length(source: Source, expected: int, *, reason: str = "", line: str = "") -> Guard:
    """`len(source) == expected` for list, tuple, dict, set, frozenset, str, bytes and their subclasses, raw.

    Also deque.
    """
    return Guard(GuardKind.LENGTH, (source,), expected, lambda: f"len({source}) == {expected}", reason, line)


def code_is(source: Source, code: object, *, reason: str = "", line: str = "") -> Guard:
    """`source.__code__ is code` for a Python function (or the function of a bound method).

    Allows other closures and defaults.
    """
    identity = Identity.of(code)
    name = getattr(code, "co_qualname", "?")
    return Guard(GuardKind.CODE, (source,), identity, lambda: f"{source}.__code__ is <code {name}>", reason, line)


def cell_state(source: Source, filled: bool, *, reason: str = "", line: str = "") -> Guard:
    """The cell `source` holds a value, or is empty."""
    return Guard(
        GuardKind.CELL, (source,), filled, lambda: f"{source} is {'filled' if filled else 'empty'}", reason, line
    )


def dict_keys(source: Source, keys: Sequence[object], *, reason: str = "", line: str = "") -> Guard:
    """The dict `source` has exactly these keys in this order.

    Keys are strings, numbers, tuples of such (by value), or anything (by id).
    """
    wanted = tuple(Constant(k) if is_plain(k) else Identity.of(k) for k in keys)
    return Guard(GuardKind.DICT_KEYS, (source,), wanted, lambda: _keys_text(source, wanted), reason, line)


def _key_text(key: Constant | Identity) -> str:
    return short(key.value) if isinstance(key, Constant) else str(key)


def _keys_text(source: Source, keys: tuple[Constant | Identity, ...]) -> str:
    shown = f"[{', '.join(map(_key_text, keys))}]"
    return f"list({source}) == {shown if len(shown) <= 80 else shown[:77] + '...'}"


def dict_has(source: Source, key: object, present: bool, *, reason: str = "", line: str = "") -> Guard:
    """`key in source` for a dict, raw, or that it is not; `key` is hashable by C code (string, number, type, ...)."""
    wanted = Constant(key) if is_plain(key) else Identity.of(key)
    return Guard(
        GuardKind.DICT_HAS,
        (source,),
        (wanted, present),
        lambda: f"{_key_text(wanted)} {'' if present else 'not '}in {source}",
        reason,
        line,
    )


def attr_present(
    source: Source, name: str, present: bool, *, raw: bool = False, reason: str = "", line: str = ""
) -> Guard:
    """`hasattr(source, name)`, or not. `raw`: look only in the instance's `__dict__` (no Python code runs)."""

    def text() -> str:
        where = f"{source}.__dict__" if raw else f"dir({source})"
        return f"{name!r} {'' if present else 'not '}in {where}"

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

    Read through `lamina/tensor_abi.h`: the type must have the `__lamina_abi__` capsule. Other arrays:
    `array_matches`. Flags are `LAMINA_*` bits: 1 requires_grad, 2 is_leaf, 8 has_grad, 16 is_view. The strides of
    dimensions of size 1 are not compared.
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
    return Guard(GuardKind.TENSOR, (source,), facts, lambda: f"{source}: {facts}", reason, line)


def array_matches(
    source: Source, value: object, spec: TensorSpec, *, check_strides: bool = True, reason: str = "", line: str = ""
) -> Guard:
    """As `tensor_matches` for an array that exports a buffer, such as `numpy.ndarray`; writability is checked as it
    is now.

    Element types without a buffer format (bfloat16 of ml_dtypes) are compared by the array's `dtype` attribute and
    `shape`.
    """
    facts = TensorFacts(
        Identity.of(type(value)),
        str(spec.dtype),
        str(spec.device),
        tuple(s if type(s) is int else None for s in spec.shape),
        tuple(s if type(s) is int else None for s in spec.strides) if check_strides else None,
    )
    return Guard(GuardKind.ARRAY, (source,), facts, lambda: f"{source}: {facts}", reason, line)


def ambient_is(ambient: Ambient, expected: object, *, reason: str = "", line: str = "") -> Guard:
    """The ambient state has this value (compared by type and value as in `equals`, or by identity)."""
    wanted = Constant(expected) if is_plain(expected) else Identity.of(expected)
    return Guard(GuardKind.AMBIENT, (), (ambient, wanted), f"{ambient.name} == {short(expected)}", reason, line)


def same_object(first: Source, second: Source, *, reason: str = "", line: str = "") -> Guard:
    """`first is second`."""
    return Guard(GuardKind.SAME, (first, second), True, lambda: f"{first} is {second}", reason, line)


def all_distinct(sources: Sequence[Source], *, reason: str = "", line: str = "") -> Guard:
    """No two of these are one object (one guard for all inputs: sorted addresses)."""
    return Guard(
        GuardKind.DISTINCT, tuple(sources), True, lambda: f"distinct({', '.join(map(str, sources))})", reason, line
    )


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
    """A condition over integers: `expression` is a `lamina_fx.symbolic` Expr or its Python text
    (`lamina_fx.symbolic.to_python`).

    `symbols` says where each symbol's value is: a `TensorProperty`, or any source of an int. Operators: + - * // %
    ** min max, comparisons, and, or, not, with Python's floor semantics in 64 bits; an overflow or division by zero
    fails the guard.
    """
    text = expression if isinstance(expression, str) else expression_text(expression)
    names = tuple(symbols)
    shown = re.sub(r"[^\W\d]\w*", lambda word: str(symbols.get(word[0], word[0])), text)
    return Guard(GuardKind.SHAPE, tuple(symbols.values()), (text, names), shown, reason, line)


def python_check(
    source: Source, check: Callable[[object], bool], text: str, *, reason: str = "", line: str = ""
) -> Guard:
    """Any condition in Python.

    `check(value)`. Slow (about 100 ns and more); `check` must not lead to user functions.
    """
    return Guard(GuardKind.PYTHON, (source,), check, text, reason, line)


def expression_text(expression: object) -> str:
    """An Expr as Python text."""
    from lamina_fx.symbolic import to_python  # optional: only programs with symbolic sizes load it

    return to_python(expression)
