"""Set-up of the launcher, once per process: number of threads, BLAS addresses, NumPy types from ml_dtypes.

The pool of the launcher is the only one that runs kernels: the BLAS library is told to use one thread, and gets its
parallelism from being called on blocks by our threads, so two pools never fight for the cores.
"""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from pathlib import Path
from typing import Any

from lamina_fx.dtype import dtype_of

__all__ = ["default_threads", "has_blas", "launcher", "load_blas", "num_threads", "set_num_threads"]

_GEMMS = ("sgemm", "dgemm", "cgemm", "zgemm")


@functools.cache
def launcher() -> Any:
    """The extension module, set up.

    Raises:
        ImportError: the extension was not built.
    """
    import ml_dtypes
    import numpy as np

    from . import _launcher  # pyright: ignore[reportAttributeAccessIssue]

    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        _launcher.register_dtype(dtype_of(name).code, dtype.num, dtype.itemsize)
    _launcher.set_num_threads(default_threads())
    return _launcher


@functools.cache
def load_blas() -> None:
    """Let products use the BLAS library. Loading it takes 20 ms and makes threads: only programs with products do."""
    launcher().set_blas(_blas_addresses())


def num_threads() -> int:
    """How many threads a compiled kernel may use."""
    return launcher().num_threads()


def set_num_threads(threads: int) -> None:
    """Let compiled kernels use ``threads`` threads from the next call on; nothing is compiled anew.

    Raises:
        ValueError: fewer than 1.
    """
    launcher().set_num_threads(threads)


def default_threads() -> int:
    """``LAMINA_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the cores this process may use (its CPU quota
    included)."""
    for variable in ("LAMINA_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "").partition(",")[0].strip()
        if text.isdigit() and int(text) > 0:
            return int(text)
    return max(1, min(len(os.sched_getaffinity(0)), _quota()))


def _quota() -> int:
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, int(limit) // int(period))
    except (OSError, ValueError):
        return 1 << 16


@functools.cache
def _blas() -> ctypes.CDLL | None:
    try:
        import scipy_openblas32 as package
    except ImportError:
        warnings.warn(
            "scipy-openblas32 is not installed: matrix products run on the generated kernels; "
            "pip install scipy-openblas32",
            stacklevel=2,
        )
        return None
    folder = Path(package.get_lib_dir())
    library = next(p for p in sorted(folder.iterdir()) if p.name.startswith("libscipy_openblas") and ".so" in p.name)
    blas = ctypes.CDLL(str(library))
    blas.scipy_openblas_set_num_threads(1)
    return blas


def has_blas() -> bool:
    """True when a BLAS library was found."""
    return _blas() is not None


def _blas_addresses() -> tuple[int, ...]:
    blas = _blas()
    if blas is None:
        return (0, 0, 0, 0)
    found = [ctypes.cast(getattr(blas, f"scipy_cblas_{name}"), ctypes.c_void_p).value or 0 for name in _GEMMS]
    return tuple(found)
