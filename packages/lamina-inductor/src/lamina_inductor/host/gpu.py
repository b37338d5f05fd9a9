"""Set-up of the GPU launcher: the extension module, where cuBLAS is, and what the front end gives.

A front end that has GPU tensors calls ``set_front_end`` once. Nothing here imports a device library.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina_fx import DType
from lamina_fx.cuda_messages import FORKED, cannot_be_used, driver_problem

__all__ = [
    "FrontEnd", "GpuInfo", "front_end", "give_back", "gpu_info", "gpu_launcher", "open_cublas", "refuse_driver",
    "refuse_memory", "set_front_end",
]  # fmt: skip

_CUBLAS = ("libcublas.so.13", "libcublas.so.12", "libcublas.so")
_WHEELS = ("nvidia.cu13", "nvidia.cublas")


def _shortage(device: int, asked: int | None, purpose: str) -> Exception:
    return MemoryError(f"cuda:{device} has too little memory{purpose}")


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What the launcher asks of the library whose tensors it runs on.

    Attributes:
        tensor: its tensor type, which speaks ``tensor_abi``.
        array: ``(address, dtype, sizes, strides in elements, device index)`` -> an array over memory of a device, on
            which operators' references run.
        give_back: gives the memory that is kept for later use back to the driver.
        shortage: ``(device index, bytes that were asked for or None, what for)`` -> the error for too little memory.
        convert: ``(value, sizes, strides in elements)`` -> a tensor on the same device with those strides and the
            value's elements; ``(value, None, None)``: a tensor over an array of another library.
    """

    tensor: type
    array: Callable[[int, DType, tuple[int, ...], tuple[int, ...], int], Any]
    convert: Callable[[Any, Any, Any], Any]
    give_back: Callable[[], object] = lambda: None
    shortage: Callable[[int, int | None, str], Exception] = _shortage


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """A device: its name, compute capability (90 for 9.0), multiprocessors, and the CUDA version of the driver."""

    name: str
    sm: int
    units: int
    driver: int


_front_end: list[FrontEnd] = []


@functools.cache
def gpu_launcher() -> Any:
    """The extension module; it opens the driver when a program runs or a device is asked for.

    Raises:
        ImportError: the extension was not built.
    """
    from . import _cuda  # pyright: ignore[reportAttributeAccessIssue]

    _cuda.set_cublas(_cublas())
    if _front_end:
        _cuda.set_front_end(_front_end[-1].tensor)
    return _cuda


def set_front_end(found: FrontEnd) -> None:
    """Let GPU programs use the tensors, arrays and streams of this library."""
    _front_end[:] = [found]
    gpu_launcher().set_front_end(found.tensor)


def front_end() -> FrontEnd:
    """What was set.

    Raises:
        RuntimeError: nothing was.
    """
    if not _front_end:
        raise RuntimeError("GPU programs need a front end's tensors: call lamina_inductor.host.gpu.set_front_end first")
    return _front_end[-1]


def give_back() -> None:
    """Called by the launcher when the driver has too little memory: what the front end's pool keeps is given back."""
    if _front_end:
        front_end().give_back()


def refuse_memory(device: int, asked: int, purpose: str) -> None:
    """Called by the launcher when the driver has too little memory, still; ``asked`` is -1 where it does not know.

    Raises:
        Exception: the front end's error, as of its own tensors.
    """
    shortage = front_end().shortage if _front_end else _shortage
    raise shortage(device, None if asked < 0 else asked, purpose)


def refuse_driver(wrong: str, version: int, count: int, lowest: int) -> None:
    """Called by the launcher where the driver, whose version must be ``lowest``, cannot be used.

    Raises:
        RuntimeError: what eager tensors say.
    """
    if wrong == "forked":
        raise RuntimeError(FORKED)
    raise RuntimeError(cannot_be_used(driver_problem(wrong, version, count, lowest) or "its driver does not start"))


def gpu_info(index: int = 0) -> GpuInfo:
    """The device.

    Raises:
        RuntimeError: there is no driver, it is too old, or it finds no such GPU; the message says what to install.
    """
    name, major, minor, units, driver = gpu_launcher().device_info(index)
    return GpuInfo(name, 10 * major + minor, units, driver)


def open_cublas(index: int) -> None:
    """Open cuBLAS for a device before its first product wants it, which takes a while. What fails here fails there
    again, and is told then."""
    with suppress(RuntimeError, MemoryError):
        gpu_launcher().open_cublas(index)


def _cublas() -> str:
    """``LAMINA_LIBCUBLAS``, or the library of an installed wheel, or a name for the loader to find."""
    given = os.environ.get("LAMINA_LIBCUBLAS")
    if given:
        return given
    for wheel in _WHEELS:
        try:
            spec = importlib.util.find_spec(wheel)
        except ModuleNotFoundError:
            continue
        for folder in spec.submodule_search_locations or () if spec else ():
            for name in _CUBLAS:
                path = Path(folder) / "lib" / name
                if path.exists():
                    return str(path)
    return _CUBLAS[0]
