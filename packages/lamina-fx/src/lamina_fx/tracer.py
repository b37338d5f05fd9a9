"""Trace a Python function or module by running it on proxies.

>>> def f(x, y):
...     return (x + y) * 2
>>> m = symbolic_trace(f)
>>> print(m.readable().partition("    #")[0].strip())
def forward(self, x, y):
>>> [n.name for n in m.graph.nodes], m(3, 4)
(['x', 'y', 'add', 'mul', 'output'], 14)

Control flow is followed once: a branch on a proxy is an error, loops are unrolled.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

# pyright: reportPrivateUsage=false
# (sys._getframe)

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from .builder import GraphBuilder, OperatorResolver
from .expect import wrong_kind
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Resolver
from .proxy import Attribute, Proxy
from .python_operators import WRAPPED
from .pytree import tree_leaves
from .spec import Spec

__all__ = ["Tracer", "symbolic_trace", "wrap"]


class Tracer:
    """Runs a function on proxies and keeps what they write.

    A *module* is an object whose class has ``forward`` and ``named_modules``. Calls of leaf modules become
    ``call_module`` nodes, calls of others are traced through. Override ``is_leaf_module`` to change which are leaves.

    Args:
        resolver: gives operators, so that results have specs; without one, nodes are bare.
        builder_type: what writes the nodes.
    """

    def __init__(
        self, resolver: OperatorResolver | None = None, builder_type: type[GraphBuilder] = GraphBuilder
    ) -> None:
        self.resolver = resolver
        self.builder_type = builder_type
        self.root: Any = None
        self.builder: GraphBuilder

    def is_leaf_module(self, module: Any, path: str) -> bool:
        """True for classes of the library that defines what a module is, unless they are containers."""
        base = _module_base(type(module))
        library = base.__module__.partition(".")[0] if base else ""
        children = getattr(module, "named_children", None)
        is_container = children is not None and any(True for _ in children())
        return type(module).__module__.partition(".")[0] == library and not is_container

    def trace(
        self,
        root: Any,
        concrete_args: Mapping[str, Any] | None = None,
        specs: Mapping[str, Spec] | None = None,
    ) -> Graph:
        """The graph of one run.

        Args:
            root: a function, or a module (its ``forward`` is traced).
            concrete_args: values of parameters that are not inputs of the graph.
            specs: what is known of inputs, by parameter.

        Raises:
            TypeError: a ``*args`` or ``**kwargs`` parameter without a concrete value, or an unknown name.
        """
        graph = Graph()
        machinery = {__package__, str(getattr(self.resolver, "__module__", "")).partition(".")[0]}
        self.builder = self.builder_type(graph, lambda: _user_source(machinery), resolver=self.resolver)
        is_module = _module_base(type(root)) is not None
        self.root = root if is_module else None
        function = root.forward if is_module else root
        args, kwargs = self._inputs(function, dict(concrete_args or {}), dict(specs or {}))
        graph.has_owner = is_module
        with self._intercepting_modules(root if is_module else None):
            result = function(*args, **kwargs)
        graph.output(self.builder.argument(result))
        return graph

    def _inputs(
        self, function: Callable[..., Any], concrete: dict[str, Any], specs: dict[str, Spec]
    ) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        parameters = inspect.signature(function).parameters
        for unknown in [*concrete, *specs]:
            if unknown not in parameters:
                raise TypeError(f"{_name(function)} has no parameter {unknown!r}; it has {', '.join(parameters)}")
        for p in parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                args.extend(concrete.get(p.name, ()) if p.name in concrete else self._variadic(function, p.name))
            elif p.kind is p.VAR_KEYWORD:
                kwargs.update(concrete.get(p.name, {}))
            else:
                value = concrete[p.name] if p.name in concrete else self._input(p, specs.get(p.name))
                if p.kind is p.KEYWORD_ONLY:
                    kwargs[p.name] = value
                else:
                    args.append(value)
        return args, kwargs

    def _variadic(self, function: Callable[..., Any], name: str) -> list[Any]:
        raise TypeError(f"cannot trace *{name} of {_name(function)}: give concrete_args={{{name!r}: (...)}}")

    def _input(self, parameter: inspect.Parameter, spec: Spec) -> Any:
        node = self.builder.graph.placeholder(parameter.name, spec=spec)
        if parameter.default is not parameter.empty:
            node.args = (parameter.default,)
        return self.builder.results(node, spec)

    @contextmanager
    def _intercepting_modules(self, root: Any) -> Generator[None, None, None]:
        base = _module_base(type(root))
        owner = None if root is None or base is None else next((c for c in base.__mro__ if "__call__" in vars(c)), None)
        if root is None or owner is None:
            yield
            return
        original = vars(owner)["__call__"]
        paths = {id(m): path for path, m in root.named_modules()}
        for values in (getattr(root, f"named_{kind}", None) for kind in ("parameters", "buffers")):
            if values is not None:
                self.builder.known.update({id(v): name for name, v in values()})
        tracer = self

        @functools.wraps(original)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            path = paths.get(id(module))
            if path and _has_proxy(args, kwargs) and tracer.is_leaf_module(module, path):
                return tracer.builder.create("call_module", path, args, kwargs)
            return original(module, *args, **kwargs)

        owner.__call__ = call
        try:
            yield
        finally:
            owner.__call__ = original


def symbolic_trace(
    root: Any,
    concrete_args: Mapping[str, Any] | None = None,
    *,
    specs: Mapping[str, Spec] | None = None,
    resolver: Any = None,
) -> GraphModule:
    """Trace ``root`` (see ``Tracer.trace``) and return a module that runs the graph."""
    tracer = Tracer(resolver)
    graph = tracer.trace(root, concrete_args, specs)
    run: Resolver | None = resolver
    return GraphModule(tracer.root, graph, run, getattr(root, "__name__", type(root).__name__))


def wrap(function: Any) -> Any:
    """Make a function one step of traced graphs: called on a proxy it writes a node.

    Use as a decorator, or with the name of a function that the calling module sees: ``wrap("len")``.
    The node's operator id is the function's module and name.
    """
    if isinstance(function, str):
        scope = sys._getframe(1).f_globals
        builtins = scope["__builtins__"]
        table = builtins if isinstance(builtins, dict) else vars(builtins)
        found = scope.get(function, table.get(function))
        if found is None:
            raise NameError(f"wrap: no function {function!r} in {scope.get('__name__')}")
        scope[function] = wrap(found)
        return scope[function]
    if not callable(function):
        raise wrong_kind("wrap", function, "a function or the name of one")
    id = f"{function.__module__}.{function.__qualname__}".replace(".<locals>", "")
    WRAPPED[id] = function

    @functools.wraps(function)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        proxy = _first_proxy((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.builder.create("call_function", id, args, kwargs)

    return dispatch


def _first_proxy(value: Any) -> Proxy | None:
    for leaf in tree_leaves(value):
        if isinstance(leaf, Attribute):
            return leaf.owner
        if isinstance(leaf, Proxy):
            return leaf
    return None


def _has_proxy(args: Any, kwargs: Any) -> bool:
    return _first_proxy((args, kwargs)) is not None


def _module_base(kind: type) -> type | None:
    """The class farthest up that is a module, or None."""
    found = [c for c in kind.__mro__ if hasattr(c, "named_modules") and hasattr(c, "forward")]
    return found[-1] if found else None


def _user_source(machinery: set[str | None]) -> dict[str, Any]:
    """The innermost line outside the packages ``machinery``."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in machinery:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return {}
    code = frame.f_code
    return {"source": (code.co_filename, frame.f_lineno, code.co_name)}


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
