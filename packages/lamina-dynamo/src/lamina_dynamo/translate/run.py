"""Translate a frame: attempts, each knowing where earlier ones found that the graph must end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import CellType, CodeType
from typing import Any

from ..config import Config
from ..errors import BreakReason, DynamoError, InternalError, Unsupported
from ..output import Backend
from .finish import finish
from .result import TranslationResult
from .state import memory_of
from .translator import BreakBefore, Translator

__all__ = ["translate_frame"]

_ATTEMPTS = 50


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
        InternalError: the compiler failed; the frame should run in plain Python.
    """
    config = config or Config()
    if isinstance(closure, Mapping):
        closure = [closure[name] for name in code.co_freevars]
    builtins = builtins if isinstance(builtins, dict) else builtins.__dict__
    breaks: dict[int, BreakReason] = {}
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))
    try:
        for _ in range(_ATTEMPTS):
            arguments = (code, dict(locals), globals, builtins, tuple(closure or ()), frontend, config)
            result = _attempt(arguments, breaks, backend)
            if result is not None:
                return result
    finally:
        sys.setrecursionlimit(limit)
    raise InternalError(f"no end after {_ATTEMPTS} attempts to translate {code.co_qualname}")


def _attempt(arguments: tuple[Any, ...], breaks: dict[int, BreakReason], backend: Backend) -> TranslationResult | None:
    """One attempt; None when another one is needed (``breaks`` has grown)."""
    code, frontend, config = arguments[0], arguments[5], arguments[6]
    entry_modes = {a.name: a.read() for a in frontend.ambient()}
    try:
        tx = Translator(*arguments, memory_of(code), breaks)
        try:
            status = tx.root.run_root()
            reason = breaks.get(tx.step) if status == "break" else None
            return finish(tx, status, backend, reason)
        except Unsupported as error:
            file, line, function = tx.user_line()
            _record(breaks, tx.step, BreakReason(error.reason, error.hint, file, line, function), config, error)
        except BreakBefore as error:
            file, line, function = tx.user_line()
            _record(breaks, error.step, BreakReason(error.reason, "", file, line, function), config, None)
        finally:
            tx.shape_env.where = None  # backends keep the environment: it must not keep the translation
        return None
    except DynamoError:
        raise
    except Exception as error:
        raise InternalError(f"{type(error).__name__}: {error} (while translating {code.co_qualname})") from error
    finally:
        for name, value in entry_modes.items():
            frontend.set_mode(name, value)


def _record(
    breaks: dict[int, BreakReason], step: int, reason: BreakReason, config: Config, error: Unsupported | None
) -> None:
    if config.fullgraph:
        raise Unsupported(str(reason)) from error
    if step in breaks:
        raise InternalError(f"the frame cannot be rebuilt at the break ({breaks[step]}): {reason}")
    breaks[step] = reason
