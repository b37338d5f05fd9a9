"""A selection ``x[mask]`` whose elements are only summed up, or written back where they were.

How many there are is not known, but that needs no list of them: ``total`` has all elements of ``x``, with zeros where
the mask is false. Elementwise operators stay in this form: what they make of those zeros is dropped in the end, and its
derivative where the zeros were put. For any other use the graph ends in front of the selection.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

from ..errors import Unsupported
from .base import Args, Kwargs, VariableTracker
from .constant import ConstantVariable

__all__ = ["MaskedVariable", "masked_binary", "select_masked", "write_masked"]


_ELEMENTWISE = frozenset(
    ("abs", "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "sin", "cos", "square", "neg", "log1p", "detach")
)


def select_masked(tx: Any, base: Any, mask: Any) -> VariableTracker | None:
    """``base[mask]`` in this form; None where it is none."""
    if not hasattr(tx.frontend, "value_sizes") or not hasattr(mask, "fake"):
        return None
    have, wanted = tx.frontend.spec(base.fake), tx.frontend.spec(mask.fake)
    same = all(type(n) is int for n in have.shape) and tuple(have.shape) == tuple(wanted.shape)
    if not same or not have.shape or wanted.dtype.kind != "bool" or have.dtype.name not in ("float32", "float64"):
        return None
    total = tx.operator("where", [mask, base, ConstantVariable(0.0)], {})
    return MaskedVariable(total, mask, tx.frame.steps_to_break())


class MaskedVariable(VariableTracker):
    """``total`` holds the selected elements where they were; ``birth``: where the graph ends for any other use."""

    __slots__ = ("birth", "mask", "total", "version")

    def __init__(self, total: Any, mask: Any, birth: list[int]) -> None:
        self.source = None
        self.total = total
        self.mask = mask
        self.birth = birth
        self.version = mask.fake._version

    def python_type(self) -> type:
        return type(self.total.fake)

    def children(self) -> list[Any]:
        return [self.total, self.mask]

    def getattr(self, tx: Any, name: str) -> VariableTracker:
        if name in ("sum", "mean"):
            return _Reduction(self, name)
        if name in _ELEMENTWISE:
            return _Elementwise(self, name)
        raise Unsupported(f"attribute {name!r} of a selection by a mask, whose size only running the graph tells")

    def fits(self, mask: Any) -> bool:
        """Whether this was selected by that mask, as it is now."""
        return mask is self.mask and mask.fake._version == self.version

    def count(self, tx: Any) -> Any:
        """How many elements there are, as an array."""
        if not self.fits(self.mask):
            _changed()
        return self.mask.getattr(tx, "sum").call(tx, [], {})

    def reconstruct(self, cg: Any) -> None:
        cg.tx.break_at(self.birth, "a selection by a mask, whose size only running the graph tells")


class _Method(VariableTracker):
    """A method of a selection."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: MaskedVariable, name: str) -> None:
        self.source = None
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return MethodType

    def children(self) -> list[Any]:
        return [self.owner]

    def reconstruct(self, cg: Any) -> None:
        cg.load(self.owner)


class _Reduction(_Method):
    """``sum`` or ``mean`` of all."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        if args or kwargs:
            raise Unsupported(f"{self.name} of a selection by a mask, with arguments")
        found = _kept(tx, self.owner).getattr(tx, "sum").call(tx, [], {})
        return found if self.name == "sum" else tx.binary("/", found, self.owner.count(tx))


class _Elementwise(_Method):
    """An elementwise method without arguments."""

    __slots__ = ()

    def call(self, tx: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
        if args or kwargs:
            raise Unsupported(f"{self.name} of a selection by a mask, with arguments")
        made = self.owner.total.getattr(tx, self.name).call(tx, [], {})
        return (
            MaskedVariable(made, self.owner.mask, self.owner.birth) if self.owner.fits(self.owner.mask) else _changed()
        )


def _kept(tx: Any, value: MaskedVariable) -> Any:
    """All elements, zeros where the mask is false (arithmetic may have made something else there)."""
    if not value.fits(value.mask):
        _changed()
    return tx.operator("where", [value.mask, value.total, ConstantVariable(0.0)], {})


def masked_binary(tx: Any, symbol: str, left: Any, right: Any) -> VariableTracker:
    """Arithmetic of selections by one mask, and with numbers."""
    chosen: Any = left if isinstance(left, MaskedVariable) else right
    operands = [_operand(chosen, v) for v in (left, right)]
    if symbol not in ("+", "-", "*", "/", "**") or None in operands:
        raise Unsupported(f"{symbol} of a selection by a mask, whose size only running the graph tells")
    return MaskedVariable(tx.binary(symbol, *operands), chosen.mask, chosen.birth)


def _operand(chosen: MaskedVariable, value: Any) -> Any:
    """A selection by the same mask, or a number; None for others."""
    if isinstance(value, MaskedVariable):
        return value.total if value.fits(chosen.mask) else None
    return value if isinstance(value, ConstantVariable) and type(value.value) in (int, float) else None


def _changed() -> Any:
    raise Unsupported("a selection by a mask that was changed since")


def write_masked(tx: Any, target: Any, mask: Any, value: MaskedVariable) -> bool:
    """``target[mask] = value`` for what was selected by that mask; False where it is not this."""
    have, given = tx.frontend.spec(target.fake), tx.frontend.spec(value.total.fake)
    if not value.fits(mask) or tuple(have.shape) != tuple(given.shape) or have.dtype is not given.dtype:
        return False
    mixed = tx.operator("where", [mask, value.total, target], {})
    target.getattr(tx, "copy_").call(tx, [mixed], {})
    return True
