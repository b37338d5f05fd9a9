"""Namespaces whose members are the functions that operators name.

>>> root.zeros(2).shape
lamina.Size([2])
"""

from __future__ import annotations

from typing import Any

from .methods import function, namespace_names

__all__ = ["Namespace", "root"]


class Namespace:
    """Attribute ``x`` is the function of the spelling ``prefix.x``; looked up once, then kept."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        found = function(f"{self._prefix}.{name}" if self._prefix else name)
        if found is None:
            raise AttributeError(f"{self._prefix or 'lamina_tensor'} has no function {name!r}")
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return namespace_names(self._prefix)


root = Namespace("")
"""The package's own functions."""
