"""The frame callback: what happens on a cache miss.

A `Capture` is one `optimize` configuration. The C++ hook calls it for a frame that no entry fits; it has the frame
translated, turns the guards into a program and adds the entry, or marks the code to run in Python. It never lets a
fault of the compiler reach the user, unless asked to (`Config.strict`, `Config.fullgraph` for breaks): the frame
runs in Python then, with one warning that names the user's line.
"""

from __future__ import annotations

import itertools
import sys
import time
import traceback
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CellType, CodeType

from lamina_fx.collector import collector_paused

from . import _core
from .advice import advice
from .config import Config
from .errors import BreakReason, DynamoError, InternalError, NotResumable, Unsupported
from .events import CompileEvent, notify
from .frame_reads import reads_own_frame
from .guard import GuardSet
from .guard_program import compile_guards
from .replacement import flat_code
from .resume import is_resume_code, origin_of
from .skip import skip_reason
from .source import FrameScope
from .translate import TranslationResult, translate_frame
from .translate.state import forget_all

__all__ = ["Capture", "CaptureWarning", "EntryInfo", "reset"]


class CaptureWarning(UserWarning):
    """The compiler could not do something; the program runs on in Python and its results are right."""


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """The Python side of a cache entry.

    Its guards, to say why they fail, its number, and whether it computes anything with arrays.
    """

    guards: GuardSet
    number: int
    has_graph: bool

    def why(self, failed: int, scope: FrameScope) -> str:
        """In words, why this entry does not fit the frame."""
        return f"entry {self.number}: {self.guards[failed].explain(scope)}"


_owners = itertools.count(1)
_known: dict[int, weakref.ref[CodeType]] = {}


