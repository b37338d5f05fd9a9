"""Which frames are left alone: those of Python's own library and of the compiler.

A function that was itself given to `optimize` is always captured. What capture inlines into another frame is not
asked here.
"""

from __future__ import annotations

import os
import sysconfig
from types import CodeType

__all__ = ["add_skipped_path", "skip_reason"]


def _standard_library() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({os.path.join(os.path.realpath(paths[k]), "") for k in ("stdlib", "platstdlib")})


def _packages() -> tuple[str, ...]:
    here = os.path.dirname(os.path.abspath(__file__))
    return (os.path.join(here, ""),)


_PREFIXES: list[str] = [*_packages()]
_STANDARD = _standard_library()
_LIBRARIES = (
    "lamina_fx", "lamina_prims", "lamina_aot", "lamina_inductor", "lamina_testing", "numpy", "bytecode", "ml_dtypes",
    "cupy", "cupy_backends", "triton",
)  # fmt: skip

_FINDERS = frozenset(("find_spec", "find_module", "create_module", "exec_module"))
"""Methods of finders and loaders, which packages add to Python's own (for editable installs)."""


def add_skipped_path(prefix: str) -> None:
    """Never capture frames of files below this folder (a front end's dispatcher, a backend)."""
    _PREFIXES.append(os.path.join(os.path.abspath(prefix), ""))


def skip_reason(code: CodeType) -> str | None:
    """Why frames of this code are left alone; None when they are captured."""
    name = code.co_filename
    if name.startswith("<frozen"):
        return "part of Python itself"
    if name.startswith("<lamina"):
        return "written by the compiler"
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return "part of the compiler"
    parts = name.split(os.sep)
    if any(library in parts for library in _LIBRARIES):
        return "part of a library below capture"
    if code.co_name in _FINDERS:
        return "part of importing a module"
    real = name if os.path.isabs(name) else os.path.abspath(name)
    if real.startswith(_STANDARD) and not ("site-packages" in parts or "dist-packages" in parts):
        return "part of the standard library"
    return None
