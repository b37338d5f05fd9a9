"""Bytecode that makes the values of trackers again: outputs of the graph, objects made in the region, host numbers."""

from __future__ import annotations

from typing import Any

from lamina_fx.symbolic import SymInt, to_python

from ..emit import Emitter
from ..errors import InternalError, Unsupported
from ..source import Source
from ..variables import (
    CellVariable,
    ConstantVariable,
    DictVariable,
    HostInput,
    IteratorVariable,
    Lazy,
    ListVariable,
    SetVariable,
    TensorVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
)  # fmt: skip
from . import making
from .graph_inputs import GraphCalls
from .rebuild_objects import ObjectRebuilder

__all__ = ["Rebuilder"]


class Rebuilder(GraphCalls, ObjectRebuilder):
    """Loads trackers with an ``Emitter``. An object that is needed twice is made once and kept in a variable.

    ``later`` holds what must be done after everything is made: filling objects that refer to themselves.
    """

    def __init__(self, tx: Any, emitter: Emitter, outputs: dict[TensorVariable, int], outputs_name: str | None) -> None:
        self.tx = tx
        self.emitter = emitter
        self.outputs = outputs
        self.outputs_name = outputs_name
        self.temps: dict[int, str] = {}
        self.prefixes: dict[Source, Source] = {}
        self.kept: list[Any] = []
        self.building: set[int] = set()
        self.cyclic: set[int] = set()
        self.later: list[Any] = []
        self.used_cells: set[CellVariable] = set()

    # -- loading -----------------------------------------------------------------------------------------

    def load(self, value: Any) -> None:
        """Push the value."""
        if type(value) is Lazy:
            self.load_source(value.source, value.value)
            return
        if isinstance(value, CellVariable) and value.name is not None and value.source is None:
            self.used_cells.add(value)
            self.emitter.load_cell(value.name)
            return
        name = self.temps.get(id(value))
        if name is not None:
            self.emitter.load_temp(name)
            return
        if isinstance(value, ConstantVariable):
            self.load_constant(value)
            return
        if value.source is not None:
            self.load_source(value.source, None)
            return
        if id(value) in self.building:
            raise Unsupported(f"{value!r} contains itself")
        self.building.add(id(value))
        value.reconstruct(self)
        self.building.discard(id(value))
        if _has_identity(value) and id(value) not in self.temps:
            self.keep(value)

    def keep(self, value: Any) -> None:
        """Remember the pushed value in a variable."""
        name = self.emitter.new_temp()
        self.emitter.copy()
        self.emitter.store_temp(name)
        self.temps[id(value)] = name
        self.kept.append(value)

    def load_source(self, source: Any, value: Any) -> None:
        """Push what a source reads."""
        if source is None:
            self.emitter.load_const(value)
        else:
            self.emitter.load_source(source)

    def load_constant(self, value: ConstantVariable) -> None:
        """Push a constant."""
        self.emitter.load_const(value.value)

    def load_const(self, value: Any) -> None:
        """Push any object as a constant of the code."""
        self.emitter.load_const(value)

    def load_object(self, value: Any) -> None:
        """Push a function, class or module of the caller that has no source: it is held by the code."""
        self.emitter.load_const(value)

    def load_attr(self, name: str) -> None:
        """(object -- attribute)."""
        self.emitter.load_attr(name)

    def load_output(self, value: TensorVariable) -> None:
        """Push an output of the graph."""
        index = self.outputs.get(value)
        if index is None or self.outputs_name is None:
            raise InternalError(f"{value!r} is needed after the graph but is not among its outputs")
        self.emitter.load_temp(self.outputs_name)
        self.emitter.load_const(index)
        self.emitter.load_item()
        if value.attributes:
            attributes = value.attributes
            self.keep(value)
            self.later.append(lambda: self._set_attributes(value, attributes))

    def _set_attributes(self, value: TensorVariable, attributes: dict[str, VariableTracker]) -> None:
        for name, item in attributes.items():
            self.load(item)
            self.load(value)
            self.emitter.store_attr(name)

    # -- calls -------------------------------------------------------------------------------------------

    def call_constant(self, function: Any, args: list[Any], kwargs: dict[str, Any] | None = None) -> None:
        """Push ``function(*args, **kwargs)``, with the function as a constant."""
        kwargs = kwargs or {}
        self.emitter.prepare_call(lambda: self.emitter.load_const(function))
        for value in (*args, *kwargs.values()):
            self.load(value)
        self.emitter.call(len(args) + len(kwargs), tuple(kwargs))

    def call_variable(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Push a call of a tracker."""
        self.emitter.prepare_call(lambda: self.load(function))
        for value in (*args, *kwargs.values()):
            self.load(value)
        self.emitter.call(len(args) + len(kwargs), tuple(kwargs))

    def call_method(self, owner: Any, name: str) -> None:
        """Push ``owner.name()``."""

        def load() -> None:
            self.load(owner)
            self.emitter.load_attr(name)

        self.emitter.prepare_call(load)
        self.emitter.call(0)

    def build_tuple(self, count: int) -> None:
        """(v1 .. vn -- tuple)."""
        self.emitter.build_tuple(count)

    # -- numbers -----------------------------------------------------------------------------------------

    def load_expression(self, value: SymInt) -> None:
        """Push the value of a size expression."""
        expr = value.expr
        symbols = sorted(expr.free_symbols, key=lambda s: s.name)
        if len(symbols) == 1 and expr is symbols[0]:
            self.emitter.load_source(self.tx.symbols[expr])
            return
        function = making.expression_function(to_python(expr), tuple(s.name for s in symbols))
        self.emitter.prepare_call(lambda: self.emitter.load_const(function))
        for symbol in symbols:
            self.emitter.load_source(self.tx.symbols[symbol])
        self.emitter.call(len(symbols))

    def load_host(self, host: HostInput) -> None:
        """Push the value of a host computation."""
        if host.fn is None:
            operand = host.operands[0]
            if isinstance(operand, SymInt):
                self.load_expression(operand)
            elif operand is None:
                self.emitter.load_const(host.value)
            else:
                self.emitter.load_source(operand)
            return
        self.emitter.prepare_call(lambda: self.emitter.load_const(host.fn))
        for operand in host.operands:
            self.load_host(operand)
        self.emitter.call(len(host.operands))

    # -- objects -----------------------------------------------------------------------------------------


def _has_identity(value: Any) -> bool:
    return isinstance(
        value,
        (ListVariable, DictVariable, SetVariable, UserObjectVariable, CellVariable, TupleVariable, IteratorVariable),
    ) or (not (isinstance(value, (ConstantVariable, TensorVariable))) and hasattr(value, "elements"))
