"""One check for arguments of public functions: what was expected and what was given, in the function's words.

>>> expect("print_graph", 3, str, "a str")
Traceback (most recent call last):
TypeError: print_graph takes a str, got int: 3

Functions that run per operator call or per node do without; it stands where a person calls.
"""

from __future__ import annotations

__all__ = ["expect", "wrong_kind"]

_SHOWN = 80


def wrong_kind(function: str, value: object, words: str) -> TypeError:
    """The error of a ``function`` that takes ``words`` ("a Graph", "a Graph as its first argument")."""
    text = repr(value)
    return TypeError(
        f"{function} takes {words}, got {type(value).__name__}: {text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''}"
    )


def expect(function: str, value: object, kind: type | tuple[type, ...], words: str) -> None:
    """Check one argument.

    Raises:
        TypeError: it is not of the kind.
    """
    if not isinstance(value, kind):
        raise wrong_kind(function, value, words)
