"""What users are told where the device 'cuda' cannot be used: one text for all layers, which imports and asks nothing.

>>> driver_problem("", 12040, 1)
'the NVIDIA driver is too old (it supports CUDA 12.4): install version 580 or later, for CUDA 13'
>>> driver_problem("", 13000, 1) is None
True
"""

from __future__ import annotations

import os

__all__ = ["FORKED", "INSTALL", "LOWEST_DRIVER", "cannot_be_used", "driver_problem"]

INSTALL = "pip install 'lamina[cuda]'"
"""Brings CuPy, Triton and CUDA's libraries."""

LOWEST_DRIVER = 13000
"""The lowest version of the CUDA driver API for which the extra's packages are built (driver 580)."""

FORKED = (
    "Cannot re-initialize CUDA in forked subprocess: its parent used a GPU before. To use CUDA with multiprocessing, "
    "you must use the 'spawn' start method (multiprocessing.set_start_method('spawn')), or use no GPU before the fork"
)


def driver_problem(wrong: str, version: int, count: int, lowest: int = LOWEST_DRIVER) -> str | None:
    """What is wrong with a driver, and what to do about it; None where nothing is.

    ``wrong`` is ``""``, ``"driver"`` (there is none) or the driver's own refusal to begin; ``version`` is that of its
    API (13000 for CUDA 13.0), ``count`` the number of GPUs that it finds.
    """
    if wrong == "driver":
        named = os.environ.get("LAMINA_LIBCUDA")
        sought = f"LAMINA_LIBCUDA={named} does not load" if named else "libcuda.so.1 is not found"
        return f"there is no NVIDIA driver ({sought}): install the driver, version 580 or later"
    if wrong:
        return f"the NVIDIA driver does not start ({wrong}): check it with nvidia-smi"
    if version < lowest:
        have = f"{version // 1000}.{version % 1000 // 10}"
        return f"the NVIDIA driver is too old (it supports CUDA {have}): install version 580 or later, for CUDA 13"
    if not count:
        return "the NVIDIA driver finds no GPU: check it with nvidia-smi, and CUDA_VISIBLE_DEVICES"
    return None


def cannot_be_used(problem: str) -> str:
    """The whole message for a problem."""
    return f"the device 'cuda' cannot be used: {problem}; use device 'cpu', or guard with cuda.is_available()"
