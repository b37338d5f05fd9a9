"""The state of one attempt to translate a frame, and the services that trackers and handlers use."""

from __future__ import annotations

import builtins as python_builtins
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from lamina_fx.symbolic import ShapeEnv

from ..config import Config
from ..errors import Unsupported
from ..guard import Ambient, GuardSet, ambient_is
from ..output import OutputGraph
from ..side_effects import SideEffects
from ..source import FrameScope, FreeCell, Global, Local, Module, chain
from ..variables import FunctionVariable, Lazy, TensorVariable, VariableTracker
from ..variables.exceptions import HANDLED_AT_ENTRY
from .calls import Calls
from .frame import Frame
from .natives import Natives
from .operations import Operations
from .state import FrameMemory
from .wrapping import Wrapping

__all__ = ["BreakBefore", "RootFunction", "Translator"]


class BreakBefore(Exception):
    """The graph must end before an earlier step: what that step made cannot be rebuilt."""

    def __init__(self, steps: Sequence[int], reason: str) -> None:
        super().__init__(reason)
        self.steps = steps
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Deferred:
    """A call that is made after the graph: the function, its arguments, the user's line, the step it stands at."""

    function: Any
    args: list[Any]
    kwargs: dict[str, Any]
    line: int
    step: int


class RootFunction(FunctionVariable):
    """The function whose frame is translated: its globals are the frame's."""

    __slots__ = ("code", "globals")

    def __init__(self, code: CodeType, globals_: dict[str, Any]) -> None:
        self.source = None
        self.code = code
        self.globals = globals_

    def global_source(self, name: str) -> Any:
        """A global of the frame."""
        return Global(name)


