"""Functions that are inlined: the caller's, those made in the region, bound methods, partials; and cells."""

from __future__ import annotations

from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..errors import Unsupported
from ..source import Attr, CellContents, DictItem, FunctionCell, FunctionDefault, FunctionGlobals, FunctionKwDefault
from .base import Args, Kwargs, Lazy, VariableTracker, realize
from .constant import ConstantVariable, is_none

__all__ = [
    "BoundMethodVariable", "CellVariable", "FunctionVariable", "GetterVariable", "NestedFunctionVariable",
    "PartialVariable",
    "UserFunctionVariable",
]  # fmt: skip


class CellVariable(VariableTracker):
    """A closure cell; ``content`` is None when it is empty. ``name`` is the frame's variable, for a cell of the
    root frame.
    """

    __slots__ = ("content", "name")

    def __init__(self, content: Any = None, source: Any = None, name: str | None = None) -> None:
        self.source = source
        self.content = content
        self.name = name

    def load(self, tx: Any, name: str) -> VariableTracker:
        """The value in the cell."""
        if self.content is None:
            message = f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
            raise tx.error(NameError, message)
        if type(self.content) is Lazy:
            self.content = realize(tx, self.content)
        return self.content

    def store(self, tx: Any, value: VariableTracker | None) -> None:
        """Put a value in the cell (None: empty it)."""
        tx.mutating(self)
        self.content = value

    def children(self) -> list[Any]:
        return [] if self.content is None else [self.content]

    def reconstruct(self, cg: Any) -> None:
        cg.build_object(self)


class FunctionVariable(VariableTracker):
    """What inlining needs of a function. Subclasses say where it comes from."""

    __slots__ = ()
    code: CodeType
    globals: dict[str, Any]

    def python_type(self) -> type:
        return FunctionType

    def truth(self, tx: Any) -> bool:
        return True

    def global_source(self, name: str) -> Any:
        """Where the function's global ``name`` is; None when it needs no guard."""
        raise NotImplementedError

    def defaults(self) -> list[Any]:
        """Values of the last positional parameters."""
        return []

    def kwdefaults(self) -> dict[str, Any]:
        """Values of keyword-only parameters."""
        return {}

    def closure(self, tx: Any) -> list[CellVariable]:
        """The cells of ``code.co_freevars``."""
        return []

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return tx.inline(self, args, kwargs)


class UserFunctionVariable(FunctionVariable):
    """A function object of the caller, or one of our own polyfills (then without source, unguarded)."""

    __slots__ = ("code", "fn", "globals")

    def __init__(self, fn: FunctionType, source: Any = None) -> None:
        self.source = source
        self.fn = fn
        self.code = fn.__code__
        self.globals = fn.__globals__

    def global_source(self, name: str) -> Any:
        if self.source is None:
            return None
        return DictItem(FunctionGlobals(self.source), name)

    def defaults(self) -> list[Any]:
        found = self.fn.__defaults__ or ()
        source = self.source
        return [Lazy(v, source and FunctionDefault(source, i)) for i, v in enumerate(found)]

    def kwdefaults(self) -> dict[str, Any]:
        found = self.fn.__kwdefaults__ or {}
        return {k: Lazy(v, self.source and FunctionKwDefault(self.source, k)) for k, v in found.items()}

    def closure(self, tx: Any) -> list[CellVariable]:
        cells = self.fn.__closure__ or ()
        return [tx.wrap_cell(c, self.source and FunctionCell(self.source, i)) for i, c in enumerate(cells)]

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        replaced = tx.function_rule(self, args, kwargs)
        return tx.inline(self, args, kwargs) if replaced is None else replaced

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantVariable(getattr(self.fn, name))
        if name == "__get__":
            return BinderVariable(self)
        try:
            value = getattr(self.fn, name)
        except AttributeError as error:
            if self.source is not None:
                tx.guard_attr_absent(self.source, name)
            raise tx.observed(error) from None
        return tx.wrap(value, self.source and Attr(self.source, name))

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        raise Unsupported(f"assignment to attribute {name!r} of function {self.fn.__qualname__}")

    def reconstruct(self, cg: Any) -> None:
        cg.load_object(self.fn)

    def __repr__(self) -> str:
        return f"function {self.fn.__qualname__}"


