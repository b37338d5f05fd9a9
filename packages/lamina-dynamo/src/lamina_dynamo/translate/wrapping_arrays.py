"""Trackers of arrays: inputs of the graph, and which of their sizes are symbolic."""

from __future__ import annotations

import functools
from typing import Any

from .. import guard as g
from ..source import (
    TensorProperty,
)
from ..variables import (
    TensorVariable,
    VariableTracker,
)  # fmt: skip
from .wrapping_objects import g_weak

__all__ = ["WrappingArrays"]


class WrappingArrays:
    """The part of the translator that makes trackers of arrays."""

    def _wrap_array(self, value: Any, source: Any) -> VariableTracker:
        if source is None:
            return self._constant_array(value)
        frontend = self.frontend
        fake = frontend.fake(value, self.shape_env, functools.partial(self._size, source, value))
        for guard in frontend.guards(value, source, fake):
            self.guard(guard)
        spec = frontend.spec(fake)
        self._guard_strides(spec, source)
        node = self.output.add_input(source, source.name, spec, value)
        made = TensorVariable(node, fake, source)
        self.fakes[id(fake)] = made
        self.arrays.append((value, made))
        return made

    def _constant_array(self, value: Any) -> VariableTracker:
        source = g_weak(value)
        self.guard(g.id_is(source, value))
        return self._wrap_array(value, source)

    def _size(self, source: Any, value: Any, dim: int, size: int) -> Any:
        where = TensorProperty(source, "size", dim)
        mark = self.config.size_mark(value, dim)
        if mark is not None and mark.policy == "static":
            return size
        forced = mark is not None and mark.policy in ("dynamic", "maybe")
        if not forced and not (self.config.dynamic_sizes and self.memory.is_dynamic((source, dim), size)):
            return size
        lower = 0 if mark is None or mark.lower is None else mark.lower
        made = self.shape_env.create_symbol(
            size, where.name, lower=lower, upper=None if mark is None else mark.upper, line=self.line_text()
        )
        self.symbols[made.expr] = where
        self.shape_env_ints[made.expr] = made
        if mark is not None and (mark.lower is not None or mark.upper is not None):
            self.bounded_symbols.append((made, mark))
        return made

    def _guard_strides(self, spec: Any, source: Any) -> None:
        """Strides that follow symbolic sizes: the caller's must follow them too."""
        if not getattr(self.frontend, "guards_strides", False):
            return
        from lamina_fx.symbolic import to_python

        for dim, stride in enumerate(spec.strides):
            if type(stride) is int:
                continue
            symbols = {s.name: self.symbols[s] for s in stride.expr.free_symbols}
            symbols["e"] = TensorProperty(source, "numel")
            text = f"e == 0 or t == {to_python(stride.expr)}"  # without elements no stride matters
            size = spec.shape[dim]
            if type(size) is not int:
                symbols["n"] = TensorProperty(source, "size", dim)
                text = f"n <= 1 or {text}"
            self.guard(g.shape_holds(text, {**symbols, "t": TensorProperty(source, "stride", dim)}))
