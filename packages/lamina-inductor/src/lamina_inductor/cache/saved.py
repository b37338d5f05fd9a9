"""Artifacts as files of the user: a copy of a cache entry, checked when it is read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .store import Entry, verify

__all__ = ["ArtifactError", "copy_entry", "saved_entry"]


class ArtifactError(RuntimeError):
    """A stored artifact cannot be used here: damaged, or of another version. Compile the graph again."""


def copy_entry(entry: Path, path: str | os.PathLike[str]) -> None:
    """Copy an entry's file to ``path``, which never holds a part of it."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(entry, temporary)
    temporary.replace(target)


def saved_entry(path: str | os.PathLike[str]) -> Entry:
    """What ``copy_entry`` wrote.

    Raises:
        FileNotFoundError: no such file.
        ArtifactError: the file is damaged or none of ours.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no artifact at {path}")
    entry = verify(Path(path))
    if entry is None:
        raise ArtifactError(f"{path} is no artifact, or is damaged; compile the graph again")
    return entry
