"""Is there a GPU that can be used, and if not, what is missing: asked without importing a device library."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os

from lamina_fx.cuda_messages import FORKED, INSTALL, cannot_be_used, driver_problem

__all__ = ["driver_state", "library_version", "missing", "require"]


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


def library_version() -> str | None:
    """CuPy's version and the package that brings it, such as ``14.0.1 (cupy-cuda13x)``; None where it is not there."""
    if not library_installed():
        return None
    packages = importlib.metadata.packages_distributions().get("cupy", ())
    found = [f"{importlib.metadata.version(name)} ({name})" for name in dict.fromkeys(packages)]
    return ", ".join(found) or "of unknown version"


def missing() -> str | None:
    """What keeps the device 'cuda' from being used, and what to do about it; None when it can be."""
    state = driver_state()
    if state[0] == "forked":
        return FORKED
    problem = driver_problem(*state)
    if library_installed():
        return problem and cannot_be_used(problem)
    if problem is None:
        return cannot_be_used(f"CuPy is not installed: {INSTALL}")
    return cannot_be_used(f"{problem}; CuPy is needed too: {INSTALL}")


def broken(error: Exception) -> RuntimeError:
    """What is said when CuPy is there and does not load: most often CUDA's libraries are missing."""
    return RuntimeError(cannot_be_used(f"CuPy does not load ({error}): {INSTALL}, which brings CUDA's libraries too"))


def require() -> None:
    """Refuse where no GPU can be used.

    Raises:
        RuntimeError: says what is missing and what to install.
    """
    problem = missing()
    if problem is not None:
        raise RuntimeError(problem)