class NestedFunctionVariable(FunctionVariable):
    """A function made in the region by MAKE_FUNCTION. ``owner`` is the function whose globals it shares."""

    __slots__ = ("annotations", "attributes", "cells", "code", "globals", "kwonly", "owner", "positional")

    def __init__(
        self, code: CodeType, owner: Any, positional: list[Any], kwonly: dict[str, Any],
        cells: list[CellVariable], annotations: VariableTracker | None = None,
    ) -> None:  # fmt: skip
        self.source = None
        self.code = code
        self.owner = owner
        self.globals = owner.globals
        self.positional = positional
        self.kwonly = kwonly
        self.cells = cells
        self.annotations = annotations
        self.attributes: dict[str, VariableTracker] = {
            "__name__": ConstantVariable(code.co_name),
            "__qualname__": ConstantVariable(code.co_qualname),
            "__module__": ConstantVariable(owner.globals.get("__name__")),
            "__doc__": ConstantVariable(code.co_consts[0] if _has_doc(code) else None),
        }

    def global_source(self, name: str) -> Any:
        return self.owner.global_source(name)

    def defaults(self) -> list[Any]:
        return self.positional

    def kwdefaults(self) -> dict[str, Any]:
        return self.kwonly

    def closure(self, tx: Any) -> list[CellVariable]:
        return self.cells

    def children(self) -> list[Any]:
        extra = [v for k, v in self.attributes.items() if not isinstance(v, ConstantVariable)]
        return [*self.positional, *self.kwonly.values(), *self.cells, *extra]

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name in self.attributes:
            return self.attributes[name]
        if name == "__code__":
            return ConstantVariable(self.code)
        if name == "__get__":
            return BinderVariable(self)
        if name == "__dict__":
            return tx.dict_of({k: v for k, v in self.attributes.items() if not k.startswith("__")})
        if name == "__annotations__":
            return tx.dict_of({}) if self.annotations is None else tx.annotations_dict(self.annotations)
        if name in ("__defaults__", "__kwdefaults__", "__closure__", "__globals__"):
            raise Unsupported(f"reading {name} of a function made in the region")
        raise tx.error(AttributeError, f"'function' object has no attribute {name!r}")

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        self.attributes[name] = value

    def reconstruct(self, cg: Any) -> None:
        cg.build_function(self)

    def __repr__(self) -> str:
        return f"function {self.code.co_qualname}"


class BinderVariable(VariableTracker):
    """``function.__get__``."""

    __slots__ = ("function",)

    def __init__(self, function: VariableTracker) -> None:
        self.source = None
        self.function = function

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.function if is_none(args[0]) else BoundMethodVariable(self.function, args[0])


class BoundMethodVariable(VariableTracker):
    """A callable bound to its first argument."""

    __slots__ = ("function", "owner")

    def __init__(self, function: VariableTracker, owner: VariableTracker, source: Any = None) -> None:
        self.source = source
        self.function = function
        self.owner = owner

    def python_type(self) -> type:
        return MethodType

    def truth(self, tx: Any) -> bool:
        return True

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.function.call(tx, [self.owner, *args], kwargs)

    def children(self) -> list[Any]:
        return [self.function, self.owner]

    def key(self) -> Any:
        return ("bound", self.function.key(), self.owner.key())

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name == "__self__":
            return self.owner
        if name == "__func__":
            return self.function
        return self.function.getattr(tx, name)

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(MethodType, [self.function, self.owner])


class ArrayMethodVariable(BoundMethodVariable):
    """A method of an array that was looked up before the region began: a call asks the front end what it is."""

    __slots__ = ("name",)

    def __init__(self, function: VariableTracker, owner: VariableTracker, source: Any, name: str) -> None:
        super().__init__(function, owner, source)
        self.name = name

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.owner.getattr(tx, self.name).call(tx, args, kwargs)


class PartialVariable(VariableTracker):
    """A ``functools.partial``."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: VariableTracker, args: list[Any], kwargs: dict[str, Any], source: Any = None) -> None:
        self.source = source
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def python_type(self) -> type:
        return partial

    def truth(self, tx: Any) -> bool:
        return True

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        first = [realize(tx, a) for a in self.args]
        named = {k: realize(tx, v) for k, v in self.kwargs.items()}
        return self.function.call(tx, [*first, *args], {**named, **kwargs})

    def children(self) -> list[Any]:
        return [self.function, *self.args, *self.kwargs.values()]

    def setattr(self, tx: Any, name: str, value: VariableTracker) -> None:
        if self.source is not None or name != "__self__":
            raise Unsupported(f"assignment to attribute {name!r} of functools.partial")
        # functools.partialmethod notes the instance; nothing reads it

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name == "func":
            return self.function
        if name == "args":
            return tx.tuple_of(list(self.args))
        if name == "keywords":
            return tx.dict_of(dict(self.kwargs))
        raise Unsupported(f"attribute {name!r} of functools.partial")

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(partial, [self.function, *self.args], self.kwargs)


class GetterVariable(PartialVariable):
    """What ``operator.itemgetter``, ``attrgetter`` or ``methodcaller`` gives: ``maker(*given, **named)``."""

    __slots__ = ("given", "maker", "named")

    def __init__(
        self, function: VariableTracker, bound: list[Any], maker: Any, given: list[Any], named: dict[str, Any]
    ) -> None:
        super().__init__(function, bound, {})
        self.maker = maker
        self.given = given
        self.named = named

    def python_type(self) -> type:
        return self.maker

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        raise Unsupported(f"attribute {name!r} of operator.{self.maker.__name__}")

    def children(self) -> list[Any]:
        return [*self.given, *self.named.values()]

    def reconstruct(self, cg: Any) -> None:
        cg.call_constant(self.maker, self.given, self.named)


def cell_of(cell: Any, source: Any) -> CellVariable:
    """A tracker of a cell of the caller; its content is lazy."""
    try:
        value = cell.cell_contents
    except ValueError:  # the cell is empty
        return CellVariable(None, source)
    return CellVariable(Lazy(value, source and CellContents(source)), source)


def _has_doc(code: CodeType) -> bool:
    return bool(code.co_consts) and isinstance(code.co_consts[0], str) and code.co_name != "<lambda>"
