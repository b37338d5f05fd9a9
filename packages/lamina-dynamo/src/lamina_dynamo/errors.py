"""What can go wrong while a frame is captured, and who sees it.

``Unsupported`` ends a graph and never reaches the user, unless ``fullgraph`` is on; ``InternalError`` lets the
frame run in plain Python with one warning.
"""

from __future__ import annotations

__all__ = ["BreakReason", "DynamoError", "InternalError", "NotResumable", "StartAgain", "Unsupported"]

from dataclasses import dataclass


class DynamoError(Exception):
    """Base of the errors of capture."""


class Unsupported(DynamoError):
    """The instruction cannot be traced: the graph breaks here.

    Attributes:
        reason: what cannot be traced, in a sentence fragment.
        hint: what the user can do about it; may be empty.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.frame: object = None
        """The symbolic frame in which it was raised."""


class StartAgain(DynamoError):
    """The translation must begin anew: what the caller's objects hold has changed meanwhile (a state was made)."""


class NotResumable(DynamoError):
    """The frame can go on behind none of its breaks: it runs in Python, and that is no fault.

    Attributes:
        reason: the break and what cannot be made again behind it.
    """

    def __init__(self, reason: BreakReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class InternalError(DynamoError):
    """A fault of the compiler itself; the frame runs in plain Python."""


@dataclass(frozen=True)
class BreakReason:
    """One graph break: why, and the user's line that caused it (in a callee, when one was being inlined)."""

    reason: str
    hint: str
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        text = f"{self.file}:{self.line} in {self.function}: {self.reason}"
        return f"{text}. {self.hint}" if self.hint else text
