"""Trackers of arrays: inputs of the graph, and which of their sizes are symbolic."""

from __future__ import annotations

import functools
from typing import Any

from .. import guard as g
from ..marks import SizeMark, mark_of
from ..source import Grad, TensorProperty
from ..variables import TensorVariable, VariableTracker
from .wrapping_objects import g_weak

__all__ = ["WrappingArrays"]

_LEAST = 2
"""Sizes 0 and 1 are compiled for on their own, unless a mark's range has them: layouts and broadcasts depend on them.
"""


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
        mark = self._mark(source, value, dim)
        if mark is not None and mark.policy == "static":
            return size
        forced = mark is not None and mark.policy in ("dynamic", "maybe")
        varies = self.config.dynamic_sizes and self.memory.is_dynamic((source, dim), size)
        least = _LEAST if mark is None or mark.lower is None else mark.lower
        if not (forced or varies) or size < least:
            return size
        where = TensorProperty(source, "size", dim)
        upper = None if mark is None else mark.upper
        made = self.shape_env.create_symbol(size, where.name, lower=least, upper=upper, line=self.line_text())
        self.symbols[made.expr] = where
        self.shape_env_ints[made.expr] = made
        self.bounded_symbols.append((made.expr, least, upper))
        return made

    def _mark(self, source: Any, value: Any, dim: int) -> SizeMark | None:
        """What the user said, of a gradient's tensor, too; ``dynamic=True`` says it of all arrays but those that
        belong to a model or optimizer."""
        mark = mark_of(value, dim)
        if mark is None and isinstance(source, Grad):
            mark = mark_of(source.base.fetch(self.scope), dim)
        if mark is None and self.config.dynamic is True and not self._keeps_sizes(source, value):
            return SizeMark("dynamic")
        return mark

    def _keeps_sizes(self, source: Any, value: Any) -> bool:
        keeps = getattr(self.frontend, "keeps_sizes", None)
        return keeps is not None and keeps(value, source, self.scope)

    def _guard_strides(self, spec: Any, source: Any) -> None:
        """Strides that follow symbolic sizes: the caller's must follow them too."""
        if not getattr(self.frontend, "guards_strides", False):
            return
        from lamina_fx.symbolic import to_python

        may_be_empty = any(_least(size) == 0 for size in spec.shape)
        for dim, stride in enumerate(spec.strides):
            if type(stride) is int:
                continue
            symbols = {s.name: self.symbols[s] for s in stride.expr.free_symbols}
            text = f"t == {to_python(stride.expr)}"
            if may_be_empty:  # without elements no stride matters
                symbols["e"] = TensorProperty(source, "numel")
                text = f"e == 0 or {text}"
            if _least(spec.shape[dim]) < 2:
                symbols["n"] = TensorProperty(source, "size", dim)
                text = f"n <= 1 or {text}"
            self.guard(g.shape_holds(text, {**symbols, "t": TensorProperty(source, "stride", dim)}))


def _least(size: Any) -> int:
    """The least value of a size."""
    return size if type(size) is int else size.expr.range()[0] or 0
