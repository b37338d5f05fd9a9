"""Operations with a gradient of their own (``autograd.Function``): one node that calls the user's class.

Whoever runs the graph calls the class's ``forward`` and ``backward`` as they are, so their code is not interpreted
here; it is only checked that what they read is guarded or cannot change, and the forward is run once on fakes.
"""

from __future__ import annotations

import builtins
import sys
import weakref
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from .. import guard as g
from ..errors import Unsupported
from ..source import Attr, CellContents, DictItem, FunctionCell, FunctionGlobals, TypeAttr
from ..variables import ClassVariable, VariableTracker, type_lookup
from .wrapping_objects import g_weak

__all__ = ["CustomFunctions", "names_in"]

_METHODS = ("forward", "backward", "setup_context")
_KNOWN = frozenset(("lamina", "lamina_tensor", "lamina_prims", "numpy"))
_ACTS = frozenset(("print", "input", "open", "exec", "eval", "globals", "locals", "vars", "setattr", "breakpoint"))


class CustomFunctions:
    """The part of the translator that calls classes with a forward and a backward."""

    def custom_function(self, id: str, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """``cls.apply(*args)`` as one node."""
        self.direct_call = False
        variable, *rest = args
        if not isinstance(variable, ClassVariable) or kwargs:
            raise Unsupported(f"{id} with keywords or of a class that is not known")
        cls = variable.value
        seen: set[CodeType] = set()
        for name in _METHODS:
            raw = type_lookup(cls, name)
            function = raw.__func__ if isinstance(raw, staticmethod) else raw
            if not isinstance(function, FunctionType):
                raise Unsupported(f"{cls.__qualname__}.{name}, which is not a static method")
            if function.__module__.partition(".")[0] in _KNOWN:
                continue
            base = variable.source or g_weak(cls)
            self._check_function(function, Attr(TypeAttr(base, name), "__func__"), seen)
        return self._custom_node(id, cls, rest)

    def _custom_node(self, id: str, cls: type, args: list[Any]) -> VariableTracker:
        fakes = [self.to_fake(a) for a in args]
        versions = [getattr(f, "_version", 0) for f in fakes]
        nodes = tuple([self.to_node(a) for a in args])
        try:
            result = self.frontend.call(id, (weakref.ref(cls), *fakes), {})
        except Unsupported:
            raise
        except Exception as error:  # noqa: BLE001  (what fails on fakes is run, and fails or not, in Python)
            raise Unsupported(f"{cls.__qualname__}.forward: {type(error).__name__}: {error}") from None
        if versions != [getattr(f, "_version", 0) for f in fakes]:
            raise Unsupported(f"{cls.__qualname__}.forward writes to its inputs")
        effect = self.frontend.effect(id)
        graph = self.output.graph
        name = f"function_{len(graph.attributes)}"
        graph.attributes[name] = weakref.ref(cls)  # it is guarded; a compiled graph must not keep it alive
        node = self.output.call(
            id, (graph.get_attr(name), *nodes), {}, self.spec_of(result), effect, self.regions(), self.user_line()
        )
        return self.from_result(result, node)

    # -- what the code reads -----------------------------------------------------------------------------

    def _check_function(self, function: FunctionType, source: Any, seen: set[CodeType]) -> None:
        """Guard the code of a function and everything it finds by name."""
        code = function.__code__
        if code in seen:
            return
        seen.add(code)
        self.guard(g.code_is(source, code))
        for part in (function.__defaults__ or (), (function.__kwdefaults__ or {}).values()):
            if not all(map(g.is_plain, part)):
                raise Unsupported(f"defaults of {function.__qualname__} that are objects")
        for index, name in enumerate(code.co_freevars):
            cell = function.__closure__[index]  # type: ignore[index]
            self._check_value(name, cell.cell_contents, CellContents(FunctionCell(source, index)), seen)
        table = FunctionGlobals(source)
        for name in sorted(names_in(code)):
            if name in function.__globals__:
                self._check_value(name, function.__globals__[name], DictItem(table, name), seen)
            elif name in _ACTS and hasattr(builtins, name):
                raise Unsupported(f"{name}() in {function.__qualname__}")

    def _check_value(self, name: str, value: Any, source: Any, seen: set[CodeType]) -> None:
        if g.is_plain(value):
            self.guard(g.equals(source, value) if value is not None else g.is_none(source))
        elif isinstance(value, FunctionType) and _root(value.__module__) not in _KNOWN:
            self._check_function(value, source, seen)
        elif _cannot_change(value):
            self.guard_id(value, source)
        else:
            raise Unsupported(f"{name!r} in a custom function, a {type(value).__name__} that may change")


def names_in(code: CodeType) -> set[str]:
    """Names that the code and the functions in it look up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_in(constant)
    return found


def _root(module: Any) -> str:
    return str(module or "").partition(".")[0]


def _cannot_change(value: Any) -> bool:
    """A module or callable of a library, whose attributes nobody changes."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, (type, FunctionType, BuiltinFunctionType)) or callable(value):
        name = getattr(value, "__module__", None) or ""
    else:  # dtypes and the like
        name = type(value).__module__ if type(value).__name__ in ("DType", "Device") else ""
    root = _root(name)
    return root in _KNOWN or root == "lamina_fx" or root in sys.stdlib_module_names
