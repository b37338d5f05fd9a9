"""Compiled callables: `optimize`, `disable`, and what they return.

A compiled callable is a small C object that switches capture on, calls the original function, and switches it back:
the frame hook then finds or makes the compiled code. It has the original's name, signature and documentation, binds
as a method, pickles and copies.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeVar

from . import _core
from .capture import Capture, remember
from .config import Config

__all__ = ["CompiledFunction", "DisabledFunction", "disable", "optimize"]

T = TypeVar("T")


os.register_at_fork(after_in_child=_core.after_fork_in_child)


class _Wrapper(_core.Switch):
    """Looks like the function it wraps."""

    __slots__ = ()

    def _look_like(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<{self._word} {self.function!r}>"

    def __deepcopy__(self, memo: dict[int, object]) -> _Wrapper:
        if isinstance(self.function, FunctionType):
            return self  # functions are copied by reference, and so is this
        return self._again(copy.deepcopy(self.function, memo))

    def __copy__(self) -> _Wrapper:
        return self

    def _again(self, function: Callable[..., Any]) -> _Wrapper:
        raise NotImplementedError

    def _global_name(self) -> str | None:
        """Where the wrapper itself is found by name, as for a decorated function of a module."""
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        found: object = sys.modules.get(module or "")
        for part in (name or "").split("."):
            found = getattr(found, part, None)
        return name if found is self else None


@_core.has_vectorcall
class CompiledFunction(_Wrapper):
    """What `optimize` returns for a function: call it like the function.

    Attributes:
        function: the original.
        capture: the configuration that compiles it.
    """

    _word = "compiled"

    def __init__(self, function: Callable[..., Any], capture: Capture) -> None:
        super().__init__(function, capture, capture.owner)
        self._look_like(function)
        self.capture = capture

    def _again(self, function: Callable[..., Any]) -> CompiledFunction:
        return CompiledFunction(function, self.capture)

    def __reduce__(self) -> str | tuple[object, ...]:
        return self._global_name() or (CompiledFunction, (self.function, self.capture))


@_core.has_vectorcall
class DisabledFunction(_Wrapper):
    """What `disable` returns: nothing below it is captured, and a call of it is a graph break."""

    _word = "not captured"
    __lamina_disabled__ = True

    def __init__(self, function: Callable[..., Any], reason: str = "") -> None:
        super().__init__(function)
        self._look_like(function)
        self.reason = reason

    def _again(self, function: Callable[..., Any]) -> DisabledFunction:
        return DisabledFunction(function, self.reason)

    def __reduce__(self) -> str | tuple[object, ...]:
        return self._global_name() or (DisabledFunction, (self.function, self.reason))


def optimize(
    backend: object, frontend: object, *, config: Config | None = None, **settings: object
) -> Callable[[T], T]:
    """A decorator that captures what runs below a callable into graphs.

    Args:
        backend: ``backend(graph, example_inputs, context)`` returns the compiled graph: ``callable(*inputs) -> tuple``.
        frontend: the array library, see `lamina_dynamo.frontend.Frontend`.
        config: all settings; or give single ones by keyword:
        settings: fields of `Config`, such as ``fullgraph=True``, ``dynamic=True``, ``recompile_limit=4``.

    Returns:
        A function from callables to compiled callables. A function or method gives a `CompiledFunction`; an object with
        `__call__` gives an object of the same class and with the same attributes whose call is compiled.

    Raises:
        TypeError: the backend or, later, the decorated object is not callable, or there is no such setting.
    """
    if not callable(backend):
        raise TypeError(f"the backend must be callable: backend(graph, example_inputs, context); got {backend!r}")
    made = (config or Config()).replace(**settings) if settings else config or Config()
    capture = Capture(backend, frontend, made)

    def compile_callable(target: T) -> T:
        return _compiled(target, capture)  # type: ignore[return-value]

    return compile_callable


def _compiled(target: object, capture: Capture) -> object:
    if isinstance(target, type) or not callable(target):
        raise TypeError(f"expected a function or an object with __call__, got {target!r}")
    if isinstance(target, _Wrapper):
        target = target.function
    code = _code_of(target)
    if code is not None:
        capture.always.add(id(code))
        remember(code)
        return CompiledFunction(target, capture)  # type: ignore[arg-type]
    call = getattr(type(target), "__call__", None)  # noqa: B004  (the function itself is wanted)
    if isinstance(call, FunctionType) and hasattr(target, "__dict__"):
        capture.always.add(id(call.__code__))
        return _compiled_object(target, capture)
    return CompiledFunction(target, capture)  # type: ignore[arg-type]


def _code_of(target: object) -> CodeType | None:
    if isinstance(target, MethodType):
        target = target.__func__
    return target.__code__ if isinstance(target, FunctionType) else None


def _compiled_object(target: Any, capture: Capture) -> object:
    """An object that is the target in all but its call.

    Same attributes (the very same dict), class name, keys, pickle.
    """
    cls = type(target)
    bound = MethodType(cls.__call__, target)
    body = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__call__": staticmethod(CompiledFunction(bound, capture)),
        "__reduce_ex__": lambda self, protocol: (_itself, (target,)),
        "__deepcopy__": lambda self, memo: _compiled_object(copy.deepcopy(target, memo), capture),
        "__signature__": _signature(bound),
    }
    if "__slots__" in cls.__dict__:
        body["__slots__"] = ()
    made_class = type(cls)(cls.__name__, (cls,), body)
    made = object.__new__(made_class)
    object.__setattr__(made, "__dict__", target.__dict__)
    return made


def _itself(target: object) -> object:
    """A compiled object is pickled as the original."""
    return target


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def disable(function: Callable[..., Any] | None = None, *, reason: str = "") -> Any:
    """Do not capture this callable, nor anything it calls; as a decorator with or without arguments.

    A compiled function that calls it has a graph break there.
    """
    if function is None:
        return functools.partial(disable, reason=reason)
    if isinstance(function, CompiledFunction):
        function = function.function
    if not callable(function):
        raise TypeError(f"disable expects a callable, got {function!r}")
    return DisabledFunction(function, reason)
