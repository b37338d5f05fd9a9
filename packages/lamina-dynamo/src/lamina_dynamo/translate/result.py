"""What translating a frame gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType

from ..errors import BreakReason
from ..guard import GuardSet
from ..output import CapturedGraph
from ..source import Source

__all__ = ["TranslationResult"]


@dataclass(frozen=True)
class TranslationResult:
    """New code for the frame and the guards under which it is valid.

    ``captured`` is None when the region computes nothing with arrays. ``break_reason`` is None when the whole
    function was captured. ``inputs``: what the new code wants from the guards, which have read it, as a tuple in its
    first variable behind the arguments (none: it has no such variable).
    """

    new_code: CodeType
    guards: GuardSet
    captured: CapturedGraph | None
    break_reason: BreakReason | None = None
    notes: list[str] = field(default_factory=list)
    inputs: tuple[Source, ...] = ()
