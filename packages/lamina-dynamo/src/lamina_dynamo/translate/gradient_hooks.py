"""Hooks on gradients: functions that a backward pass inside the graph calls.

Whoever runs the graph registers the function as it is and runs the backward pass, so its code is not interpreted
here; as for custom functions it is checked that what it reads is guarded or cannot change, and that it writes to
nothing but its argument. A hook whose code does more ends the graph.
"""

from __future__ import annotations

import dis
import sys
import weakref
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from .. import guard as g
from ..errors import Unsupported
from ..source import Attr, DictValues, Item
from ..variables import (
    NONE,
    ConstantVariable,
    HookHandleVariable,
    NestedFunctionVariable,
    TensorVariable,
    UserFunctionVariable,
    VariableTracker,
)  # fmt: skip
from .custom_functions import CustomFunctions, names_in

__all__ = ["GradientHooks", "HookFunction"]

_STORES = frozenset(("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME", "YIELD_VALUE", "IMPORT_NAME"))
_ATTRIBUTES = frozenset(("grad", "data"))


@dataclass(frozen=True)
class HookFunction:
    """A function that the region made, to be made again by whoever runs the graph: calling this gives it.

    The globals are found by the module's name: a compiled graph must not keep them alive.
    """

    code: CodeType
    module: str
    defaults: tuple[Any, ...]
    cells: tuple[Any, ...]

    def __call__(self) -> FunctionType:
        """The function."""
        cells = tuple([CellType(value) for value in self.cells])
        return FunctionType(self.code, sys.modules[self.module].__dict__, self.code.co_name, self.defaults, cells)


class GradientHooks(CustomFunctions):
    """The part of the translator that registers hooks."""

    def __init__(self) -> None:
        self.hooks: list[HookHandleVariable] = []
        self.outer_hooks: dict[TensorVariable, list[int]] = {}

    def add_hook(self, tensor: TensorVariable, kind: str, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """``tensor.register_hook(function)`` and its like."""
        if kwargs or len(args) != 1:
            raise Unsupported(f"{kind} with other arguments than a function")
        steps = self.frame.steps_to_break()
        node, handle = self._hook_node(tensor, kind, self._hook_reference(args[0]))
        made = HookHandleVariable(node, handle, tensor, steps)
        self.hooks.append(made)
        return made

    def remove_hook(self, hook: HookHandleVariable) -> VariableTracker:
        """``handle.remove()``."""
        if not hook.removed:
            hook.removed = True
            hook.handle.remove()
            self.output.call("grad_unhook", (hook.node,), {}, None, "grad", self.regions(), self.user_line())
        return NONE

    def _hook_node(self, tensor: TensorVariable, kind: str, reference: Any) -> tuple[Any, Any]:
        graph = self.output.graph
        name = f"hook_{len(graph.attributes)}"
        graph.attributes[name] = reference
        try:
            handle = self.frontend.call("grad_hook", (tensor.fake, kind, reference), {})
        except Exception as error:  # noqa: BLE001  (the error that the call has in eager belongs to the traced program)
            raise self.observed(error) from None
        where = (self.regions(), self.user_line())
        node = self.output.call("grad_hook", (tensor.node, kind, graph.get_attr(name)), {}, None, "grad", *where)
        return node, handle

    # -- hooks that inputs have at entry -------------------------------------------------------------------

    def load_hooks(self, value: Any, tensor: TensorVariable) -> None:
        """Let a backward pass in the graph call the hooks that an input has."""
        kinds = self.frontend.gradient_hooks(value)
        if not kinds or tensor in self.outer_hooks:
            return
        table = Attr(tensor.source, "_hooks")
        for place, (kind, functions) in enumerate(kinds):
            held = Item(table, place)
            self.guard(g.length(held, len(functions)))
            for index, function in enumerate(functions):
                found = self.wrap(function, Item(DictValues(held), index))
                self._hook_node(tensor, kind, self._hook_reference(found))
        self.outer_hooks[tensor] = self.frame.steps_to_break()

    # -- what the code does --------------------------------------------------------------------------------

    def _hook_reference(self, variable: Any) -> Any:
        """What gives the function when it is called."""
        seen: set[CodeType] = set()
        if isinstance(variable, UserFunctionVariable) and variable.source is not None:
            self._check_function(variable.fn, variable.source, seen)
            reference: Any = weakref.ref(variable.fn)
        elif isinstance(variable, NestedFunctionVariable):
            reference = self._nested_reference(variable, seen)
        else:
            raise Unsupported(f"{variable!r} as a hook on a gradient")
        for code in seen:
            _check_stores(code)
        return reference

    def _nested_reference(self, variable: NestedFunctionVariable, seen: set[CodeType]) -> HookFunction:
        code, table = variable.code, variable.globals
        module = table.get("__name__", "")
        if getattr(sys.modules.get(module), "__dict__", None) is not table:
            raise Unsupported("a hook whose module cannot be found by its name")
        if variable.kwonly:
            raise Unsupported("a hook with keyword-only arguments")
        contents = [cell.content for cell in variable.cells]
        if not all(isinstance(v, ConstantVariable) and g.is_plain(v.value) for v in (*contents, *variable.positional)):
            raise Unsupported("a hook that reads variables of the function around it, other than constants")
        seen.add(code)
        for name in sorted(names_in(code)):
            if name in table:
                self._check_value(name, table[name], variable.global_source(name), seen)
        defaults = tuple([v.value for v in variable.positional])
        return HookFunction(code, module, defaults, tuple([v.value for v in contents]))


def _check_stores(code: CodeType) -> None:
    """A hook may assign gradients and data of what it is given, and its own variables.

    Raises:
        Unsupported: it does more.
    """
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        outward = name in _STORES or (name in ("STORE_DEREF", "DELETE_DEREF") and value in code.co_freevars)
        if outward or (name == "STORE_ATTR" and value not in _ATTRIBUTES):
            raise Unsupported(f"a hook on a gradient that assigns {value!r}")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _check_stores(constant)
