"""One file per artifact: a shared library, then its description, then a trailer with a checksum.

A loader of libraries ignores what follows the library, so the same file is what ``dlopen`` opens and what describes
it: one
inode an entry, one atomic rename, nothing that can come apart. Whatever does not end in a trailer with the right
checksum
is treated as absent and replaced. Entries are found by a key that callers make of everything an artifact depends on.

``LAMINA_CACHE_DIR`` is the folder (default: ``$XDG_CACHE_HOME/lamina`` or ``~/.cache/lamina``),
``LAMINA_CACHE_LIMIT`` its size in
megabytes (default 2048; least recently used entries go first). A folder that cannot be written means: no disk cache,
one note.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ArtifactStore", "Entry", "default_store", "verify"]

_MAGIC = b"LAMINA01"
_TRAILER = struct.Struct("<QQ32s8s")  # bytes of the library, bytes of the description, sha256 of both, magic
_EVICT_EVERY = 32


@dataclass(frozen=True)
class Entry:
    """A verified artifact: ``path`` can be given to ``dlopen``; ``description`` is what was stored with it."""

    path: Path
    description: bytes
    library_bytes: int


def _pack(library: bytes, description: bytes) -> bytes:
    digest = hashlib.sha256(library + description).digest()
    return library + description + _TRAILER.pack(len(library), len(description), digest, _MAGIC)


def verify(path: Path) -> Entry | None:
    """The entry in the file at ``path``, or None when it is not one, or not whole."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < _TRAILER.size:
        return None
    library, description, digest, magic = _TRAILER.unpack(data[-_TRAILER.size :])
    if magic != _MAGIC or library + description + _TRAILER.size != len(data):
        return None
    if hashlib.sha256(memoryview(data)[: library + description]).digest() != digest:
        return None
    return Entry(path, data[library : library + description], library)


class ArtifactStore:
    """Artifacts in ``folder``; without a folder (None) they live in a temporary one until the process ends."""

    def __init__(self, folder: Path | None, limit: int = 2048 << 20) -> None:
        self.folder = folder
        self.limit = limit
        self.locks: dict[str, threading.Lock] = {}
        self.writes = 0
        self.private: tempfile.TemporaryDirectory[str] | None = None

    def find(self, key: str) -> Entry | None:
        """The entry of ``key``, or None when there is none, or none that is whole."""
        for folder in (self.folder, self.private and Path(self.private.name)):
            if folder is None:
                continue
            path = self._path(folder, key)
            entry = verify(path)
            if entry is not None:
                with contextlib.suppress(OSError):  # a cache that may only be read keeps no times of use
                    os.utime(path)
                return entry
        return None

    def add(self, key: str, build: Callable[[Path], bytes]) -> Entry:
        """Make the entry of ``key``: ``build(path)`` writes the library to ``path`` and returns its description.

        When several processes do this at once, each writes its own file and the last rename stays; all are equal.

        Raises:
            whatever ``build`` raises; then nothing is left behind.
        """
        folder = self._writable()
        target = self._path(folder, key)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".new-", suffix=".so", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            description = build(temporary)
            temporary.write_bytes(_pack(temporary.read_bytes(), description))
            temporary.chmod(0o755)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        self._maybe_evict()
        entry = verify(target)
        if entry is None:
            raise OSError(f"the artifact written to {target} cannot be read back; is the disk full?")
        return entry

    def find_or_add(self, key: str, build: Callable[[Path], bytes]) -> Entry:
        """The entry of ``key``, made when there is none. Other processes that want it meanwhile wait for the first."""
        entry = self.find(key)
        if entry is not None:
            return entry
        with self.only_one(key):
            return self.find(key) or self.add(key, build)

    def clear(self) -> None:
        """Remove every entry."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def count(self) -> int:
        """Number of entries."""
        return 0 if self.folder is None else sum(1 for _ in self.folder.glob("??/*.so"))

    def size(self) -> int:
        """Bytes of all entries."""
        return sum(stat.st_size for _, stat in self._stats())

    # -- files -------------------------------------------------------------------------------------------------

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key[2:]}.so"

    def _writable(self) -> Path:
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                probe = tempfile.NamedTemporaryFile(prefix=".probe-", dir=self.folder)  # noqa: SIM115
                probe.close()
                return self.folder
            except OSError as error:
                warnings.warn(
                    f"compiled code is not kept on disk: {self.folder} cannot be written ({error.strerror}); "
                    "set LAMINA_CACHE_DIR to a folder that can",
                    stacklevel=2,
                )
                self.folder = None
        if self.private is None:
            self.private = tempfile.TemporaryDirectory(prefix="lamina-cache-")
        return Path(self.private.name)

    @contextlib.contextmanager
    def only_one(self, key: str) -> Iterator[None]:
        """Inside, no other thread or process makes this entry; the lock of one that has died is free."""
        with self.locks.setdefault(key[:2], threading.Lock()), contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError, ImportError):  # no lock where the folder or the platform has none
                import fcntl

                folder = self._writable()
                handle = stack.enter_context(open(folder / f".lock-{key[:2]}", "w"))
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _files(self) -> Iterator[Path]:
        if self.folder is not None:
            yield from self.folder.glob("??/*.so")
            yield from self.folder.glob("??/.new-*")

    def _stats(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        for path in self._files():
            with contextlib.suppress(OSError):  # another process removed it
                found.append((path, path.stat()))
        return found

    def _maybe_evict(self) -> None:
        self.writes += 1
        if self.writes % _EVICT_EVERY != 1:
            return
        stats = sorted(self._stats(), key=lambda item: item[1].st_mtime)
        total = sum(stat.st_size for _, stat in stats)
        for path, stat in stats:
            if total <= self.limit:
                break
            path.unlink(missing_ok=True)
            total -= stat.st_size


_stores: dict[tuple[str, str], ArtifactStore] = {}


def default_store() -> ArtifactStore:
    """The store that the environment names; read anew at each call, so that tests can change it."""
    base = os.environ.get("LAMINA_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lamina"
    )
    limit = os.environ.get("LAMINA_CACHE_LIMIT", "2048")
    store = _stores.get((base, limit))
    if store is None:
        store = _stores[base, limit] = ArtifactStore(Path(base), (int(limit) if limit.isdigit() else 2048) << 20)
    return store
