"""``Size``: the tuple of a tensor's sizes.

>>> Size((2, 3)).numel(), Size((2, 3)) == (2, 3)
(6, True)
"""

from __future__ import annotations

from typing import Any

__all__ = ["Size"]


class Size(tuple):  # type: ignore[type-arg]
    """Sizes of a tensor: a tuple that slices and adds to a ``Size`` and counts elements."""

    __slots__ = ()

    def numel(self) -> Any:
        """Product of the sizes; 1 without dimensions."""
        count: Any = 1
        for size in self:
            count = count * size
        return count

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if type(index) is slice else item

    def __add__(self, other: tuple[Any, ...]) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, tuple(other)))

    def __repr__(self) -> str:
        return f"lamina.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> tuple[type[Size], tuple[tuple[Any, ...]]]:
        return Size, (tuple(self),)
