"""Plain values, compared as guards compare them, and objects remembered without keeping them alive."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from types import ModuleType

__all__ = ["Constant", "Identity", "is_plain", "short"]


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A plain value compared with its type: 1, 1.0 and True differ, nan equals nan, -0.0 differs from 0.0."""

    value: object

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """One object, remembered without keeping it alive: its address and a weak reference where its type has them.

    Without weak references (numbers, strings, ufuncs) the object itself is held: such objects lead to no user function.
    """

    address: int
    held: object
    weak: bool
    text: str

    @staticmethod
    def of(value: object) -> Identity:
        """Remember this object."""
        text = getattr(value, "__qualname__", None)
        if not isinstance(text, str):  # the repr of an array is long and slow
            if isinstance(value, ModuleType):
                text = f"<module {value.__name__}>"
            else:
                text = short(value) if is_plain(value) else f"<{type(value).__name__} at {id(value):#x}>"
        try:
            return Identity(id(value), weakref.ref(value), True, text)
        except TypeError:
            return Identity(id(value), value, False, text)

    def get(self) -> object:
        """The object; None when it was freed."""
        return self.held() if self.weak else self.held  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.address == other.address and self.held is other.held

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return self.text


def is_plain(value: object) -> bool:
    """Whether `equals` can compare this value."""
    if type(value) in (tuple, frozenset):
        return all(map(is_plain, value))  # type: ignore[call-overload]
    if type(value) is slice:
        return all(map(is_plain, (value.start, value.stop, value.step)))
    return value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes, range)


def short(value: object, limit: int = 80) -> str:
    """The value's repr, cut to a line."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (a user's __repr__ may raise anything; this is only a message)
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."
