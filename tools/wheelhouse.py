"""Build a wheel of every package into wheelhouse/, only where its sources changed.

    python tools/wheelhouse.py [distribution ...]

Unit sessions install from here, so a package is tested as a user gets it: with its declared siblings alone. A wheel is
built from a copy of the sources: nothing that another build left behind gets in, and builds for several versions of
Python can run at once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dev import DISTRIBUTIONS, ROOT
from locking import locked

WHEELHOUSE = ROOT / "wheelhouse"
_PARTS = ("pyproject.toml", "setup.py", "README.md", "src", "csrc", "MANIFEST.in")
_IGNORED = {"__pycache__", "build"}


_BUILT = {".so", ".o", ".pyc"}


def build(names: tuple[str, ...] = DISTRIBUTIONS, python: str = sys.executable) -> Path:
    """Build the wheels of these distributions for this interpreter; returns the folder.

    ``python`` has what building needs: the build requirements and the siblings with headers.
    """
    tag = subprocess.run(
        [python, "-c", "import sys; print(sys.implementation.cache_tag)"], text=True, capture_output=True, check=True
    ).stdout.strip()
    folder = WHEELHOUSE / tag
    with locked(folder):
        for name in names:
            _build_one(name, folder, python)
    return folder


def _build_one(name: str, folder: Path, python: str) -> None:
    """Build one wheel unless it is there and its sources are as they were."""
    stamp = folder / f"{name}.sha256"
    key = source_hash(ROOT / "packages" / name)
    if stamp.exists() and stamp.read_text() == key and list(folder.glob(f"{name.replace('-', '_')}-*.whl")):
        return
    for old in folder.glob(f"{name.replace('-', '_')}-*.whl"):
        old.unlink()
    print(f"wheel: {name} ({folder.name})", flush=True)
    command = [sys.executable, "-m", "pip", "--python", python, "wheel", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--no-build-isolation", "--wheel-dir", str(folder)]
    with tempfile.TemporaryDirectory(prefix="lamina-wheel-") as scratch:
        copy = copy_sources(ROOT / "packages" / name, Path(scratch) / name)
        subprocess.run([*command, str(copy)], check=True, env=os.environ)
    stamp.write_text(key)


def wheel_of(folder: Path, dist: str) -> Path:
    """The one wheel of a distribution in the wheelhouse."""
    (wheel,) = folder.glob(f"{dist.replace('-', '_')}-*.whl")
    return wheel


def sources(package: Path) -> Iterator[Path]:
    """The files that go into the package's wheel, nothing that was built."""
    for part in _PARTS:
        root = package / part
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            parts = path.relative_to(package).parts
            made = path.suffix in _BUILT or _IGNORED & set(parts) or any(p.endswith(".egg-info") for p in parts)
            if path.is_file() and not made:
                yield path


def copy_sources(package: Path, target: Path) -> Path:
    """Copy what goes into the wheel; returns the copy."""
    for path in sources(package):
        copy = target / path.relative_to(package)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return target


def source_hash(package: Path) -> str:
    """A hash of everything that goes into the package's wheel, and of the headers that its extensions share."""
    digest = hashlib.sha256()
    for path in sources(package):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    if (package / "setup.py").exists():
        for path in sorted((ROOT / "packages" / "lamina-fx" / "src").rglob("*.h")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    build(tuple(sys.argv[1:]) or DISTRIBUTIONS)
