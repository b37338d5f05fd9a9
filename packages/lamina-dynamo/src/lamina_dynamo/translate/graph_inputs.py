"""The call of the compiled graph: how the new code comes by the graph's inputs.

The guards have read most of them already. When reading them again would take many steps they are handed over as a
tuple (`fetched_inputs`); otherwise the new code loads each from where it is. Numbers that the host computes come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ..emit import Constant
from ..guard_program import can_fetch
from ..source import Source, Temp, base_of, chain
from ..variables import HostInput

__all__ = ["GraphCalls", "fetched_inputs"]

_FEW_STEPS = 12
"""A tuple of inputs costs about as much to make and to call with as this many steps cost to take."""


def fetched_inputs(origins: Sequence[Source | HostInput]) -> tuple[Source, ...]:
    """The leading inputs that the guards shall hand over: none when they are cheap to load, or cannot be."""
    sources = tuple(takewhile(lambda origin: isinstance(origin, Source), origins))
    if any(isinstance(origin, Source) for origin in origins[len(sources) :]):
        return ()
    steps = sum(1 for source in sources for _ in chain(source))  # type: ignore[arg-type]
    return sources if steps > _FEW_STEPS and all(map(can_fetch, sources)) else ()  # type: ignore[arg-type,return-value]


class GraphCalls:
    """The part of the rebuilder that loads inputs."""

    emitter: Any
    prefixes: dict[Source, Source]

    def call_graph(self, graph: Constant, origins: Sequence[Source | HostInput], fetched: int) -> None:
        """Push the graph's outputs; the first ``fetched`` of the inputs are those of `fetched_inputs`."""
        emitter = self.emitter
        if not fetched:
            self.share_prefixes(origins)
            emitter.call_graph(graph, lambda: [self.load_input(origin) for origin in origins], len(origins))
            return
        inputs = emitter.inputs_variable()
        emitter.prepare_call(lambda: emitter.load_const(graph))
        emitter.load_temp(inputs)
        computed = origins[fetched:]
        if computed:
            for origin in computed:
                self.load_input(origin)
            emitter.build_tuple(len(computed))
            emitter.add()
        emitter.call_ex()
        emitter.delete_local(inputs)

    def share_prefixes(self, origins: Sequence[Source | HostInput]) -> None:
        """Read what several inputs are reached through once, into variables; ``load_input`` then starts there."""
        steps: dict[Source, set[Source]] = {}
        for origin in origins:
            if isinstance(origin, Source):
                for step in chain(origin):
                    base = base_of(step)
                    if base is not None:
                        steps.setdefault(base, set()).add(step)
        for origin in origins:
            if isinstance(origin, Source):
                for step in chain(origin):
                    if len(steps.get(step, ())) > 1 and step not in self.prefixes:
                        self._from_prefix(step).emit(self.emitter)
                        name = self.emitter.new_temp()
                        self.emitter.store_temp(name)
                        self.prefixes[step] = Temp(name)

    def _from_prefix(self, source: Source) -> Source:
        """The same source, starting at a variable where one holds a part of its path."""
        known = self.prefixes.get(source)
        if known is not None:
            return known
        before = base_of(source)
        if before is None:
            return source
        base = self._from_prefix(before)
        return source if base is before else replace(source, base=base)  # type: ignore[type-var]

    def load_input(self, origin: Source | HostInput) -> None:
        """Push an input of the graph."""
        if isinstance(origin, HostInput):
            self.load_host(origin)
        else:
            self._from_prefix(origin).emit(self.emitter)
