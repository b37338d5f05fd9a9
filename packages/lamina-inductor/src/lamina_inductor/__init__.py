"""Loop IR, fusion and code generation for tensor graphs."""

from __future__ import annotations

from .backend import CppBackend
from .machine import CacheInfo, cache_info, clear_cache, toolchain, triton_version

__version__ = "0.1.0.dev0"
PROVIDES = {"artifact": 0}
ACCEPTS = {"graph": (0,), "primset": (0,), "tensor_abi": (0,)}

__all__ = [
    "ACCEPTS", "PROVIDES", "CacheInfo", "CppBackend", "cache_info", "clear_cache", "toolchain", "triton_version",
]  # fmt: skip
