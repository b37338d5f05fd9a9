"""Translate a frame: attempts, each knowing where earlier ones found that the graph must end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import CellType, CodeType
from typing import Any

from lamina_fx.shared_setting import SharedSetting

from ..config import Config
from ..errors import BreakReason, DynamoError, InternalError, NotResumable, StartAgain, Unsupported
from ..output import Backend
from .finish import finish
from .frame import Frame, StopTranslation
from .result import TranslationResult
from .state import memory_of
from .translator import BreakBefore, Translator

__all__ = ["translate_frame"]

_ATTEMPTS = 50


def _raise_recursion_limit() -> int:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    return before


_deep_recursion = SharedSetting(_raise_recursion_limit, sys.setrecursionlimit)
"""Interpreting a call takes several Python frames; the limit counts those of the whole process."""


def translate_frame(
    code: CodeType,
    locals: dict[str, Any],
    globals: dict[str, Any],
    builtins: Any,
    closure: Sequence[CellType] | Mapping[str, CellType] | None,
    frontend: Any,
    backend: Backend,
    config: Config | None = None,
) -> TranslationResult:
    """Interpret a frame that has not started and write the code that replaces its own.

    Args:
        locals: the arguments by name.
        closure: the cells of the free variables, in the order of ``co_freevars`` (or by name).
        backend: compiles the captured graph; not called when there is nothing to compute.

    Raises:
        Unsupported: the graph would break, and ``config.fullgraph`` forbids it.
        NotResumable: the frame can go on behind none of its breaks; it should run in plain Python.
        InternalError: the compiler failed; so should it then.
    """
    config = config or Config()
    if isinstance(closure, Mapping):
        closure = [closure[name] for name in code.co_freevars]
    builtins = builtins if isinstance(builtins, dict) else builtins.__dict__
    breaks: dict[int, BreakReason] = {}
    sizes = getattr(frontend, "value_sizes", nullcontext)
    refused = sizes is nullcontext
    with _deep_recursion:
        for _ in range(_ATTEMPTS):
            arguments = (code, dict(locals), globals, builtins, tuple(closure or ()), frontend, config)
            try:
                with sizes(not refused):
                    result = _attempt(arguments, breaks, backend)
            except InternalError:
                if refused:
                    raise
                refused = True  # sizes that depend on values are what not everyone takes
                continue
            if result is not None:
                return result
    raise InternalError(f"no end after {_ATTEMPTS} attempts to translate {code.co_qualname}")


def _attempt(arguments: tuple[Any, ...], breaks: dict[int, BreakReason], backend: Backend) -> TranslationResult | None:
    """One attempt; None when another one is needed (``breaks`` has grown)."""
    code, frontend, config = arguments[0], arguments[5], arguments[6]
    entry_modes = {a.name: a.read() for a in frontend.ambient()}
    stopped: Frame | None = None
    try:
        tx = Translator(*arguments, memory_of(code), breaks)
        try:
            try:
                tx.root.run()
            except StopTranslation as stop:
                stopped = tx.frame = stop.frame
            return finish(tx, stopped, backend, None if stopped is None else breaks[stopped.step_at])
        except Unsupported as error:
            frame: Any = stopped or error.frame or tx.root
            tx.frame = error.frame or frame
            _record(breaks, frame.steps_to_break(), _reason(tx, error.reason, error.hint), config, error)
        except BreakBefore as error:
            _record(breaks, error.steps, _reason(tx, error.reason, ""), config, None)
        return None
    except StartAgain:
        return None
    except DynamoError:
        raise
    except Exception as error:  # a fault of ours, whatever it is: the caller goes on in Python and says so
        raise InternalError(f"{type(error).__name__}: {error} (while translating {code.co_qualname})") from error
    finally:
        for name, value in entry_modes.items():
            frontend.set_mode(name, value)


def _reason(tx: Translator, reason: str, hint: str) -> BreakReason:
    file, line, function = tx.user_line()
    return BreakReason(reason, hint, file, line, function)


def _record(
    breaks: dict[int, BreakReason], steps: Sequence[int], reason: BreakReason, config: Config, error: Unsupported | None
) -> None:
    if config.fullgraph:
        raise Unsupported(str(reason)) from error
    for step in steps:
        if step not in breaks:
            breaks[step] = reason
            return
    first = breaks[steps[-1]]
    raise NotResumable(replace(first, reason=f"{first.reason}, and the frame cannot go on behind it: {reason.reason}"))
