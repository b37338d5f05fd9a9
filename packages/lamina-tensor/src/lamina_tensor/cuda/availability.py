"""Is there a GPU that can be used, and if not, what is missing: asked without importing a device library."""

from __future__ import annotations

import ctypes
import importlib.util
import os

__all__ = ["FORKED", "missing", "require"]

FORKED = (
    "Cannot re-initialize CUDA in forked subprocess: its parent used a GPU before. To use CUDA with multiprocessing, "
    "you must use the 'spawn' start method (multiprocessing.set_start_method('spawn')), or use no GPU before the fork"
)

LOWEST_DRIVER = 13000
"""The lowest version of the CUDA driver API for which the extra's CuPy is built (driver 580)."""

_INSTALL = "pip install 'lamina-tensor[cuda]'"
_OTHERWISE = "use device 'cpu', or guard with cuda.is_available()"


def driver_state() -> tuple[str, int, int]:
    """(what is wrong or "", version of the driver API, number of devices), from the driver itself.

    Wrong may be ``"driver"`` (no libcuda), ``"forked"`` or the driver's own refusal to begin.
    """
    try:
        driver = ctypes.CDLL(os.environ.get("LAMINA_LIBCUDA", "libcuda.so.1"))
    except OSError:
        return "driver", 0, 0
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    status = driver.cuInit(0)
    if status == 3 and _asked and os.getpid() not in _asked:  # CUDA_ERROR_NOT_INITIALIZED: the parent began
        return "forked", version.value, 0
    _asked.add(os.getpid())
    if status == 100:  # CUDA_ERROR_NO_DEVICE
        return "", version.value, 0
    if status:
        return f"cuInit gave error {status}", version.value, 0
    driver.cuDeviceGetCount(ctypes.byref(count))
    return "", version.value, count.value


_asked: set[int] = set()
"""Processes that started the driver: this one, and those it was forked from."""


def library_installed() -> bool:
    """Is CuPy there."""
    return importlib.util.find_spec("cupy") is not None


def missing() -> str | None:
    """What keeps the device 'cuda' from being used, and what to do about it; None when it can be."""
    wrong, version, count = driver_state()
    if wrong == "forked":
        return FORKED
    if wrong == "driver":
        problem = "there is no NVIDIA driver (libcuda.so.1 is not found): install the driver, version 580 or later"
    elif wrong:
        problem = f"the NVIDIA driver does not start ({wrong}): check it with nvidia-smi"
    elif version < LOWEST_DRIVER:
        have = f"{version // 1000}.{version % 1000 // 10}"
        problem = f"the NVIDIA driver is too old (it supports CUDA {have}): install version 580 or later, for CUDA 13"
    elif not count:
        problem = "the NVIDIA driver finds no GPU: check it with nvidia-smi, and CUDA_VISIBLE_DEVICES"
    elif not library_installed():
        problem = f"CuPy is not installed: {_INSTALL}"
    else:
        return None
    extra = "" if library_installed() or "CuPy" in problem else f"; CuPy is needed too: {_INSTALL}"
    return f"the device 'cuda' cannot be used: {problem}{extra}; {_OTHERWISE}"


def broken(error: Exception) -> RuntimeError:
    """What is said when CuPy is there and does not load: most often CUDA's libraries are missing."""
    return RuntimeError(
        f"the device 'cuda' cannot be used: CuPy does not load ({error}): {_INSTALL}, which brings CUDA's "
        f"libraries too; {_OTHERWISE}"
    )


def require() -> None:
    """Refuse where no GPU can be used.

    Raises:
        RuntimeError: says what is missing and what to install.
    """
    problem = missing()
    if problem is not None:
        raise RuntimeError(problem)
