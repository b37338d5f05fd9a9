"""Content-addressed artifacts on disk, safe between processes and threads."""

from __future__ import annotations

from .store import ArtifactStore, Entry, default_store

__all__ = ["ArtifactStore", "Entry", "default_store"]
