"""Keys of compiled graphs: a hash of everything that decides what is generated.

The text form of a graph has operators, arguments, specs and source lines; what it does not show (arrays among the
attributes, ranges of size
symbols) is added. So is the code of the compiler itself: its version, and for development versions the state of its
source files.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from lamina_fx import Graph, TensorSpec
from lamina_fx.symbolic import Expr, Symbol

__all__ = ["compiler_version", "graph_key"]

_PACKAGES = ("lamina_inductor", "lamina_prims", "lamina_fx")


def graph_key(graph: Graph, options: Mapping[str, Any] | None = None) -> str | None:
    """The key of ``graph`` compiled with ``options``; None when it holds something that has no stable text."""
    digest = hashlib.sha256(compiler_version().encode())
    digest.update(str(graph).encode())
    for name, value in sorted(graph.attributes.items()):
        content = _content(value)
        if content is None:
            return None
        digest.update(name.encode() + content)
    for symbol in sorted(set(_symbols(graph)), key=lambda s: s.name):
        digest.update(f"{symbol.name} {symbol.lower} {symbol.upper} {symbol.divisor}\n".encode())
    digest.update(repr(sorted((options or {}).items())).encode())
    return digest.hexdigest()


def _content(value: Any) -> bytes | None:
    if isinstance(value, Graph):
        key = graph_key(value)
        return None if key is None else key.encode()
    if hasattr(value, "tobytes") and hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype} {value.shape}".encode() + hashlib.sha256(value.tobytes()).digest()
    return repr(value).encode() if isinstance(value, (int, float, complex, str, bool, type(None))) else None


def _symbols(graph: Graph) -> Iterator[Symbol]:
    for node in graph.nodes:
        spec = node.spec
        for item in spec if isinstance(spec, tuple) else (spec,):
            if isinstance(item, TensorSpec):
                for size in (*item.shape, *item.strides):
                    expr = None if type(size) is int else getattr(size, "expr", None)
                    if isinstance(expr, Expr):
                        yield from expr.free_symbols


@functools.cache
def compiler_version() -> str:
    """Versions of the packages that decide generated code."""
    return "\n".join([_version(name) for name in _PACKAGES])


def _version(name: str) -> str:
    module = import_module(name)
    version = getattr(module, "__version__", "0")
    if ".dev" not in version or module.__file__ is None:
        return f"{name} {version}"
    digest = hashlib.sha256()
    root = Path(module.__file__).parent
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".h", ".cpp")):
        stat = path.stat()
        digest.update(f"{path.relative_to(root)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return f"{name} {version} {digest.hexdigest()[:16]}"
