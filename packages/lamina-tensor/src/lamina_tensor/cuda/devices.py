"""Which devices there are, and which one is the thread's."""

from __future__ import annotations

from typing import Any

from .activation import active_provider, device_index, is_active, is_forked, on_device
from .availability import missing
from .provider import DeviceProperties

__all__ = [
    "current_device", "device", "device_count", "device_of", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "init", "is_available", "is_bf16_supported", "is_initialized",
    "is_tf32_supported", "set_device",
]  # fmt: skip


def is_available() -> bool:
    """Can the device ``"cuda"`` be used: a GPU, its driver and CuPy are there. Never raises."""
    import os

    from . import activation

    if is_forked():
        return False
    if is_active() or activation._Active.chosen is not None:
        return active_provider().device_count() > 0
    if os.environ.get("LAMINA_CUDA_PROVIDER", "cupy") != "cupy":
        return os.environ["LAMINA_CUDA_PROVIDER"] == "stub"
    return missing() is None


def device_count() -> int:
    """How many devices can be used."""
    return active_provider().device_count() if is_available() else 0


def is_initialized() -> bool:
    """Has a device been used."""
    return is_active()


def init() -> None:
    """Load the device library now. RuntimeError: there is none; says what to install."""
    active_provider()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Is there a device (all that CUDA 13 knows have bfloat16)."""
    return is_available()


def is_tf32_supported() -> bool:
    """Has the thread's device products of float32 with rounded operands (compute capability 8.0 and later)."""
    return is_available() and get_device_capability()[0] >= 8


def current_device() -> int:
    """The number of the thread's device."""
    return active_provider().current_device()


def set_device(device: Any) -> None:
    """Make a device the thread's."""
    active_provider().set_device(device_index(device))


class device:
    """``with cuda.device(1):`` inside, it is the thread's device (None: nothing changes)."""

    def __init__(self, device: Any) -> None:
        self.idx = None if device is None else device_index(device)

    def __enter__(self) -> None:
        if self.idx is not None:
            self._inside = on_device(active_provider(), self.idx)
            self._inside.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.idx is not None:
            self._inside.__exit__(*error)


class device_of(device):
    """``with cuda.device_of(tensor):`` inside, the tensor's device is the thread's."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "cuda" else None)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, compute capability, memory, multiprocessors."""
    return active_provider().properties(device_index(device))


def get_device_name(device: Any = None) -> str:
    """The device's name."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Compute capability: (9, 0) for Hopper."""
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """Architectures that programs are compiled for: those of the devices that are there."""
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(device_count())})
