"""Settings of the root namespace that programs set in their first lines: determinism, the default device."""

from __future__ import annotations

from typing import Any

from lamina_fx import CPU, Device
from lamina_prims.promotion import set_default_dtype

from . import creation
from .dtype_names import dtype_from_legacy

__all__ = [
    "are_deterministic_algorithms_enabled", "get_default_device", "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled", "set_default_device", "set_default_tensor_type",
    "set_num_interop_threads", "use_deterministic_algorithms",
]  # fmt: skip

_STATE: dict[str, Any] = {"deterministic": False, "warn_only": False, "interop": 1}


def get_num_interop_threads() -> int:
    """What ``set_num_interop_threads`` was given: operators run one after the other."""
    return _STATE["interop"]


def set_num_interop_threads(count: int) -> None:
    """Accepted; operators run one after the other."""
    _STATE["interop"] = int(count)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Let equal inputs give equal bits on the same machine.

    On the CPU they do in any case; on a GPU sums by index (``index_add``, gradients of gathers) are then made in a
    fixed order, slower. Programs compiled before stay as they are.
    """
    _STATE["deterministic"], _STATE["warn_only"] = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What was asked for."""
    return _STATE["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What was asked for."""
    return _STATE["warn_only"]


def get_default_device() -> Device:
    """Where tensors are made from nothing when no device is given."""
    return creation.default_device()


def set_default_device(device: Any) -> None:
    """Make tensors there from now on, when no device is given (None: on the CPU).

    Raises:
        RuntimeError: ``"cuda"`` without a GPU, or ``"meta"``.
    """
    creation.switch_default_device(CPU if device is None else Device(device))


def set_default_tensor_type(t: Any) -> None:
    """The default dtype and device, by a tensor type or its name: ``DoubleTensor``, ``"torch.cuda.FloatTensor"``.

    Raises:
        RuntimeError: of ``cuda`` where there is no GPU.
    """
    named = isinstance(t, str)
    set_default_device(("cuda" if "cuda" in t.split(".") else "cpu") if named else t.place)
    set_default_dtype(dtype_from_legacy(t) if named else t.dtype)
