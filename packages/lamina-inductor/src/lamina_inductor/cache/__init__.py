"""Content-addressed artifacts on disk, safe between processes and threads."""

from __future__ import annotations

from .keys import graph_key
from .store import ArtifactStore, Entry, default_store

__all__ = ["ArtifactStore", "Entry", "default_store", "graph_key"]
