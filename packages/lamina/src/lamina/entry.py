"""``lamina.compile``: the decorator that users put on a function or a module."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

import lamina_dynamo
from lamina_tensor.nn import Module

from .backends import Backend, backend_of
from .wiring import GraphCompiler, check_interfaces

__all__ = ["compile"]

F = TypeVar("F", bound=Callable[..., Any])
_checked: list[bool] = []
_MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"cuda_graphs": True},
    "max-autotune": {"max_autotune": True},
}
"""Mode -> options, of which a backend takes those that it has."""


@overload
def compile(model: F, **options: Any) -> F: ...
@overload
def compile(model: None = None, **options: Any) -> Callable[[F], F]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Backend | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    memory_budget: float = 1.0,
    recompile_limit: int = 8,
    disable: bool = False,
) -> Any:
    """Compile a function or a module; without ``model``, return a decorator.

    The bytecode is captured at the first call for inputs of a kind; later calls with such inputs run compiled code.
    What cannot be captured runs in Python between graphs, unless ``fullgraph`` is set, which raises instead.

    Args:
        model: the function, method or ``nn.Module``. A module stays the object it is (its ``forward`` is compiled).
        fullgraph: raise at anything that would break the graph.
        dynamic: True: sizes are symbolic from the first call, but for 0, 1, and those of parameters, buffers and
            optimizers' state; False: never; None: a size that changes becomes symbolic.
        backend: a name from ``lamina.compiler.list_backends()`` or an object with the ``Backend`` protocol; None:
            ``cpp`` for graphs of CPU tensors, ``triton`` for graphs of CUDA tensors.
        mode: ``None`` or ``"default"``; ``"reduce-overhead"``: programs on a GPU run as CUDA graphs even where inputs
            or results must be copied for it (on the CPU nothing changes); ``"max-autotune"``: tiles of products,
            attention and convolutions on a GPU are chosen by measuring, within a time budget, and remembered on disk.
            Other modes are refused, not ignored.
        options: passed to the backend.
        memory_budget: share in [0, 1] of the values for the backward that may be kept; the rest is computed again.
        recompile_limit: how often one function is compiled for inputs of other kinds; beyond it, calls that fit none
            of these run in Python, and one warning says what varied (with ``fullgraph``: an error).
        disable: return ``model`` unchanged. ``LAMINA_DISABLE=1`` in the environment does so everywhere.

    Raises:
        TypeError, ValueError: arguments of the wrong kind; the message says what was expected.
    """
    _check_arguments(fullgraph, dynamic, mode, options, memory_budget)
    if type(recompile_limit) is not int or recompile_limit < 1:
        raise ValueError(f"recompile_limit must be an int of at least 1, got {recompile_limit!r}")
    made = backend_of(backend)
    if model is None:
        return lambda fn: compile(
            fn,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=made,
            mode=mode,
            options=options,
            memory_budget=memory_budget,
            recompile_limit=recompile_limit,
            disable=disable,
        )
    if not callable(model) or isinstance(model, type):
        raise TypeError(f"compile() takes a function or a module, got {type(model).__name__}: {model!r}")
    preferred = _MODES[mode or "default"]
    compiler = GraphCompiler(made, memory_budget=memory_budget, options=options, preferred=preferred)
    if disable or os.environ.get("LAMINA_DISABLE", "").lower() in ("1", "yes", "true", "on"):
        return model
    if not _checked:
        check_interfaces()
        _checked.append(True)
    return _optimize(model, compiler, fullgraph=fullgraph, dynamic=dynamic, recompile_limit=recompile_limit)


def _check_arguments(fullgraph: Any, dynamic: Any, mode: Any, options: Any, memory_budget: Any) -> None:
    if mode is not None and mode not in _MODES:
        raise ValueError(f"unknown mode {mode!r}; there are: {', '.join(map(repr, _MODES))}")
    if dynamic is not None and type(dynamic) is not bool:
        raise TypeError(f"dynamic must be True, False or None, got {dynamic!r}")
    if type(fullgraph) is not bool:
        raise TypeError(f"fullgraph must be True or False, got {fullgraph!r}")
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"options must be a dict of the backend's options or None, got {options!r}")
    if isinstance(memory_budget, bool) or not isinstance(memory_budget, int | float):
        raise TypeError(f"memory_budget must be a number between 0 and 1, got {memory_budget!r}")
    if not 0.0 <= memory_budget <= 1.0:
        raise ValueError(f"memory_budget must be between 0 and 1, got {memory_budget}")


def _optimize(model: Any, compiler: GraphCompiler, **settings: Any) -> Any:
    from .frontend import LaminaFrontend  # loads the whole eager layer's operator tables

    optimize = lamina_dynamo.optimize(compiler, LaminaFrontend(), **settings)
    if isinstance(model, Module):
        model.forward = optimize(model.forward)
        return model
    return optimize(model)
