"""What this machine has for compiling: the disk cache, the C++ compiler, what GPU code needs. Imports nothing heavy.

>>> cache_info().entries >= 0
True
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from .backends.cpp.toolchain import Toolchain, find_toolchain
from .cache.store import default_store

__all__ = ["CacheInfo", "cache_info", "clear_cache", "toolchain", "triton_version"]


@dataclass(frozen=True)
class CacheInfo:
    """The disk cache: its folder (None: it cannot be written, nothing is kept), entries, bytes and limit in bytes."""

    folder: Path | None
    entries: int
    bytes: int
    limit: int

    def __str__(self) -> str:
        if self.folder is None:
            return "none: its folder cannot be written"
        entries = f"{self.entries:,} {'entry' if self.entries == 1 else 'entries'}"
        return f"{self.folder}: {entries}, {self.bytes / 2**20:,.1f} MiB of at most {self.limit / 2**20:,.0f} MiB"


def cache_info() -> CacheInfo:
    """The cache that ``LAMINA_CACHE_DIR`` and ``LAMINA_CACHE_LIMIT`` name now. Makes no folder."""
    store = default_store()
    return CacheInfo(store.folder, store.count(), store.size(), store.limit)


def clear_cache() -> CacheInfo:
    """Remove every entry of the disk cache; returns what was there. Loaded programs go on running.

    Raises:
        OSError: an entry cannot be removed.
    """
    found = cache_info()
    default_store().clear()
    return found


def toolchain() -> Toolchain | None:
    """The C++ compiler that graphs of CPU tensors are compiled with; None: there is none, they are interpreted."""
    return find_toolchain()


def triton_version() -> str | None:
    """The version of the installed Triton, asked without importing it; None where it is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
