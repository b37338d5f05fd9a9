"""What to do about a function that is compiled again and again, by what varied."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .config import Config

__all__ = ["advice"]

_VALUE = re.compile(r"^entry \d+: (?P<source>.+?) == .+?, but it is (?P<value>.+)$", re.DOTALL)
_ARRAY = re.compile(r"^entry \d+: (?P<source>\S+?): \w+\[.*\].*, but it is (?P<value>\w+\[.*\].*)$")
_LIMIT = "or raise the limit: compile(..., recompile_limit=...)."


def advice(reasons: Sequence[str], config: Config) -> str:
    """One sentence that fits the newest reason (the first one): what varied, and what helps there.

    >>> print(advice(["entry 1: L['mode'] == 'b', but it is 'c'"], Config()))
    mode changes from call to call (a str is part of the program): pass fewer different values, or raise the limit: \
compile(..., recompile_limit=...).
    """
    newest = reasons[0] if reasons else ""
    found = _VALUE.match(newest)
    if found is not None:
        return _of_value(_plain(found["source"]), found["value"], config)
    found = _ARRAY.match(newest)
    if found is not None:
        return _of_array(_plain(found["source"]), config)
    return f"Keep constant what varies, {_LIMIT}"


def _of_value(source: str, value: str, config: Config) -> str:
    if re.fullmatch(r"-?\d+", value):
        if config.dynamic is False:
            return (
                f"{source} is an int that changes from call to call, and dynamic=False compiles for each value: leave "
                f"dynamic out, so that it becomes symbolic, {_LIMIT}"
            )
        return (
            f"{source} is an int that changes from call to call, and the program needs its value (it decides what "
            f"runs): pass it as a tensor where it only enters arithmetic, {_LIMIT}"
        )
    if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?|-?inf|nan", value):
        return f"{source} is a float that changes from call to call: pass it as a tensor, {_LIMIT}"
    kind = "str" if value[:1] in "'\"" else "value"
    return (
        f"{source} changes from call to call (a {kind} is part of the program): pass fewer different values, {_LIMIT}"
    )


def _of_array(source: str, config: Config) -> str:
    if config.dynamic is False:
        return (
            f"{source} changes from call to call, and dynamic=False compiles for each size: leave dynamic out, or call "
            f"mark_dynamic({source}, dim) for a size that varies, {_LIMIT}"
        )
    return (
        f"{source} changes from call to call: call mark_dynamic({source}, dim) for a size that varies and keep the "
        f"dtype and the number of dimensions, {_LIMIT}"
    )


def _plain(source: str) -> str:
    """A local variable by its own name: ``L['n']`` is ``n``."""
    return re.sub(r"^L\['(\w+)'\]", r"\1", source)
