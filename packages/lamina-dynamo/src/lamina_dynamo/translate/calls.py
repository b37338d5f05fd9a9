"""Calls: binding arguments, inlining Python functions, generators, built-in functions, the front end's operators."""

from __future__ import annotations

import builtins
import inspect
import types
from typing import Any

from .. import _core
from .. import guard as g
from ..errors import BreakReason, NotResumable, StartAgain, Unsupported
from ..frame_reads import reads_callers_variables, reads_own_frame
from ..variables import (
    BuiltinVariable,
    ConstantVariable,
    GeneratorVariable,
    ObservedException,
    OpaqueVariable,
    TailVariable,
    TensorVariable,
    UserFunctionVariable,
    UserObjectVariable,
    VariableTracker,
)  # fmt: skip
from .arguments import bind_arguments, make_cells
from .array_attributes import ArrayAttributes
from .builtin_rules import CLASS_RULES, FUNCTION_RULES
from .frame import YIELDED, Frame
from .gradient_hooks import GradientHooks
from .operator_calls import OperatorCalls
from .polyfills import BY_FUNCTION, BY_NAME, ORIGINALS

__all__ = ["Calls"]

_PURE_MODULES = frozenset(
    (
        "math",
        "_operator",
        "builtins",
        "cmath",
        "_functools",
        "itertools",
        "_struct",
        "_bisect",
        "unicodedata",
        "_string",
    )
)
_IMPURE = frozenset((open, input, exec, eval, compile, __import__, breakpoint, builtins.__build_class__))
_GENERATOR, _COROUTINE = (
    inspect.CO_GENERATOR,
    inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE,
)


class Calls(OperatorCalls, ArrayAttributes, GradientHooks):
    """The part of the translator that makes calls."""

    frame: Any
    class_rules: dict[Any, Any]

    def __init__(self) -> None:
        GradientHooks.__init__(self)
        self.class_rules = dict(CLASS_RULES)
        self.polyfills: dict[str, UserFunctionVariable] = {}
        self.depth = 0
        self.region_tags: tuple[str, ...] = ()
        self.region_count = 0
        self.traces = hasattr(self.frontend, "trace")

    # -- Python functions --------------------------------------------------------------------------------

    def function_rule(
        self, function: UserFunctionVariable, args: list[Any], kwargs: dict[str, Any]
    ) -> VariableTracker | None:
        """What a function of the caller means, when it is not inlined."""
        fn = function.fn
        if fn.__name__ == "is_compiling" and (fn.__module__ or "").startswith("lamina_dynamo"):
            return ConstantVariable(True)
        mode = self.frontend.mode_function(fn)
        if mode is not None:
            return self.mode_call(mode, args)
        special = self.frontend.function_rule(fn)
        if special is not None and special[0] == "constant":
            return self.call_constant_maker(fn, args, kwargs)
        if special is not None and special[0] == "prepare":
            self._prepare(fn, args)
        elif special is not None:
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
        if kind == "class":
            return self.custom_function(word, args, kwargs)
        self.region_count += 1
        outer = self.region_tags
        self.region_tags = (*outer, f"{word}:{self.region_count - 1}")
        self.direct_call = False
        try:
            named = {k: v for k, v in kwargs.items() if k not in ("use_reentrant", "preserve_rng_state")}
            return args[0].call(self, args[1:], named)
        finally:
            self.region_tags = outer

    def call_constant_maker(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """A call whose result depends on its arguments only and never changes."""
        result = self.call_native(function, args, kwargs)
        real = result.real if isinstance(result, UserObjectVariable) else None
        return result if real is None else OpaqueVariable(real)

    def _prepare(self, function: Any, args: list[Any]) -> None:
        """Let the front end make now, outside of the graph, what the call would make in the first call only."""
        real = getattr(args[0], "real", None) if args else None
        if real is None or args[0].source is None:
            return

        def known(value: Any) -> Any:
            """What the region made of an object of the caller: a fake, True for others that it has read, or None."""
            tracker = self.seen.get(id(value), (None, None))[1]
            if isinstance(tracker, TensorVariable):
                self.load_gradient(tracker)
                return tracker.fake
            return None if tracker is None else True

        if self.frontend.prepare(function, real, known):
            raise StartAgain(f"{function.__qualname__} was prepared")

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
        if function.source is not None or type(function) is not UserFunctionVariable:
            self._refuse_readers(code, function.globals)
        direct, self.direct_call = self.direct_call, False
        frame = Frame(self, function, bind_arguments(self, function, args, kwargs), self.frame)
        frame.is_direct = direct and (self.frame.parent is None or self.frame.is_direct)
        make_cells(self, frame)
        if code.co_flags & _GENERATOR:
            frame.is_direct = False  # what the call gives is the generator, not the frame's result
            return GeneratorVariable(frame, (function, args, kwargs), self.root.step_at)
        self.depth += 1
        try:
            frame.run()
        finally:
            self.depth -= 1
        return frame.result

    def _refuse_readers(self, code: types.CodeType, globals: dict[str, Any]) -> None:
        """End the graph before a call that looks at its own variables; give up where it looks at its callers'."""
        names = vars(builtins)
        if word := reads_callers_variables(code, globals, names):
            reason = f"{code.co_qualname} looks at the variables of its callers with {word}()"
            raise NotResumable(BreakReason(reason, "", *self.user_line()))
        if word := reads_own_frame(code, globals, names):
            raise Unsupported(f"{code.co_qualname}, which looks at its own frame with {word}()")

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
                _throw(self, frame, thrown)
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

    def original_of(self, function: Any) -> Any:
        """The C function or class that one of our own functions stands for; None for other functions."""
        return ORIGINALS.get(function.fn) if isinstance(function, UserFunctionVariable) else None

    # -- C functions -------------------------------------------------------------------------------------

    def builtin(self, function: Any) -> BuiltinVariable:
        """A C function as a value."""
        return BuiltinVariable(function)

    def call_builtin(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        """Call a function that C code implements."""
        if function is _core.finish_resume:  # what a resume function does first: go on in the callee that broke
            return args[0].run(self) if isinstance(args[0], TailVariable) else args[0]
        self.direct_call = False
        if isinstance(function, types.FunctionType):
            return self.wrap(function, None).call(self, args, kwargs)
        rule = FUNCTION_RULES.get(function) if _hashable(function) else None
        if rule is not None:
            return rule(self, *args, **kwargs)
        mode = self.frontend.mode_function(function)
        if mode is not None:
            return self.mode_call(mode, args)
        if self._makes_constants(function):
            return self.call_constant_maker(function, args, kwargs)
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
        if function is builtins.__build_class__:
            raise Unsupported("a class statement")
        name = getattr(function, "__qualname__", repr(function))
        raise Unsupported(
            f"call of {getattr(function, '__module__', None) or ''}.{name}, which C code implements".replace(
                "of .", "of "
            )
        )

    def _makes_constants(self, function: Any) -> bool:
        if isinstance(type(function).__hash__, types.FunctionType):  # an object of the user's
            return False
        rule = self.frontend.function_rule(function)
        return rule is not None and rule[0] == "constant"

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

    # -- arrays ------------------------------------------------------------------------------------------


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
    ("random", "logging", "warnings", "time", "datetime", "threading", "asyncio", "inspect", "lamina_dynamo",
    "subprocess",
     "multiprocessing", "socket", "os", "io", "pickle", "traceback", "unittest", "pytest", "_pytest", "dis", "ast")
)  # fmt: skip
