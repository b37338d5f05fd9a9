"""The value stack, constants, locals, cells, globals, attributes, imports."""

from __future__ import annotations

import builtins
import importlib
import types
from typing import Any

from ... import guard as g
from ...source import Builtin, DictItem, Global, Module
from ...variables import NONE, CellVariable, ConstantVariable, ModuleVariable, VariableTracker
from ..frame_parts import NULL
from .table import new_table

TABLE, opcode = new_table()


@opcode("NOP", "RESUME", "PRECALL", "COPY_FREE_VARS", "EXTENDED_ARG", "CACHE", "NOT_TAKEN")
def _nothing(frame: Any, ins: Any) -> None:
    pass


@opcode("POP_TOP")
def _pop_top(frame: Any, ins: Any) -> None:
    frame.stack.pop()


@opcode("PUSH_NULL")
def _push_null(frame: Any, ins: Any) -> None:
    frame.stack.append(NULL)


@opcode("SWAP")
def _swap(frame: Any, ins: Any) -> None:
    stack = frame.stack
    stack[-1], stack[-ins.arg] = stack[-ins.arg], stack[-1]


@opcode("COPY")
def _copy(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.stack[-ins.arg])


@opcode("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL", "LOAD_CONST_MORTAL")
def _load_const(frame: Any, ins: Any) -> None:
    value = ins.value
    kind = type(value)
    plain = kind is not tuple and kind is not frozenset and kind is not slice  # 3.14 has constant slices
    frame.stack.append(ConstantVariable(value) if plain else frame.tx.wrap_constant(value))


@opcode("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
def _load_fast(frame: Any, ins: Any) -> None:
    value = frame.locals.get(ins.value)
    frame.stack.append(value if isinstance(value, VariableTracker) else frame.load_local(ins.value))


@opcode("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def _store_fast(frame: Any, ins: Any) -> None:
    frame.locals[ins.value] = frame.stack.pop()


@opcode("DELETE_FAST")
def _delete_fast(frame: Any, ins: Any) -> None:
    frame.load_local(ins.value)
    del frame.locals[ins.value]


@opcode("MAKE_CELL")
def _make_cell(frame: Any, ins: Any) -> None:
    frame.cells[ins.value] = CellVariable(
        frame.locals.pop(ins.value, None), name=ins.value if frame.parent is None else None
    )


@opcode("LOAD_CLOSURE")
def _load_closure(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.cells[ins.value])


@opcode("LOAD_DEREF")
def _load_deref(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.cells[ins.value].load(frame.tx, ins.value))


@opcode("STORE_DEREF")
def _store_deref(frame: Any, ins: Any) -> None:
    frame.cells[ins.value].store(frame.tx, frame.stack.pop())


@opcode("DELETE_DEREF")
def _delete_deref(frame: Any, ins: Any) -> None:
    cell = frame.cells[ins.value]
    cell.load(frame.tx, ins.value)
    cell.store(frame.tx, None)


def load_global(frame: Any, name: str) -> VariableTracker:
    """The value of a global name, or of the builtin."""
    tx = frame.tx
    function = frame.function
    table = function.globals
    stored, value = tx.side_effects.load_global(table, name)
    if stored and value is not None:
        return value
    cached = tx.global_cache.get((id(table), name))
    if cached is not None:
        return cached
    if name in table and not stored:
        found = tx.wrap(table[name], function.global_source(name))
        tx.global_cache[id(table), name] = found
        return found
    builtins = tx.builtins_of(table)
    if name not in builtins:
        raise tx.error(NameError, f"name {name!r} is not defined")
    source = function.global_source(name)
    if source is None or stored:
        return tx.wrap(builtins[name], None)
    if isinstance(source, Global):
        tx.guard(g.name_absent(name))
        return tx.wrap(builtins[name], Builtin(name))
    tx.guard(g.dict_has(source.base, name, False))
    found = tx.wrap(builtins[name], DictItem(tx.builtins_source(), name))
    tx.global_cache[id(table), name] = found
    return found


@opcode("LOAD_GLOBAL", "LOAD_NAME")
def _load_global(frame: Any, ins: Any) -> None:
    if ins.arg & 1 and ins.name == "LOAD_GLOBAL":
        frame.stack.append(NULL)
    frame.stack.append(load_global(frame, ins.value))


@opcode("STORE_GLOBAL")
def _store_global(frame: Any, ins: Any) -> None:
    table = frame.function.globals
    frame.tx.global_cache.pop((id(table), ins.value), None)
    frame.tx.side_effects.store_global(table, ins.value, frame.stack.pop(), frame.function)


@opcode("DELETE_GLOBAL")
def _delete_global(frame: Any, ins: Any) -> None:
    load_global(frame, ins.value)
    table = frame.function.globals
    frame.tx.global_cache.pop((id(table), ins.value), None)
    frame.tx.side_effects.store_global(table, ins.value, None, frame.function)


@opcode("LOAD_ATTR")
def _load_attr(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.stack.pop().getattr(frame.tx, ins.value))


@opcode("LOAD_METHOD")
def _load_method(frame: Any, ins: Any) -> None:
    # the pair (NULL, bound method) means the same as CPython's (function, self), and rebuilds more simply
    method = frame.stack.pop().getattr(frame.tx, ins.value)
    frame.stack.append(NULL)
    frame.stack.append(method)


@opcode("STORE_ATTR")
def _store_attr(frame: Any, ins: Any) -> None:
    owner, value = frame.stack.pop(), frame.stack.pop()
    owner.setattr(frame.tx, ins.value, value)


@opcode("DELETE_ATTR")
def _delete_attr(frame: Any, ins: Any) -> None:
    frame.stack.pop().delattr(frame.tx, ins.value)


@opcode("IMPORT_NAME")
def _import_name(frame: Any, ins: Any) -> None:
    names, level = frame.stack.pop(), frame.stack.pop()
    package = frame.function.globals.get("__package__") if level.as_constant() else None
    name = "." * level.as_constant() + ins.value
    try:
        module = importlib.import_module(name, package)
    except ImportError as error:
        raise frame.tx.observed(error) from None
    if names.is_constant() and not names.as_constant() and "." in ins.value and not level.as_constant():
        module = importlib.import_module(ins.value.partition(".")[0])
    frame.stack.append(frame.tx.wrap(module, Module(module.__name__)))


@opcode("IMPORT_FROM")
def _import_from(frame: Any, ins: Any) -> None:
    module = frame.stack[-1]
    value = getattr(module.value, ins.value, None)
    if isinstance(module, ModuleVariable) and value is None:
        name = f"{module.value.__name__}.{ins.value}"
        try:
            value = importlib.import_module(name)
        except ImportError:
            raise frame.tx.error(ImportError, f"cannot import name {ins.value!r}") from None
    if isinstance(value, types.ModuleType):
        frame.stack.append(frame.tx.wrap(value, Module(value.__name__)))
    else:
        frame.stack.append(module.getattr(frame.tx, ins.value))


@opcode("LOAD_BUILD_CLASS")
def _load_build_class(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.builtin(builtins.__build_class__))  # its call is what ends the graph


@opcode("LOAD_ASSERTION_ERROR")
def _load_assertion_error(frame: Any, ins: Any) -> None:
    frame.stack.append(frame.tx.class_variable(AssertionError, None))


_ = NONE
