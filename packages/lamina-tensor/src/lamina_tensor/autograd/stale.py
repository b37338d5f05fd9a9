"""Saved tensors that were written since: an error only for the rule that really computes with them.

A rule is given everything it names, also what it needs for other gradients than those wanted. In ``y = x * 2`` the
gradient of ``x`` does not need ``x``, so writing ``x`` afterwards is no error.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["StaleValue"]

_METADATA = frozenset(("shape", "dtype", "device", "ndim", "spec", "stride", "size", "numel", "dim"))


class StaleValue:
    """Stands for a saved tensor with other elements than when it was saved: its shape may be asked for, no more."""

    __slots__ = ("_error", "_tensor")
    __lamina_priority__ = 1000

    def __init__(self, tensor: Any, error: RuntimeError) -> None:
        self._tensor = tensor
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name in _METADATA:
            return getattr(self._tensor, name)
        raise self._error

    def __lamina_operator__(self, op: Any, args: Any, kwargs: Any) -> NoReturn:
        raise self._error

    def _refuse(self, *args: Any) -> NoReturn:
        raise self._error

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _refuse
    __rpow__ = __neg__ = __getitem__ = __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