class Capture:
    """One configuration: a backend, a front end and settings; it owns its entries in the caches of code objects, which
    go with it.

    Args:
        backend: ``backend(graph, example_inputs, context) -> callable(*inputs) -> tuple``.
        frontend: see `lamina_dynamo.frontend.Frontend`.
        config: the settings.
    """

    __slots__ = ("__weakref__", "always", "backend", "config", "empty", "frontend", "owner")

    def __init__(self, backend: object, frontend: object, config: Config) -> None:
        self.backend = backend
        self.frontend = frontend
        self.config = config
        self.owner = next(_owners)
        self.always: set[int] = set()
        self.empty: dict[int, int] = {}
        weakref.finalize(self, _forget, self.owner).atexit = False

    def __reduce__(self) -> tuple[object, ...]:
        return Capture, (self.backend, self.frontend, self.config)

    def __call__(
        self,
        code: CodeType,
        local: dict[str, object],
        global_: dict[str, object],
        builtins: dict[str, object],
        closure: tuple[CellType, ...] | None,
        misses: Sequence[tuple[EntryInfo, int]],
    ) -> None:
        """Compile the frame.

        Called by the hook on a miss; `misses` are the entries there are and the guard that failed in each.
        """
        remember(code)
        reason = None if self._is_asked_for(code) else self._skip(code)
        if reason is not None:
            _core.skip(code, self.owner)
            return
        scope = FrameScope(local, global_, builtins, dict(zip(code.co_freevars, closure or (), strict=True)))
        reasons = tuple(info.why(failed, scope) for info, failed in misses)
        if len(misses) >= self.config.recompile_limit:
            self._limit(code, reasons, any(info.has_graph for info, _ in misses))
            return
        try:
            _refuse_readers(code, scope)
            with collector_paused:
                self._compile(code, scope, reasons)
        except NotResumable as error:
            if self.config.fullgraph:
                raise Unsupported(str(error.reason)) from error
            _core.skip(code, self.owner)
            self._notify_skipped(code, error.reason, reasons)
        except DynamoError as error:
            if self.config.fullgraph and not isinstance(error, InternalError):
                raise
            self._give_up(code, error)
        except Exception as error:  # noqa: BLE001  (whatever fails in the compiler, the program goes on in Python)
            self._give_up(code, error)

    def _is_asked_for(self, code: CodeType) -> bool:
        """Whether the frame is that of a function given to `optimize`, or goes on with one."""
        return id(origin_of(code)) in self.always

    def _gives_nothing(self, code: CodeType) -> bool:
        """Count translations without arrays.

        A helper that has had two is left to Python, instead of guarding all it reads.
        """
        if self._is_asked_for(code):
            return False
        self.empty[id(code)] = count = self.empty.get(id(code), 0) + 1
        return count > 1

    def _skip(self, code: CodeType) -> str | None:
        own = getattr(self.frontend, "skip_reason", None)
        return skip_reason(code) or (own(code) if own is not None else None)

    def _compile(self, code: CodeType, scope: FrameScope, reasons: tuple[str, ...]) -> None:
        started = time.perf_counter()
        frontend = self.frontend
        if self._is_asked_for(code) and (choose := getattr(frontend, "for_frame", None)) is not None:
            frontend = choose(code, scope.locals, scope.globals)
        result = translate_frame(
            code,
            scope.locals,
            scope.globals,
            scope.builtins,
            tuple(scope.closure.values()),
            frontend,
            self.backend,
            self.config,
        )
        goes_on = is_resume_code(code) and result.break_reason is not None  # its caller's frame captures the rest
        if result.captured is None and not goes_on and self._gives_nothing(code):
            _core.skip(code, self.owner)
            self._notify(code, result, reasons, "no arrays in it", started)
            return
        program = compile_guards(result.guards, code, result.inputs)
        info = EntryInfo(result.guards, len(_core.entries(code, self.owner)), result.captured is not None)
        flat = flat_code(result.new_code, more=bool(result.inputs))
        _core.add_entry(code, self.owner, program, result.new_code, flat, info)
        self._notify(code, result, reasons, None, started)

    def _notify(
        self, code: CodeType, result: TranslationResult, reasons: tuple[str, ...], skipped: str | None, started: float
    ) -> None:
        captured, reason = result.captured, result.break_reason
        event = CompileEvent(
            code.co_qualname,
            code.co_filename,
            code.co_firstlineno,
            is_resume_code(code),
            None if captured is None else captured.graph,
            () if reason is None else (reason,),
            result.guards,
            reasons,
            skipped,
            time.perf_counter() - started,
            tuple(result.notes),
        )
        notify(event)

    def _notify_skipped(self, code: CodeType, reason: BreakReason, reasons: tuple[str, ...]) -> None:
        where = (code.co_qualname, code.co_filename, code.co_firstlineno, is_resume_code(code))
        notify(CompileEvent(*where, None, (reason,), None, reasons, "it could not go on behind a break", 0.0))

    # ---- when it does not work out -----------------------------------------------------------------------------

    def _limit(self, code: CodeType, reasons: tuple[str, ...], has_graph: bool) -> None:
        limit = self.config.recompile_limit
        where = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
        shown = "\n  ".join(reasons)
        message = (
            f"{where} was compiled {limit} times (recompile_limit) and the arguments fit none of these:\n  {shown}\n"
            f"{advice(reasons, self.config)}"
        )
        if self.config.fullgraph:
            raise DynamoError(message)
        _core.freeze(code, self.owner)
        if has_graph:
            warnings.warn(
                f"{message} It runs in Python from now on where none fits.", CaptureWarning, stacklevel=_user_level()
            )

    def _give_up(self, code: CodeType, error: Exception) -> None:
        if self.config.strict:
            raise error
        _core.skip(code, self.owner)
        line = getattr(error, "user_line", None) or f"{code.co_filename}:{code.co_firstlineno}"
        first: BaseException = error  # what failed first, which the others were raised from
        while first.__cause__ is not None:
            first = first.__cause__
        last = traceback.extract_tb(first.__traceback__ or error.__traceback__)[-1]
        what = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
        warnings.warn(
            f"{line}: {code.co_qualname} could not be compiled and runs in Python: {what} "
            f"(at {last.filename.rpartition('/')[2]}:{last.lineno}; LAMINA_STRICT=1 raises instead)",
            CaptureWarning,
            stacklevel=_user_level(),
        )

    def unfit(self, code: CodeType, info: EntryInfo, failed: int, local: Mapping[str, object]) -> None:
        """Called by the hook when a new entry's own guards fail for the frame it was made from.

        A fault of the compiler.
        """
        guard = info.guards[failed]
        error = InternalError(f"the guard {guard} does not hold for the frame that it was made from")
        if self.config.strict:
            raise error
        _core.skip(code, self.owner)
        where = f"{code.co_filename}:{code.co_firstlineno}"
        warnings.warn(f"{where}: {error}; it runs in Python", CaptureWarning, stacklevel=_user_level())


def _refuse_readers(code: CodeType, scope: FrameScope) -> None:
    """Leave a frame that looks at its own local variables to Python, where they are what the user wrote."""
    word = reads_own_frame(code, scope.globals, scope.builtins)
    if word is not None:
        reason = f"{word}() looks at the local variables of the function, which runs in Python as a whole"
        hint = "Pass what it reads as arguments to a function of its own"
        raise NotResumable(BreakReason(reason, hint, code.co_filename, code.co_firstlineno, code.co_qualname))


def _user_level() -> int:
    """The ``stacklevel`` for ``warn``, in the function that asks, of the nearest caller outside the compiler stack."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lamina"):
        frame, level = frame.f_back, level + 1
    return level


def remember(code: CodeType) -> None:
    """Note a code object that has a cache, for `reset`."""
    if id(code) not in _known:
        key = id(code)
        _known[key] = weakref.ref(code, lambda _, key=key: _known.pop(key, None))


def _forget(owner: int) -> None:
    """Drop the entries of a capture that is gone, and with them what was compiled: nobody can call it any more."""
    for reference in list(_known.values()):
        code = reference()
        if code is not None:
            _core.forget_owner(code, owner)


def reset() -> None:
    """Drop all compiled code and marks of all functions; the next calls compile anew."""
    forget_all()
    for reference in list(_known.values()):
        code = reference()
        if code is not None:
            _core.reset_code(code)
