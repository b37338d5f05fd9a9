"""What was measured, on disk: one entry of the artifact store for each problem, device and set of versions.

The store writes whole files and checks them when they are read, so several processes may tune at once, and a damaged
entry counts as none.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ..cache.keys import compiler_version
from ..cache.store import ArtifactStore, default_store

__all__ = ["Records"]


class Records:
    """Times of candidates by problem, for one device. ``device``: text that names it and the versions of its tools."""

    def __init__(self, device: str, store: ArtifactStore | None = None) -> None:
        self.device = device
        self._store = store

    @property
    def store(self) -> ArtifactStore:
        """Where they are."""
        return self._store or default_store()

    def find(self, problem: str) -> dict[str, float]:
        """Label -> seconds of what was measured; empty when nothing was."""
        entry = self.store.find(self._key(problem))
        if entry is None:
            return {}
        try:
            found = json.loads(entry.description)
            return {str(k): float(v) for k, v in found["seconds"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}

    def add(self, problem: str, seconds: dict[str, float]) -> None:
        """Remember what was measured."""
        text = json.dumps({"problem": problem, "device": self.device, "seconds": seconds}).encode()

        def write(path: Path) -> bytes:
            path.write_bytes(b"")
            return text

        self.store.add(self._key(problem), write)

    def _key(self, problem: str) -> str:
        text = "\n".join((problem, self.device, compiler_version()))
        return f"tune{hashlib.sha256(text.encode()).hexdigest()}"
