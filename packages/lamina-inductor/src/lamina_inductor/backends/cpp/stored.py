"""Artifacts of earlier compilations, by key. Loads nothing of the code generator: a program that finds all its graphs
in the cache does without it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace

from ...artifact import Artifact, ArtifactError, read_description
from ...cache.store import ArtifactStore, default_store
from .toolchain import Toolchain, find_toolchain

__all__ = ["NoCompiler", "find_compiled", "full_key", "require_toolchain"]

_FORMAT = "2"
"""Part of every key: changes when the description or the host ABI does."""


class NoCompiler(RuntimeError):
    """There is no C++ compiler on this machine."""


def require_toolchain() -> Toolchain:
    """The compiler to use.

    Raises:
        NoCompiler: there is none; the message says what to install.
    """
    found = find_toolchain()
    if found is None:
        named = next((f"{v}={os.environ[v]!r} is none;" for v in ("LAMINA_CXX", "CXX") if os.environ.get(v)), "")
        raise NoCompiler(
            f"no C++ compiler found: {named or 'install g++ or clang++ (for example: apt-get install g++), or'} "
            "set LAMINA_CXX to one"
        )
    return found


def full_key(*parts: str) -> str:
    """The name in the store of what ``parts`` say."""
    return hashlib.sha256("\0".join((_FORMAT, *parts)).encode()).hexdigest()


def find_compiled(key: str, *, name: str = "", store: ArtifactStore | None = None) -> Artifact | None:
    """The artifact that ``compile_program(..., key=key)`` made, in this process or an earlier one; None: none, or
    damaged. ``name`` replaces the one that the artifact was made with: no code depends on it.

    Raises:
        NoCompiler: no compiler (then nothing can have been compiled for this machine).
    """
    store = store or default_store()
    entry = store.find(full_key("graph", key, require_toolchain().key))
    if entry is None:
        return None
    try:
        description = read_description(entry)
        return Artifact.open(entry, replace(description, name=name) if name else description)
    except ArtifactError:
        return None
