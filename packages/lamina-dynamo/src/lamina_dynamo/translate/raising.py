"""Exceptions of the traced program, and new containers."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..variables import (
    NONE,
    ClassVariable,
    ConstantVariable,
    DictIterator,
    DictVariable,
    DictViewVariable,
    ExceptionVariable,
    FixedIterator,
    IteratorVariable,
    ListVariable,
    ObservedException,
    SequenceIterator,
    SequenceVariable,
    SetVariable,
    TupleVariable,
    UserObjectVariable,
    VariableTracker,
    is_none,
)  # fmt: skip

__all__ = ["Raising"]


class Raising:
    """The part of the translator that raises exceptions in the traced program and makes values."""

    Observed = ObservedException
    frontend: Any
    side_effects: Any

    def error(self, cls: type, *args: Any) -> ObservedException:
        """An exception of the traced program with constant arguments."""
        return self.error_of(cls, [ConstantVariable(a) for a in args])

    def error_of(self, cls: type, args: list[VariableTracker]) -> ObservedException:
        """An exception of the traced program."""
        variable = ExceptionVariable(cls, TupleVariable(list(args)))
        variable.attrs = DictVariable()
        return self.observe(variable)

    def observe(self, variable: ExceptionVariable) -> ObservedException:
        """Raise this exception object in the traced program."""
        handled = self.handled
        if isinstance(handled, ExceptionVariable) and handled is not variable and is_none(variable.context):
            variable.context = handled
        return ObservedException(variable)

    def observed(self, error: BaseException) -> ObservedException:
        """An exception that a computation on constants or fakes raised."""
        made = self.error_of(type(error), [])
        try:
            made.variable.args = self.wrap_constant(error.args)
        except Unsupported:
            made.variable.args = TupleVariable([ConstantVariable(str(error))])
        return made

    def observed_from(self, value: VariableTracker) -> ObservedException:
        """What ``raise value`` raises."""
        if isinstance(value, ClassVariable) and issubclass(value.value, BaseException):
            value = value.call(self, [], {})
        if isinstance(value, ExceptionVariable):
            return self.observe(value)
        return self.error(TypeError, "exceptions must derive from BaseException")

    def stop_iteration(self, value: VariableTracker = NONE) -> ObservedException:
        """The end of an iterator."""
        return ObservedException(ExceptionVariable(StopIteration, TupleVariable([] if is_none(value) else [value])))

    def attribute_error(self, variable: VariableTracker, name: str) -> ObservedException:
        """No such attribute."""
        return self.error(AttributeError, f"{variable.python_type().__name__!r} object has no attribute {name!r}")

    def is_exception(self, error: ObservedException, classes: Any) -> bool:
        """Whether the traced program's exception is of these classes."""
        return issubclass(error.variable.cls, classes)

    def unsupported(self, reason: str, hint: str = "") -> Any:
        """End the graph here."""
        raise Unsupported(reason, hint)

    def tuple_of(self, values: list[Any]) -> TupleVariable:
        """A new tuple."""
        return TupleVariable(values)

    def list_variable(self, values: list[Any]) -> ListVariable:
        """A new list."""
        return ListVariable(values)

    def list_of(self, values: VariableTracker) -> ListVariable:
        """``list(values)``."""
        return values if isinstance(values, ListVariable) else ListVariable(self.unpack(values))

    def dict_of(self, values: dict[Any, Any]) -> DictVariable:
        """A new dict with constant keys."""
        return DictVariable(dict(values), {k: ConstantVariable(k) for k in values})

    def set_of(self, values: list[VariableTracker], kind: type = set) -> SetVariable:
        """A new set."""
        return SetVariable({self.key_of(v): v for v in reversed(values)}, kind=kind)

    def iterator_over(self, values: list[VariableTracker]) -> FixedIterator:
        """An iterator over fixed values."""
        return FixedIterator(values)

    def dict_iterator(self, owner: DictVariable, view: str) -> IteratorVariable:
        """An iterator over a dict that may still change."""
        if owner.owner is not None and owner.source is None:  # the attributes of an object of the region: no dict yet
            return FixedIterator(DictViewVariable(owner, view).list(self))
        owner.guard_order(self)
        return DictIterator(owner, view, self.frame.steps_to_break())

    def sequence_iterator(self, owner: SequenceVariable) -> SequenceIterator:
        """An iterator over a list that may still change."""
        return SequenceIterator(owner, self.frame.steps_to_break())

    def unpack(self, values: VariableTracker) -> list[VariableTracker]:
        """Everything an iterable gives."""
        if isinstance(values, SequenceVariable):
            return values.all(self)
        if isinstance(values, DictViewVariable):
            return values.list(self)
        if isinstance(values, DictVariable):
            return values.key_list(self)
        iterator = values.iterator(self)
        if isinstance(iterator, IteratorVariable):
            return iterator.remaining(self)
        return IteratorVariable.remaining(iterator, self)  # type: ignore[arg-type]

    def dict_update(self, target: DictVariable, other: VariableTracker) -> None:
        """``target.update(other)``."""
        native = getattr(other, "native", None)
        if isinstance(native, DictVariable):
            other = native
        if isinstance(other, DictVariable):
            for tracker, value in zip(other.key_list(self), other.value_list(self), strict=True):
                target.set(self, self.key_of(tracker), tracker, value)
            return
        if isinstance(other, UserObjectVariable) and other.special(self, "keys") is not None:
            for tracker in self.unpack(other.method(self, "keys", [], {})):
                target.set(self, self.key_of(tracker), tracker, other.getitem(self, tracker))
            return
        for pair in self.unpack(other):
            tracker, value = self.unpack(pair)
            target.set(self, self.key_of(tracker), tracker, value)

    def mutating(self, variable: VariableTracker) -> None:
        """Say that a tracker is about to change."""
        self.side_effects.mutating(variable)
