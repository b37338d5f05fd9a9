"""Calls: binding arguments, inlining Python functions, generators, built-in functions, the front end's operators."""

from __future__ import annotations

import inspect
import operator as python_operators
import types
from typing import Any

from lamina_fx.symbolic import SymBool, SymFloat, SymInt, UnbackedSizeError

from .. import guard as g
from ..errors import Unsupported
from ..frontend import DataDependent
from ..source import Attr, Grad
from ..variables import (
    NONE,
    BoundMethodVariable,
    BuiltinVariable,
    CellVariable,
    ConstantVariable,
    DictVariable,
    GeneratorVariable,
    Lazy,
    MethodDescriptorVariable,
    ObservedException,
    OperatorVariable,
    ScalarVariable,
    SymIntVariable,
    TensorVariable,
    TracedFunctionVariable,
    TupleVariable,
    UserFunctionVariable,
    VariableTracker,
    realize,
)  # fmt: skip
from .builtin_rules import CLASS_RULES, FUNCTION_RULES
from .frame import YIELDED, Frame
from .polyfills import BY_FUNCTION, BY_NAME

__all__ = ["Calls"]

_PURE_MODULES = frozenset(
    ("math", "_operator", "builtins", "cmath", "_functools", "itertools", "_struct", "_bisect", "unicodedata", "_string")
)
_IMPURE = frozenset((open, input, exec, eval, compile, __import__, breakpoint))
_GENERATOR, _COROUTINE = inspect.CO_GENERATOR, inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


class HostFloat(float):
    """A float argument that the emitted code computes: its value while tracing, and the tracker."""

    variable: ScalarVariable

    @classmethod
    def of(cls, variable: ScalarVariable) -> HostFloat:
        """The value of a tracker."""
        made = cls(variable.host_value.value)
        made.variable = variable
        return made


