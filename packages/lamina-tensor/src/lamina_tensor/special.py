"""The namespace ``special``: functions that operators name ``special.x``."""

from __future__ import annotations

from typing import Any

from .methods import function, namespace_names


def __getattr__(name: str) -> Any:
    found = function(f"special.{name}")
    if found is None:
        raise AttributeError(f"special has no function {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *namespace_names("special")})
