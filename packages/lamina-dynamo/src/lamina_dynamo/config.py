"""The settings of one `optimize` call: a frozen object that travels with its compiled functions.

>>> config = Config(fullgraph=True)
>>> config.replace(recompile_limit=4).recompile_limit
4
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field

__all__ = ["Config", "disabled_reason_of", "is_strict"]


def is_strict() -> bool:
    """Whether `LAMINA_STRICT=1` asks that internal failures raise instead of falling back to Python."""
    return os.environ.get("LAMINA_STRICT", "") not in ("", "0")


_DISABLED = "__lamina_disabled__"


def disabled_reason_of(function: object) -> str | None:
    """Why `disable` was used on this callable; None when it was not."""
    return (getattr(type(function), _DISABLED, False) and (getattr(function, "reason", None) or "disabled")) or None


@dataclass(frozen=True)
class Config:
    """Settings of capture.

    Attributes:
        fullgraph: a graph break is an error instead.
        dynamic: None: sizes become symbolic when a second one is seen; True: from the start, except of arrays that
            belong to a model or an optimizer (which go on as with None); False: never.
        recompile_limit: entries per code object; beyond it the frame runs in Python, and one warning says what varied.
        inline_depth: calls nested deeper than this are not inlined.
        strict: internal failures raise instead of falling back to Python.
        dynamic_integers: Python numbers become symbolic when a second value is seen.
    """

    fullgraph: bool = False
    dynamic: bool | None = None
    recompile_limit: int = 8
    inline_depth: int = 60
    strict: bool = field(default_factory=is_strict)
    dynamic_integers: bool = True

    def __post_init__(self) -> None:
        if self.dynamic not in (None, True, False):
            raise TypeError(f"dynamic is None, True or False, not {self.dynamic!r}")
        if self.recompile_limit < 1:
            raise ValueError(f"recompile_limit is at least 1, not {self.recompile_limit}")

    def replace(self, **changes: object) -> Config:
        """A copy with some settings changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    @property
    def dynamic_sizes(self) -> bool:
        """Whether sizes may become symbolic without a mark."""
        return self.dynamic is not False

    @property
    def dynamic_numbers(self) -> bool:
        """Whether Python numbers may become symbolic."""
        return self.dynamic is not False and self.dynamic_integers

    def disabled_reason(self, function: object) -> str | None:
        """Why this callable must not be traced; None when it may be."""
        return disabled_reason_of(function)
