"""Build a wheel of every package into wheelhouse/, only where its sources changed.

    python tools/wheelhouse.py [distribution ...]

Unit sessions install from here, so a package is tested as a user gets it: with its declared siblings alone.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from dev import DISTRIBUTIONS, ROOT

WHEELHOUSE = ROOT / "wheelhouse"
_PARTS = ("pyproject.toml", "setup.py", "README.md", "src", "csrc", "MANIFEST.in")
_IGNORED = {"__pycache__", "build"}


def build(names: tuple[str, ...] = DISTRIBUTIONS, python: str = sys.executable) -> Path:
    """Build the wheels of these distributions for this interpreter; returns the folder."""
    tag = subprocess.run(
        [python, "-c", "import sys; print(sys.implementation.cache_tag)"], text=True, capture_output=True, check=True
    ).stdout.strip()
    folder = WHEELHOUSE / tag
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        stamp = folder / f"{name}.sha256"
        key = source_hash(ROOT / "packages" / name)
        if stamp.exists() and stamp.read_text() == key and list(folder.glob(f"{name.replace('-', '_')}-*.whl")):
            continue
        for old in folder.glob(f"{name.replace('-', '_')}-*.whl"):
            old.unlink()
        print(f"wheel: {name} ({tag})", flush=True)
        links = " ".join(filter(None, (str(folder), os.environ.get("PIP_FIND_LINKS"))))
        command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
        if python == sys.executable:  # .venv has what building needs
            command.append("--no-build-isolation")
        command += [str(ROOT / "packages" / name)]
        subprocess.run(command, check=True, env={**os.environ, "PIP_FIND_LINKS": links})
        stamp.write_text(key)
    return folder


def source_hash(package: Path) -> str:
    """A hash of everything that goes into the package's wheel."""
    digest = hashlib.sha256()
    for part in _PARTS:
        root = package / part
        files = sorted(root.rglob("*")) if root.is_dir() else [root]
        for path in files:
            if not path.is_file() or path.suffix in {".so", ".o", ".pyc"}:
                continue
            if _IGNORED & set(path.parts) or any(p.endswith(".egg-info") for p in path.parts):
                continue
            digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    build(tuple(sys.argv[1:]) or DISTRIBUTIONS)
