"""Guards: what must hold of the frame for a compiled entry to be used.

A `Guard` is data: a kind, the source it reads, what it expects, and the user's line that made it necessary. A
`GuardSet` collects them while a frame is translated, drops duplicates and orders them by cost;
`lamina_dynamo.guard_program` turns it into a C++ program. Guards hold no functions, modules or instances strongly,
only plain constants, ids and weak references.

>>> guards = GuardSet()
>>> x = Local("x")
>>> guards.add(type_is(x, float))
>>> guards.add(equals(x, 2.5, reason="used as a constant"))
>>> for g in guards: print(g)
type(L['x']) is float
L['x'] == 2.5  (used as a constant)
>>> from lamina_dynamo.source import FrameScope
>>> guards[1].explain(FrameScope({"x": 3.5}, {}, {}))
"L['x'] == 2.5  (used as a constant), but it is 3.5"

Constructors, from cheap to dear (use these, not `Guard(...)`): `type_is`, `id_is`, `is_none`, `equals`, `length`,
`code_is`, `cell_state`, `name_absent`, `dict_keys`, `dict_has`, `attr_present`, `tensor_matches`, `array_matches`,
`ambient_is`, `same_object`, `all_distinct`, `no_overlap`, `overlap_is`, `shape_holds`, `python_check`.

Rules for who adds them:

- A guard on a source needs guards on its bases only where reading it could fail or read something else: a step that
  fails makes the guard false, so `type_is(Attr(x, "w"), int)` alone is safe.
- `InstanceAttr` and `DictItem` read raw memory and never run Python. `Attr` and `GetItem` may: use them last.
- A guard evaluates against the frame at its entry.
"""

from __future__ import annotations

from ..source import Local  # noqa: F401  (for the doctest)
from .data import Ambient, Guard, GuardKind, GuardSet, TensorFacts
from .make import (
    all_distinct,
    ambient_is,
    array_matches,
    attr_present,
    cell_state,
    code_is,
    dict_has,
    dict_keys,
    equals,
    id_is,
    is_none,
    length,
    name_absent,
    no_overlap,
    overlap_is,
    python_check,
    same_object,
    shape_holds,
    tensor_matches,
    type_is,
)
from .values import Constant, Identity, is_plain, short

__all__ = [
    "Ambient",
    "Constant",
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
    "is_plain",
    "length",
    "name_absent",
    "no_overlap",
    "overlap_is",
    "python_check",
    "same_object",
    "shape_holds",
    "short",
    "tensor_matches",
    "type_is",
]