class Translator(Wrapping, Operations, Natives, Calls):
    """One attempt. ``breaks`` maps the steps where the graph must end to the reasons, from earlier attempts."""

    def __init__(
        self, code: CodeType, locals_: dict[str, Any], globals_: dict[str, Any], builtins: dict[str, Any],
        closure: tuple[CellType, ...], frontend: Any, config: Config, memory: FrameMemory, breaks: dict[int, Any],
    ) -> None:  # fmt: skip
        self.code = code
        self.builtins = builtins
        self.frontend = frontend
        self.config = config
        self.memory = memory
        self.scope = FrameScope(locals_, globals_, builtins, dict(zip(code.co_freevars, closure or (), strict=True)))
        self.breaks = breaks
        self.step = 0
        self.direct_call = False
        self.deferred: list[Deferred] = []
        self.guards = GuardSet()
        self.output = OutputGraph()
        self.side_effects = SideEffects()
        self.shape_env = ShapeEnv(self.line_text)
        self.shape_env_ints: dict[Any, Any] = {}
        self.bounded_symbols: list[Any] = []
        self.handled: Any = HANDLED_AT_ENTRY
        self.class_guards: set[tuple[type, str]] = set()
        self.arrays: list[tuple[Any, TensorVariable]] = []
        self.writes: list[tuple[Any, list[int]]] = []
        self.births: dict[int, list[int]] = {}
        self.retained: list[tuple[Any, list[int]]] = []
        self.leaves: list[tuple[Any, list[int]]] = []
        self.with_gradient: set[TensorVariable] = set()
        self.host_inputs: dict[int, Any] = {}
        self.global_cache: dict[tuple[int, str], VariableTracker] = {}
        Wrapping.__init__(self)
        Calls.__init__(self)
        self.modes = self._enter_modes()
        self.root = self._root_frame(locals_, globals_, closure)
        self.frame = self.root

    def _enter_modes(self) -> dict[str, Any]:
        modes = {}
        for ambient in self.frontend.ambient():
            assert isinstance(ambient, Ambient)
            value = ambient.read()
            modes[ambient.name] = value
            self.guards.add(ambient_is(ambient, value))
        return modes

    def _root_frame(self, locals_: dict[str, Any], globals_: dict[str, Any], closure: tuple[CellType, ...]) -> Frame:
        function = RootFunction(self.code, globals_)
        values = {name: Lazy(value, Local(name)) for name, value in locals_.items() if name in self.code.co_varnames}
        frame = Frame(self, function, values, None)
        for name, cell in zip(self.code.co_freevars, closure, strict=True):
            frame.cells[name] = self.wrap_cell(cell, FreeCell(name))
        return frame

    # -- where we are --------------------------------------------------------------------------------------

    def user_line(self) -> tuple[str, int, str]:
        """File, line and function of the user's code that runs: not one of our polyfills, nor of the front end."""
        frame: Any = self.frame
        ours = (_POLYFILLS, *getattr(self.frontend, "folders", ()))
        while frame.parent is not None and frame.code.co_filename.startswith(ours):
            frame = frame.parent
        return frame.code.co_filename, frame.line, frame.code.co_qualname

    def line_text(self) -> str:
        """``file:line``."""
        file, line, _ = self.user_line()
        return f"{file}:{line}"

    # -- namespaces ----------------------------------------------------------------------------------------

    def builtins_of(self, table: dict[str, Any]) -> dict[str, Any]:
        """The builtins that a module's globals fall back to."""
        found = table.get("__builtins__", python_builtins)
        return found if isinstance(found, dict) else found.__dict__

    def builtins_source(self) -> Any:
        """Where the builtins are, for functions of other modules."""
        from ..source import Attr

        return Attr(Module("builtins"), "__dict__")

    def module_attribute(self, module: Any, name: str) -> VariableTracker:
        """``module.name``."""
        from ..guard import attr_present
        from ..source import Attr, InstanceAttr

        value = module.value
        table = value.__dict__
        stored, assigned = self.side_effects.load_global(table, name)
        if stored and assigned is not None:
            return assigned
        cached = self.global_cache.get((id(table), name))
        if cached is not None:
            return cached
        if name in table:
            source = module.source and InstanceAttr(module.source, name)
            found = self.wrap(table[name], source)
            self.global_cache[id(table), name] = found
            return found
        try:
            found_value = getattr(value, name)
        except AttributeError as error:
            if module.source is not None:
                self.guard(attr_present(module.source, name, False))
            raise self.observed(error) from None
        return self.wrap(found_value, module.source and Attr(module.source, name))

    # -- output ----------------------------------------------------------------------------------------

    def defer(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Call a function of this kind (``print``) after the graph has run: its arguments cannot change until then."""
        frame = self.frame
        step = frame.step_at if frame.parent is None or frame.is_direct else self.root.step_at
        self.deferred.append(Deferred(function, args, kwargs, frame.line, step))

    def note_write(self, target: Any) -> None:
        """Remember where a fake was written: which memory, and the steps before which the graph may end."""
        key_of = getattr(self.frontend, "memory_key", None)
        self.writes.append((None if key_of is None else key_of(target), self.frame.steps_to_break()))

    def writing(self) -> None:
        """Say that arrays are about to change: what is still to be printed of them must be printed before."""
        for call in self.deferred:
            if any(isinstance(a, TensorVariable) for a in call.args):
                self.break_before(call.step, "print() of an array that may be changed later")

    # -- ends of loops -------------------------------------------------------------------------------------

    def end_for(self, frame: Frame, ins: Any) -> None:
        """FOR_ITER's iterator is used up."""
        if sys.version_info >= (3, 14):
            frame.ip = ins.target + 1
            return
        frame.stack.pop()
        frame.ip = ins.target + _AFTER_FOR

    def end_send(self, frame: Frame, ins: Any, value: VariableTracker) -> None:
        """SEND's receiver has returned."""
        if sys.version_info >= (3, 12):
            frame.stack.append(value)
        else:
            frame.stack[-1] = value
        frame.ip = ins.target

    def stop_value(self, error: Any) -> VariableTracker:
        """The value that a StopIteration carries."""
        return error.variable.generic_getattr(self, "value")

    # -- breaking ------------------------------------------------------------------------------------------

    def break_before(self, step: int, reason: str) -> None:
        """End the graph before an earlier step, in another attempt."""
        raise BreakBefore([step], reason)

    def break_at(self, steps: Sequence[int], reason: str) -> None:
        """The same, with a choice of steps, best first."""
        raise BreakBefore(steps, reason)

    def annotations_dict(self, value: VariableTracker) -> VariableTracker:
        """The annotations of a function made in the region."""
        raise Unsupported("the annotations of a function made in the region")


_AFTER_FOR = 2 if sys.version_info >= (3, 13) else 1 if sys.version_info >= (3, 12) else 0
_POLYFILLS = __file__.replace("translator.py", "polyfills.py")
_ = FunctionType, chain
