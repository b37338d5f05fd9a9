"""The end of a translation: which values live on, the call of the graph, side effects, and the end of the new code."""

from __future__ import annotations

from typing import Any

from .._core import uncaptured
from ..emit import Constant, Emitter
from ..errors import BreakReason
from ..output import CaptureContext, CapturedGraph
from ..resume import continue_with_call, push_resume_call, run_natively
from ..source import Local, Source
from ..variables import (
    CellVariable,
    TensorVariable,
)  # fmt: skip
from ..variables.exceptions import HANDLED_AT_ENTRY
from . import making
from .effects import EffectWriter
from .frame_parts import NULL
from .graph_inputs import fetched_inputs
from .input_guards import add_alias_guards, add_shape_guards, add_symbol_inputs
from .leaves import check_leaves, new_leaves
from .levels import InnerFrames, Level
from .reachable import reachable
from .rebuild import Rebuilder
from .result import TranslationResult

__all__ = ["finish"]


def finish(tx: Any, stopped: Any, backend: Any, reason: BreakReason | None) -> TranslationResult:
    """Write the new code of a frame that returned (``stopped`` None), or that stops in front of an instruction of
    ``stopped``: the frame itself or one that it inlines.
    """
    return _Finish(tx, stopped, backend, reason).result()


class _Finish(InnerFrames):
    def __init__(self, tx: Any, stopped: Any, backend: Any, reason: BreakReason | None) -> None:
        self.tx = tx
        self.frame = tx.root
        self.backend = backend
        self.reason = reason
        self.returns = stopped is None
        self.emitter = Emitter(tx.code)
        self.compiled = Constant(None)
        self.levels: list[Level] = []
        self.inputs: tuple[Source, ...] = ()
        while stopped is not None:
            self.levels.insert(0, Level(stopped, not self.levels))
            stopped = stopped.parent
        self.live: dict[str, Any] = {} if self.returns else self.levels[0].live
        self.stack: list[Any] = [self.frame.result] if self.returns else self.levels[0].stack

    def result(self) -> TranslationResult:
        """Write everything."""
        tx, emitter = self.tx, self.emitter
        emitter.set_line(self.frame.line)
        effects = EffectWriter(tx)
        inner = [v for level in self.levels[1:] for v in (*level.stack, *level.live.values(), *level.cells())]
        deferred = [v for call in tx.deferred for v in call.args]
        roots = [*deferred, *self.stack, *self.live.values(), *inner, *effects.values(), *self._cell_contents()]
        outputs, cyclic, early = reachable(roots)
        check_leaves(tx, outputs)
        captured, outputs_name, rebuilder_outputs = self._graph(outputs)
        rebuilder = Rebuilder(tx, emitter, rebuilder_outputs, outputs_name)
        rebuilder.cyclic = cyclic
        for source in new_leaves(tx):
            emitter.call_function(making.require_gradients, lambda source=source: emitter.load_source(source), 1)
            emitter.pop()
        if captured is not None:
            for value in early:
                rebuilder.load_source(value.source, None)
                rebuilder.keep(value)
                emitter.pop()
            self._call_graph(rebuilder, captured, outputs_name)
        self._values_and_effects(rebuilder, effects)
        self._end(rebuilder)
        if captured is not None:
            self.compiled.value = uncaptured(self._compile(captured))
        return TranslationResult(emitter.finish(), tx.guards, captured, self.reason, inputs=self.inputs)

    # -- the graph ---------------------------------------------------------------------------------------

    def _graph(self, outputs: list[TensorVariable]) -> tuple[CapturedGraph | None, str | None, dict[Any, int]]:
        tx = self.tx
        nodes = list(dict.fromkeys(t.node for t in outputs))
        position = {node: i for i, node in enumerate(nodes)}
        graph = tx.output.finish(nodes)
        add_shape_guards(tx)
        add_alias_guards(tx)
        add_symbol_inputs(tx)
        mapping = {t: position[t.node] for t in outputs}
        if all(n.op in ("placeholder", "output") for n in graph.nodes) and not nodes:
            return None, None, mapping
        inputs = tx.output.inputs
        captured = CapturedGraph(
            graph, [i.origin for i in inputs], [i.spec for i in inputs], nodes, tx.guards, dict(tx.symbols)
        )
        return captured, self.emitter.new_temp(), mapping

    def _call_graph(self, rebuilder: Rebuilder, captured: CapturedGraph, outputs_name: str | None) -> None:
        self.inputs = fetched_inputs(captured.inputs)
        rebuilder.call_graph(self.compiled, captured.inputs, len(self.inputs))
        if captured.outputs:
            self.emitter.store_temp(outputs_name)  # type: ignore[arg-type]
        else:
            self.emitter.pop()

    def _compile(self, captured: CapturedGraph) -> Any:
        """Compile the graph: last, because what must be made again behind it may force an earlier end."""
        tx = self.tx
        context = CaptureContext(captured, tx.shape_env, tx.frontend, tx.modes, tx.code.co_qualname)
        tx.shape_env.where = None  # a backend may keep the environment; it must not keep the translator with it
        return self.backend(captured.graph, [i.example for i in tx.output.inputs], context)

    # -- values ------------------------------------------------------------------------------------------

    def _cell_contents(self) -> list[Any]:
        return [c.content for c in self.frame.cells.values() if c.content is not None and c.source is None]

    def _values_and_effects(self, rebuilder: Rebuilder, effects: EffectWriter) -> None:
        """Load everything first, then change the caller's objects: a source read after a change would be stale."""
        emitter = self.emitter
        local_temps: list[tuple[str, str]] = []
        for name, value in self.live.items():
            if not _stands_already(name, value):
                rebuilder.load(value)
                temp = emitter.new_temp()
                emitter.store_temp(temp)
                local_temps.append((name, temp))
        cell_temps = self._load_cells(rebuilder)
        self._load_inner(rebuilder)
        self._run_deferred(rebuilder)
        direct = (
            len(self.levels) < 2
            and effects.is_empty
            and not rebuilder.later
            and not self._mode_changes()
            and not cell_temps
            and not local_temps
        )
        stack_temps: list[str | None] = []
        for value in self.stack:
            if value is NULL:
                emitter.push_null() if direct else stack_temps.append(None)
                continue
            rebuilder.load(value)
            if not direct or rebuilder.later:
                direct = self._leave_direct(stack_temps) if direct else False
                temp = emitter.new_temp()
                emitter.store_temp(temp)
                stack_temps.append(temp)
        pending = effects.load(rebuilder)
        self._run_later(rebuilder)
        for apply in pending:
            apply()
        self._run_later(rebuilder)
        self._set_modes()
        for name, temp in cell_temps:
            emitter.load_temp(temp)
            emitter.store_deref(name)
        for temp in stack_temps:
            if temp is None:
                emitter.push_null()
            else:
                emitter.load_temp(temp)
        for name, temp in local_temps:
            emitter.load_temp(temp)
            emitter.store_local(name)

    def _run_deferred(self, rebuilder: Rebuilder) -> None:
        """Calls that were put off until after the graph, in order."""
        emitter = self.emitter
        for call in self.tx.deferred:
            if call.line:
                emitter.set_line(call.line)
            rebuilder.call_constant(call.function, call.args, call.kwargs)
            emitter.pop()
        emitter.set_line(self.frame.line)

    def _leave_direct(self, stack_temps: list[str | None]) -> bool:
        """The value just loaded needs work afterwards: what was pushed before it goes into variables too."""
        emitter = self.emitter
        below = emitter.depth - 1
        if below:
            held = emitter.new_temp()
            emitter.store_temp(held)
            temps: list[str | None] = []
            for value in reversed(self.stack[:below]):
                if value is NULL:
                    null = emitter.new_temp()
                    emitter.store_temp(null)
                    temps.append(None)
                else:
                    temp = emitter.new_temp()
                    emitter.store_temp(temp)
                    temps.append(temp)
            stack_temps.extend(reversed(temps))
            emitter.load_temp(held)
        return False

    def _run_later(self, rebuilder: Rebuilder) -> None:
        while rebuilder.later:
            rebuilder.later.pop(0)()

    def _load_cells(self, rebuilder: Rebuilder) -> list[tuple[str, str]]:
        """Contents of the frame's own cells that have changed since entry."""
        loaded = []
        for name, cell in self.frame.cells.items():
            if cell.source is not None or cell.name is None or cell.content is None:
                continue
            if self.returns and not self._cell_escapes(cell):
                continue
            if _stands_already(name, cell.content):
                continue
            rebuilder.load(cell.content)
            temp = self.emitter.new_temp()
            self.emitter.store_temp(temp)
            loaded.append((name, temp))
        return loaded

    def _cell_escapes(self, cell: CellVariable) -> bool:
        return True

    def _mode_changes(self) -> list[tuple[str, Any]]:
        frontend = self.tx.frontend
        return [
            (name, frontend.get_mode(name))
            for name, before in self.tx.modes.items()
            if frontend.get_mode(name) != before
        ]

    def _set_modes(self) -> None:
        emitter = self.emitter
        for name, value in self._mode_changes():
            emitter.prepare_call(lambda: emitter.load_const(self.tx.frontend.set_mode))
            emitter.load_const(name)
            emitter.load_const(value)
            emitter.call(2)
            emitter.pop()

    # -- the end -----------------------------------------------------------------------------------------

    def _temp(self, rebuilder: Rebuilder, value: Any) -> str:
        rebuilder.load(value)
        name = self.emitter.new_temp()
        self.emitter.store_temp(name)
        return name

    def _set_handled(self, rebuilder: Rebuilder) -> None:
        """Make the exception that the program handles now the interpreter's too: POP_EXCEPT stores whatever is on
        the stack.
        """
        handled = self.tx.handled
        if handled is HANDLED_AT_ENTRY:
            return
        if handled is None:
            self.emitter.load_const(None)
        else:
            rebuilder.load(handled)
            self._run_later(rebuilder)
        self.emitter.pop_except()

    def _end(self, rebuilder: Rebuilder) -> None:
        self._set_handled(rebuilder)
        if self.returns:
            self.emitter.return_value()
            return
        level = self.levels[0]
        self.emitter.set_line(self.frame.instructions[level.index].line)
        if len(self.levels) == 1:
            run_natively(self.emitter, level.offset, level.mask, level.bound())
            return
        points = self._points()
        inner = self.levels[1]
        push_resume_call(self.emitter,
            inner.frame.code, points[0], self._globals_of(rebuilder, inner), self._cells_of(inner),
            lambda: self._push_values(rebuilder, 1, points),
        )  # fmt: skip
        continue_with_call(
            self.emitter, level.offset, level.mask, level.bound(), points[0].parameters(inner.frame.code)
        )


def _stands_already(name: str, value: Any) -> bool:
    """The argument is still in its slot."""
    return getattr(value, "source", None) == Local(name)
