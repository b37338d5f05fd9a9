"""Lamina: a compiler stack for tensor programs in Python.

The names are PyTorch's: ``import lamina as torch`` runs ordinary model code, and ``lamina.compile`` makes it fast.
"""

from __future__ import annotations

from typing import Any

import lamina_tensor
from lamina_tensor import *  # noqa: F403

from . import aliases

aliases.install()

__version__ = "0.1.0.dev0"

_LAZY = {
    "compile": "entry",
    "explain": "explanation",
    "get_num_threads": "threads",
    "set_num_threads": "threads",
}
_TOP = [name.removeprefix("lamina.") for name in aliases.ALIASES if name.count(".") == 1]
_MODULES = frozenset(("backends", "compiler", *_TOP))


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        value = getattr(import_module(f"lamina.{_LAZY[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"lamina.{name}")
    else:
        try:
            value = getattr(lamina_tensor, name)
        except AttributeError:
            raise AttributeError(f"module 'lamina' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(lamina_tensor), *_LAZY, *_MODULES})
