"""How a module of handlers makes its part of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["new_table"]


def new_table() -> tuple[dict[str, Any], Callable[..., Any]]:
    """A table, and the decorator that puts a handler in it under the names of its instructions."""
    table: dict[str, Any] = {}

    def opcode(*names: str) -> Callable[[Any], Any]:
        def register(handler: Any) -> Any:
            for name in names:
                table[name] = handler
            return handler

        return register

    return table, opcode
