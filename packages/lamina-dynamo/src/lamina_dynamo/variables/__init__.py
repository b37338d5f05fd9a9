"""Trackers: what stands for Python values while a frame is interpreted."""

from __future__ import annotations

from .array_numbers import (
    NO_BRANCH,
    ArrayNumberVariable,
    ItemMethodVariable,
    beside_arrays,
    number_binary,
)
from .base import Lazy, NotConstant, ObjectKey, VariableTracker, realize
from .classes import (
    BuiltinVariable,
    ClassVariable,
    DisabledVariable,
    MethodDescriptorVariable,
    ModuleVariable,
    OpaqueVariable,
    SuperVariable,
)  # fmt: skip
from .constant import FALSE, NONE, PLAIN_TYPES, TRUE, BoundConstantMethod, ConstantVariable, is_none
from .container_iterators import DictIterator, ReversedIterator, SequenceIterator
from .dicts import DictVariable, DictViewVariable
from .exceptions import ExceptionVariable, ObservedException
from .functions import (
    ArrayMethodVariable,
    BoundMethodVariable,
    CellVariable,
    FunctionVariable,
    GetterVariable,
    NestedFunctionVariable,
    PartialVariable,
    UserFunctionVariable,
    cell_of,
)  # fmt: skip
from .generators import GeneratorVariable
from .hooks import HookHandleVariable, HookMethodVariable
from .iterators import (
    CountIterator,
    EnumerateIterator,
    FixedIterator,
    IteratorVariable,
    MapIterator,
    ZipIterator,
)  # fmt: skip
from .masked import MaskedVariable, masked_binary
from .objects import MISSING, NativeMethodVariable, UserObjectVariable, type_lookup
from .ranges import RangeVariable, SliceVariable
from .scalar import HostInput, ScalarVariable, SymIntVariable, host_of
from .sequences import (
    DequeVariable,
    ListVariable,
    SequenceVariable,
    TailVariable,
    TupleVariable,
)  # fmt: skip
from .sets import SetVariable
from .tensor import OperatorVariable, RefusedMethodVariable, TensorVariable, TracedFunctionVariable

__all__ = [
    "NO_BRANCH", "ArrayNumberVariable", "ItemMethodVariable", "MaskedVariable", "RefusedMethodVariable",
    "beside_arrays",
    "masked_binary", "number_binary",
    "FALSE", "MISSING", "NONE", "PLAIN_TYPES", "TRUE", "ArrayMethodVariable", "BoundConstantMethod",
    "BoundMethodVariable", "BuiltinVariable",
    "CellVariable", "ClassVariable", "ConstantVariable", "CountIterator", "DequeVariable", "DictIterator",
    "DictVariable", "DictViewVariable", "DisabledVariable", "EnumerateIterator", "ExceptionVariable", "FixedIterator",
    "FunctionVariable",
    "GeneratorVariable", "GetterVariable", "HookHandleVariable", "HookMethodVariable",
    "HostInput", "IteratorVariable", "Lazy", "ListVariable", "MapIterator",
    "MethodDescriptorVariable", "ModuleVariable", "NativeMethodVariable", "NestedFunctionVariable", "NotConstant",
    "ObjectKey", "ObservedException", "OpaqueVariable", "OperatorVariable", "PartialVariable", "RangeVariable",
    "ReversedIterator",
    "ScalarVariable", "SequenceIterator", "SequenceVariable", "SetVariable", "SliceVariable", "SuperVariable",
    "SymIntVariable", "TailVariable", "TensorVariable", "TracedFunctionVariable", "TupleVariable",
    "UserFunctionVariable", "UserObjectVariable",
    "VariableTracker", "ZipIterator", "cell_of", "host_of", "is_none", "realize", "type_lookup",
]  # fmt: skip
