"""Parameters: tensors that a module registers."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A leaf tensor that a module registers when it is assigned; requires gradients unless told otherwise."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """A parameter over ``data``'s memory."""
        from ..namespace import root

        if data is None:
            data = root.empty(0)
        return Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned."""

    def __new__(cls, data: Any, persistent: bool = True) -> Buffer:
        """A buffer over ``data``'s memory."""
        made = Tensor._make_subclass(cls, data.detach(), False)
        made.persistent = persistent
        return made

    def __init__(self, data: Any, persistent: bool = True) -> None:
        pass