class Calls:
    """The part of the translator that makes calls."""

    frame: Any
    class_rules: dict[Any, Any]

    def __init__(self) -> None:
        self.class_rules = dict(CLASS_RULES)
        self.polyfills: dict[str, UserFunctionVariable] = {}
        self.depth = 0
        self.region_tags: tuple[str, ...] = ()
        self.region_count = 0
        self.traces = hasattr(self.frontend, "trace")

    # -- Python functions --------------------------------------------------------------------------------

    def function_rule(self, function: UserFunctionVariable, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker | None:
        """What a function of the caller means, when it is not inlined."""
        fn = function.fn
        if fn.__name__ == "is_compiling" and (fn.__module__ or "").startswith("lamina_dynamo"):
            return ConstantVariable(True)
        mode = self.frontend.mode_function(fn)
        if mode is not None:
            return self.mode_call(mode, args)
        special = self.frontend.function_rule(fn)
        if special is not None:
            return self._special_function(*special, args, kwargs)
        replacement = BY_FUNCTION.get(fn)
        if replacement is not None and replacement is not fn:
            return self.polyfill(replacement.__name__, args, kwargs)
        rule = FUNCTION_RULES.get(fn)
        if rule is not None:
            return rule(self, *args, **kwargs)
        if function.source is not None and self._is_opaque_module(fn.__module__ or ""):
            raise Unsupported(f"call of {fn.__module__}.{fn.__qualname__}")
        if function.source is not None:
            self.guard(g.code_is(function.source, fn.__code__))
        return None

    def _special_function(self, kind: str, word: str, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        if kind == "refuse":
            raise Unsupported(word)
        self.region_count += 1
        outer = self.region_tags
        self.region_tags = (*outer, f"{word}:{self.region_count - 1}")
        self.direct_call = False
        try:
            named = {k: v for k, v in kwargs.items() if k not in ("use_reentrant", "preserve_rng_state")}
            return args[0].call(self, args[1:], named)
        finally:
            self.region_tags = outer

    def regions(self) -> tuple[str, ...]:
        """The region tags of a node made now."""
        tags = self.frontend.regions()
        return (*self.region_tags, *tags) if self.region_tags else tags

    def _is_opaque_module(self, name: str) -> bool:
        root = name.partition(".")[0]
        return root in _OPAQUE_MODULES

    def inline(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """Interpret a Python function as part of the caller."""
        code = function.code
        if code.co_flags & _COROUTINE:
            raise Unsupported(f"the coroutine {code.co_qualname}")
        if self.depth > self.config.inline_depth:
            raise Unsupported(f"calls nested deeper than {self.config.inline_depth}")
        direct, self.direct_call = self.direct_call, False
        frame = Frame(self, function, bind_arguments(self, function, args, kwargs), self.frame)
        frame.is_direct = direct and (self.frame.parent is None or self.frame.is_direct)
        make_cells(self, frame)
        if code.co_flags & _GENERATOR:
            return GeneratorVariable(frame, (function, args, kwargs), self.root.step_at)
        self.depth += 1
        try:
            frame.run()
        finally:
            self.depth -= 1
        return frame.result

    def run_generator(self, generator: Any, sent: Any, thrown: Any) -> tuple[str, VariableTracker]:
        """Run a generator's frame to its next yield or its end."""
        frame = generator.frame
        frame.parent = self.frame
        self.depth += 1
        handled = self.handled
        try:
            if thrown is not None:
                if not generator.started:
                    raise thrown
                frame.unwind_thrown(thrown) if hasattr(frame, "unwind_thrown") else _throw(self, frame, thrown)
            elif generator.started:
                frame.push(sent)
            generator.started = True
            status = frame.run()
        finally:
            self.depth -= 1
            self.handled = handled
        return ("yield" if status == YIELDED else "return"), frame.result

    def polyfill_function(self, name: str) -> UserFunctionVariable:
        """One of our own functions that is traced in place of C code."""
        found = self.polyfills.get(name)
        if found is None:
            found = self.polyfills[name] = UserFunctionVariable(BY_NAME[name])
        return found

    def polyfill(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """Call one of our own functions."""
        self.direct_call = False
        return self.inline(self.polyfill_function(name), args, kwargs)

    inline_polyfill = polyfill

    # -- C functions -------------------------------------------------------------------------------------

    def builtin(self, function: Any) -> BuiltinVariable:
        """A C function as a value."""
        return BuiltinVariable(function)

    def call_builtin(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """Call a function that C code implements."""
        self.direct_call = False
        if isinstance(function, types.FunctionType):
            return self.wrap(function, None).call(self, args, kwargs)
        rule = FUNCTION_RULES.get(function) if _hashable(function) else None
        if rule is not None:
            return rule(self, *args, **kwargs)
        mode = self.frontend.mode_function(function)
        if mode is not None:
            return self.mode_call(mode, args)
        if isinstance(function, type):
            return self.instantiate(self.class_variable(function, None), args, kwargs)
        replacement = BY_FUNCTION.get(function)
        if replacement is not None:
            return self.polyfill(replacement.__name__, args, kwargs)
        if getattr(function, "__name__", "") == "__new__" and isinstance(getattr(function, "__self__", None), type):
            return self.native_new(args[0], args[1:], kwargs)
        if any(isinstance(a, TensorVariable) for a in (*args, *kwargs.values())):
            id_ = self.frontend.operator(function)
            if id_ is not None:
                return self.operator(id_, args, kwargs, function)
        if self._is_pure(function):
            return self.call_native(function, args, kwargs)
        name = getattr(function, "__qualname__", repr(function))
        raise Unsupported(f"call of {getattr(function, '__module__', None) or ''}.{name}, which C code implements".replace("of .", "of "))

    def _is_pure(self, function: Any) -> bool:
        if function in _IMPURE:
            return False
        owner = getattr(function, "__self__", None)
        if isinstance(owner, type):
            return self.is_pure_type(owner)
        if isinstance(owner, (str, bytes, int, float, tuple, frozenset)):
            return True
        return (getattr(function, "__module__", None) or "") in _PURE_MODULES

    # -- the front end -----------------------------------------------------------------------------------

    def python_operator(self, function: Any, args: list[Any]) -> VariableTracker:
        """One of Python's operators where an operand is an array."""
        id_ = self.frontend.operator(function)
        if id_ is not None:
            return self.operator(id_, args, {}, function)
        return self._python_operator_by_method(function, args)

    def _python_operator_by_method(self, function: Any, args: list[Any]) -> VariableTracker:
        """An operator that the front end writes as a method in Python: ``__getitem__`` and the like are inlined."""
        stem = function.__name__.strip("_")
        name = f"__{stem}__"
        order = [(args[0], name, args[1:])]
        if len(args) == 2 and stem in _REFLECTED:
            order.append((args[1], _REFLECTED[stem], args[:1]))
        for owner, method_name, rest in order:
            if isinstance(owner, TensorVariable) and self.frontend.member(owner.fake, method_name) is not None:
                result = owner.getattr(self, method_name).call(self, list(rest), {})
                if not (isinstance(result, ConstantVariable) and result.value is NotImplemented):
                    return result
        if stem.startswith("i") and hasattr(python_operators, stem[1:]):
            return self.python_operator(getattr(python_operators, stem[1:]), args)
        raise Unsupported(f"operator.{function.__name__} of {', '.join(map(repr, args))}")

    def operator(self, id: str, args: list[Any], kwargs: dict[str, Any], function: Any = None) -> VariableTracker:
        """Run an operator on fakes and write its node."""
        frontend = self.frontend
        mode = frontend.mode_function(function) if function is not None else None
        if mode is not None:
            return self.mode_call(mode, args)
        effect = frontend.effect(id)
        if effect is None and function is not None and self.traces:
            return self.traced_call(function, args, kwargs)
        if effect == "grad":
            self.load_gradients()
        fakes = [self.to_fake(a) for a in args]
        named = {k: self.to_fake(v) for k, v in kwargs.items()}
        nodes = tuple([self.to_node(a) for a in args])
        named_nodes = {k: self.to_node(v) for k, v in kwargs.items()}
        before = self.versions() if effect == "grad" else None
        try:
            result = frontend.call(id, fakes, named)
        except (DataDependent, UnbackedSizeError) as error:
            raise Unsupported(f"{id}: {error}, which only running the graph tells") from None
        except Unsupported:
            raise
        except Exception as error:  # noqa: BLE001  (the error that the call has in eager belongs to the traced program)
            raise self.observed(error) from None
        del before
        spec = self.spec_of(result)
        node = self.output.call(id, nodes, named_nodes, spec, effect, self.regions(), self.user_line())
        return self.from_result(result, node)

    def traced_call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """Call a function of the front end on fakes; every operator that it calls becomes a node."""
        fakes = [self.to_fake(a) for a in args]
        named = {k: self.to_fake(v) for k, v in kwargs.items()}
        try:
            result = self.frontend.trace(function, fakes, named, self.record_call)
        except (DataDependent, UnbackedSizeError) as error:
            name = getattr(function, "__qualname__", None) or getattr(function, "__name__", function)
            raise Unsupported(f"{name}: {error}") from None
        except (Unsupported, ObservedException):
            raise
        except Exception as error:  # noqa: BLE001  (the error that the call has in eager belongs to the traced program)
            raise self.observed(error) from None
        return self.wrap_result(result)

    def record_call(self, id: str, args: Any, kwargs: dict[str, Any], run: Any) -> Any:
        """Called by the front end for each operator inside ``traced_call``: run it and write its node."""
        nodes = self.nodes_of(args)
        named = self.nodes_of(kwargs)
        result = run()
        frontend = self.frontend
        node = self.output.call(
            id, nodes, named, self.spec_of(result), frontend.effect(id), self.regions(), self.user_line()
        )
        self.from_result(result, node)
        return result

    def nodes_of(self, value: Any) -> Any:
        """Nested arguments with fakes replaced by their nodes."""
        kind = type(value)
        if kind is tuple:
            return tuple([self.nodes_of(v) for v in value])
        if kind is list:
            return [self.nodes_of(v) for v in value]
        if kind is dict:
            return {k: self.nodes_of(v) for k, v in value.items()}
        if kind is slice:
            return slice(self.nodes_of(value.start), self.nodes_of(value.stop), self.nodes_of(value.step))
        if kind is HostFloat:
            return self.scalar_input(value.variable)
        if isinstance(value, tuple):
            return tuple([self.nodes_of(v) for v in value])
        if self.frontend.is_fake(value):
            known = self.fakes.get(id(value))
            if known is None:
                raise Unsupported("an array that the region did not make, such as one held by a function of the front end")
            return known.node
        if self.frontend.is_array(value):
            return self.constant_node(value)
        return value

    def constant_node(self, value: Any) -> Any:
        """A node for an array that no source leads to: it becomes a constant of the graph."""
        graph = self.output.graph
        name = f"constant_{len(graph.attributes)}"
        graph.attributes[name] = value
        return graph.get_attr(name, spec=self.frontend.spec(value))

    def spec_of(self, result: Any) -> Any:
        """The spec of an operator's result."""
        if self.frontend.is_fake(result):
            return self.frontend.spec(result)
        if isinstance(result, (tuple, list)):
            return tuple([self.spec_of(r) for r in result])
        return None

    def from_result(self, result: Any, node: Any) -> VariableTracker:
        """The tracker of an operator's result."""
        if self.frontend.is_fake(result):
            known = self.fakes.get(id(result))
            if known is not None:
                return known
            made = TensorVariable(node, result)
            self.fakes[id(result)] = made
            return made
        if isinstance(result, (tuple, list)):
            values = []
            for position, part in enumerate(result):
                item = self.output.graph.call_function("getitem", (node, position), spec=self.spec_of(part))
                item.meta["source"] = node.meta["source"]
                values.append(self.from_result(part, item))
            return self._sequence_like(result, values)
        return self.wrap_result(result)

    def _sequence_like(self, result: Any, values: list[Any]) -> VariableTracker:
        if type(result) is list:
            return self.list_variable(values)
        if type(result) is tuple:
            return TupleVariable(values)
        return self.native_result(type(result), values)

    def wrap_result(self, value: Any) -> VariableTracker:
        """A plain value that the front end computed on a fake."""
        if isinstance(value, SymInt):
            expr = value.expr
            return ConstantVariable(expr.value) if not expr.free_symbols else SymIntVariable(value)
        if isinstance(value, SymBool):
            return ConstantVariable(bool(value))
        if isinstance(value, SymFloat):
            return ConstantVariable(float(value))
        if self.frontend.is_fake(value):
            known = self.fakes.get(id(value))
            if known is None:
                raise Unsupported("an array that the region did not make")
            return known
        if type(value) is tuple:
            return TupleVariable([self.wrap_result(v) for v in value])
        if isinstance(value, tuple):
            return self.native_result(type(value), [self.wrap_result(v) for v in value])
        return self.wrap_constant(value)

    def native_result(self, cls: type, values: list[Any]) -> VariableTracker:
        """An instance of a subclass of tuple (a size, a named result) with these elements."""
        from ..variables import UserObjectVariable

        made = UserObjectVariable(cls, native=TupleVariable(values), attrs=DictVariable() if cls.__dictoffset__ else None)
        if made.attrs is not None:
            made.attrs.owner = made
        return made

    def to_fake(self, value: Any) -> Any:
        """An argument as the front end's ``call`` takes it."""
        return self._argument(value, lambda t: t.fake, self._host_number if self.traces else lambda s: s.host_value.value)

    def _host_number(self, value: ScalarVariable) -> Any:
        """A host number that remembers where it is from; ints of the host are pinned."""
        if value.python_type() is float:
            return HostFloat.of(value)
        return value.specialized(self).value

    def to_node(self, value: Any) -> Any:
        """An argument as it stands in the graph."""
        return self._argument(value, lambda t: t.node, self.scalar_input)

    def scalar_input(self, value: ScalarVariable) -> Any:
        """The graph input that carries a number the host computes."""
        key = id(value.host_value)
        found = self.host_inputs.get(key)
        if found is None:
            from lamina_fx import ScalarSpec

            host = value.host_value
            origin = host.operands[0] if host.fn is None and not isinstance(host.operands[0], SymInt) else host
            name = value.source.name if value.source is not None else "scalar"
            node = self.output.add_input(origin, name, ScalarSpec(value.python_type()), host.value)
            found = self.host_inputs[key] = (node, host)
        return found[0]

    def _argument(self, value: Any, tensor: Any, scalar: Any) -> Any:
        if not isinstance(value, VariableTracker):
            value = realize(self, value)
        kind = type(value)
        if kind is TensorVariable:
            return tensor(value)
        if kind is ConstantVariable:
            return value.value
        if kind is SymIntVariable:
            return value.value
        if kind is ScalarVariable:
            return scalar(value)
        return self._nested_argument(value, tensor, scalar)

    def _nested_argument(self, value: Any, tensor: Any, scalar: Any) -> Any:
        from ..variables import ListVariable, SliceVariable, UserObjectVariable

        if isinstance(value, TupleVariable):
            return tuple([self._argument(v, tensor, scalar) for v in value.elements])
        if isinstance(value, ListVariable):
            return [self._argument(v, tensor, scalar) for v in value.elements]
        if isinstance(value, SliceVariable):
            return slice(*[self._argument(v, tensor, scalar) for v in value.parts])
        if isinstance(value, DictVariable):
            names = [k.as_constant() for k in value.key_list(self)]
            return dict(zip(names, [self._argument(v, tensor, scalar) for v in value.value_list(self)], strict=True))
        if isinstance(value, UserObjectVariable) and value.native is not None:
            return self._argument(value.native, tensor, scalar)
        try:
            return value.as_constant()
        except Exception:  # noqa: BLE001  (NotConstant or Unsupported: either way it cannot be an argument)
            pass
        example = getattr(value, "real", None)
        if example is not None and self.frontend.is_constant(example):
            return example
        raise Unsupported(f"{value!r} as an argument of an operator")

    def mode_call(self, mode: str, args: list[Any]) -> VariableTracker:
        """Read or set ambient state, such as the grad mode."""
        action, _, name = mode.partition(":")
        if action == "get":
            return self.wrap_constant(self.frontend.get_mode(name))
        value = args[0].as_constant()
        return self.wrap_constant(self.frontend.set_mode(name, value))

    # -- arrays ------------------------------------------------------------------------------------------

    def tensor_attribute(self, tensor: TensorVariable, name: str) -> VariableTracker:
        """An attribute of an array."""
        frontend = self.frontend
        if name == "__class__":
            return self.class_variable(frontend.array_type(tensor.fake), None)
        if name == "grad":
            self.load_gradient(tensor)
        found = frontend.member(tensor.fake, name)
        if found is None:
            return self._stored_attribute(tensor, name)
        if found.kind == "value":
            return self._member_value(tensor, name, found.value)
        if found.kind == "operator":
            return self.operator(found.value, [tensor], {})
        if found.kind == "traced":
            return BoundMethodVariable(TracedFunctionVariable(found.value), tensor)
        if found.kind == "unsupported":
            raise Unsupported(found.value)
        if found.kind == "id":
            return BoundMethodVariable(OperatorVariable(found.value, None), tensor)
        return BoundMethodVariable(self.wrap_frontend_function(found.value), tensor)

    def wrap_frontend_function(self, function: Any) -> VariableTracker:
        """A function of the front end itself: taken as fixed."""
        if isinstance(function, types.FunctionType):
            id_ = self.frontend.operator(function)
            return self.wrap(function, None) if id_ is not None else UserFunctionVariable(function)
        if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            id_ = self.frontend.operator(function)
            return MethodDescriptorVariable(function) if id_ is None else self.wrap(function, None)
        return self.wrap(function, None)

    def _member_value(self, tensor: TensorVariable, name: str, value: Any) -> VariableTracker:
        if not self.frontend.is_fake(value):
            return self.wrap_result(value)
        known = self.fakes.get(id(value))
        if known is not None:
            return known
        if name != "grad":
            raise Unsupported(f"attribute {name!r} of an array, which is an array the region did not make")
        node = self.output.call("grad_get", (tensor.node,), {}, self.frontend.spec(value), "grad", self.regions(), self.user_line())
        return self.from_result(value, node)

    def _stored_attribute(self, tensor: TensorVariable, name: str) -> VariableTracker:
        """An attribute that the user stored on the array object."""
        if tensor.source is not None:
            real = self.real_of(tensor)
            table = getattr(real, "__dict__", None)
            if table is not None and name in table:
                return self.wrap(table[name], Attr(tensor.source, name))
            self.guard(g.attr_present(tensor.source, name, False))
        raise self.attribute_error(tensor, name)

    def real_of(self, tensor: TensorVariable) -> Any:
        """The caller's array behind an input."""
        for value, known in self.arrays:
            if known is tensor:
                return value
        return None

    def tensor_set_attribute(self, tensor: TensorVariable, name: str, value: VariableTracker) -> bool:
        """Assign an attribute that is an operator (``x.grad = y``); False when it is an ordinary one."""
        if name == "grad":
            self.load_gradient(tensor)
        id_ = self.frontend.set_member(tensor.fake, name)
        if id_ is None:
            return False
        self.operator(id_, [tensor, value], {})
        return True

    def load_gradients(self) -> None:
        """Let every input that can receive a gradient know the one it has: a backward pass adds to it."""
        for _, tensor in list(self.arrays):
            self.load_gradient(tensor)

    def load_gradient(self, tensor: TensorVariable) -> None:
        """Make the gradient that an input has at entry known to its fake."""
        if tensor.source is None or tensor in self.with_gradient or not hasattr(self.frontend, "attach_gradient"):
            return
        self.with_gradient.add(tensor)
        real = self.real_of(tensor)
        if not self.frontend.takes_gradient(tensor.fake):
            return
        source = Grad(tensor.source)
        grad = self.frontend.gradient(real)
        found = self.wrap(grad, source)
        if isinstance(found, TensorVariable):
            self.frontend.attach_gradient(tensor.fake, found.fake)
            found.node.meta["grad_of"] = tensor.node

    def versions(self) -> None:
        """Reserved for front ends whose backward pass replaces gradients."""


def bind_arguments(tx: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Locals of a call: parameters by Python's rules.

    Raises:
        ObservedException: TypeError, when the arguments do not fit.
    """
    code = function.code
    count, kwonly = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    result: dict[str, Any] = dict(zip(names[:count], args, strict=False))
    position = count + kwonly
    if code.co_flags & inspect.CO_VARARGS:
        result[names[position]] = TupleVariable(list(args[count:]))
        position += 1
    elif len(args) > count:
        raise tx.error(TypeError, f"{code.co_qualname}() takes {count} positional arguments but {len(args)} were given")
    extra: dict[str, Any] = {}
    allowed = names[code.co_posonlyargcount : count + kwonly]
    for name, value in kwargs.items():
        if name in allowed:
            if name in result:
                raise tx.error(TypeError, f"{code.co_qualname}() got multiple values for argument {name!r}")
            result[name] = value
        else:
            extra[name] = value
    if code.co_flags & inspect.CO_VARKEYWORDS:
        result[names[position]] = tx.dict_of(extra)
    elif extra:
        raise tx.error(TypeError, f"{code.co_qualname}() got an unexpected keyword argument {next(iter(extra))!r}")
    _fill_defaults(tx, function, result, names[:count], names[count : count + kwonly])
    return result


def _fill_defaults(tx: Any, function: Any, result: dict[str, Any], positional: Any, kwonly: Any) -> None:
    missing = [n for n in positional if n not in result]
    if missing:
        defaults = function.defaults()
        first = len(positional) - len(defaults)
        for name in missing:
            index = positional.index(name) - first
            if index < 0:
                raise tx.error(
                    TypeError, f"{function.code.co_qualname}() missing 1 required positional argument: {name!r}"
                )
            result[name] = defaults[index]
    missing = [n for n in kwonly if n not in result]
    if missing:
        named = function.kwdefaults()
        for name in missing:
            if name not in named:
                raise tx.error(
                    TypeError, f"{function.code.co_qualname}() missing 1 required keyword-only argument: {name!r}"
                )
            result[name] = named[name]


def make_cells(tx: Any, frame: Frame) -> None:
    """The free variables of an inlined frame (its own cells are made by MAKE_CELL)."""
    code = frame.code
    if code.co_freevars:
        frame.cells.update(zip(code.co_freevars, frame.function.closure(tx), strict=True))


def _throw(tx: Any, frame: Frame, error: ObservedException) -> None:
    """Raise inside a suspended generator, at its yield."""
    outer, tx.frame = tx.frame, frame
    try:
        delegate = frame.stack[-1] if frame.stack and _is_delegating(frame) else None
        if delegate is not None and hasattr(delegate, "resume") and not delegate.finished:
            try:
                value = delegate.resume(tx, None, error)
            except ObservedException as inner:
                if not tx.is_exception(inner, StopIteration):
                    error = inner
                else:
                    raise Unsupported("throw() into a generator that delegates and ends") from None
            else:
                raise Unsupported("throw() into a generator that delegates") from None
            del value
        frame.unwind(error)
    finally:
        tx.frame = outer


def _is_delegating(frame: Frame) -> bool:
    return frame.started_at > 0 and frame.instructions[frame.started_at - 1].name == "SEND"


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


_OPAQUE_MODULES = frozenset(
    ("random", "logging", "warnings", "time", "datetime", "threading", "asyncio", "inspect", "lamina_dynamo", "subprocess",
     "multiprocessing", "socket", "os", "io", "pickle", "traceback", "unittest", "pytest", "_pytest", "dis", "ast")
)  # fmt: skip
_REFLECTED = {
    name: f"__r{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
} | {"lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__", "eq": "__eq__", "ne": "__ne__"}
_ = Lazy, CellVariable
