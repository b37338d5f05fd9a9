"""How a value is reached from the frame: sources, which build both guards and code.

A source is a path: it begins at the frame (a local, a global, a cell) or at a fixed object and goes on by
attributes, items and so on. Each class says one step in four ways: as text (`name`), in Python while compiling
(`fetch`), as an instruction of a C++ guard program (`step`), and as bytecode (`emit`). Sources are immutable,
hashable and compare by structure; two that are equal read the same value.

>>> x = Attr(Local("self"), "weight")
>>> x.name
"L['self'].weight"
>>> x.fetch(FrameScope({"self": type("M", (), {"weight": 3})}, {}, {}))
3

Which class for which read:

- a name in the frame: `Local`, `Global`, `Builtin`, `FreeCell` (the cell itself; its value is
  `CellContents(FreeCell(name))`);
- an attribute: `InstanceAttr` where the value was found in the instance's `__dict__` (no Python code can run),
  `TypeAttr` on the source of a type where it was found on the type (the raw descriptor), `Attr` where only a full
  `getattr` will do; `SuperAttr` for what ``super()`` finds;
- a module's parameter: `module_entry(base, "_parameters", name)`;
- a container: `Item` with an int for lists and tuples, `DictItem` for dicts (subclasses too, `__getitem__` is not
  called), `DictKeys` and `DictValues` for all of them as a tuple, `GetItem` for `base[key]` by the full protocol;
- a function: `FunctionCode`, `FunctionGlobals`, `FunctionDefault`, `FunctionKwDefault`, `FunctionCell`; a method:
  `MethodFunction`, `MethodSelf`;
- a tensor: `TensorProperty(base, "size" | "stride" | "storage_offset" | "numel" | "ndim", dim)` (an int), `Grad`;
- no path: `Const` for plain immutable values, `WeakObject` for an object that has no path, `Module` for an imported
  module;
- `Temp`: a variable of the emitted code. It can not be guarded.
"""

from __future__ import annotations

from .base import FrameScope, Source, base_of, chain
from .fixed import Const, Module, WeakObject
from .frame import Builtin, FreeCell, Global, Local, Temp
from .parts import (
    FunctionCell,
    FunctionCode,
    FunctionDefault,
    FunctionGlobals,
    FunctionKwDefault,
    Grad,
    MethodFunction,
    MethodSelf,
    TensorProperty,
    module_entry,
)
from .steps import (
    Attr,
    CellContents,
    DictItem,
    DictKeys,
    DictValues,
    GetItem,
    InstanceAttr,
    Item,
    SuperAttr,
    TypeAttr,
    TypeOf,
)

__all__ = [
    "Attr",
    "Builtin",
    "CellContents",
    "Const",
    "DictItem",
    "DictKeys",
    "DictValues",
    "FrameScope",
    "FreeCell",
    "FunctionCell",
    "FunctionCode",
    "FunctionDefault",
    "FunctionGlobals",
    "FunctionKwDefault",
    "GetItem",
    "Global",
    "Grad",
    "InstanceAttr",
    "Item",
    "Local",
    "MethodFunction",
    "MethodSelf",
    "Module",
    "Source",
    "SuperAttr",
    "Temp",
    "TensorProperty",
    "TypeAttr",
    "TypeOf",
    "WeakObject",
    "base_of",
    "chain",
    "module_entry",
]
