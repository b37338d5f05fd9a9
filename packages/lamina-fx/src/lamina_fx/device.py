"""Where a tensor lives.

>>> Device("cuda:1"), Device("cpu")
(device(type='cuda', index=1), device(type='cpu'))
"""

from __future__ import annotations

from collections.abc import Callable

from .expect import expect

__all__ = ["CPU", "Device", "register_default"]

_TYPES = ("cpu", "cuda", "meta")


class Device:
    """A device type and an optional index, as in ``torch.device``; a number alone is a GPU's. Immutable and hashable.

    Raises:
        ValueError: unknown type, or an index that is not a number from 0 on.
        TypeError: neither a name nor a Device.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, device: str | int | Device, index: int | None = None) -> None:
        if isinstance(device, Device):
            kind, index = device.type, device.index if index is None else index
        elif type(device) is int and index is None:
            kind, index = "cuda", device
        else:
            expect("Device", device, str, "a device's name, such as 'cpu' or 'cuda:0'")
            kind, _, digits = str(device).partition(":")
            if digits:
                if index is not None or not digits.isdigit():
                    raise ValueError(f"bad device {device!r} (index {index}); write 'cuda' or 'cuda:0'")
                index = int(digits)
        if kind not in _TYPES:
            raise ValueError(f"unknown device type {kind!r}; known: {', '.join(_TYPES)}")
        if index is not None and index < 0:
            raise ValueError(f"bad device index {index}: devices are numbered from 0")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Device cannot be changed")

    def __enter__(self) -> Device:
        """Inside, it is where a front end's tensors are made when no device is given."""
        if not _DEFAULTS:
            raise RuntimeError(f"with {self!r}: no front end is loaded that makes tensors there")
        _ENTERED.append(_DEFAULTS[0](self))
        return self

    def __exit__(self, *error: object) -> None:
        _DEFAULTS[0](_ENTERED.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        tail = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{tail})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Device, (str(self),)


_DEFAULTS: list[Callable[[Device], Device]] = []
"""A front end's function that sets the default device and returns what it was."""
_ENTERED: list[Device] = []


def register_default(switch: Callable[[Device], Device]) -> None:
    """``switch(device)`` sets where a front end makes tensors by default, and returns where that was: for ``with``."""
    _DEFAULTS[:] = [switch]


CPU = Device("cpu")
"""The only device that is always there."""
