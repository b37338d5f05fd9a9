"""Environments in which one package is tested with nothing but its declared siblings.

Third-party packages are installed once, into a folder that every environment shares; each environment then gets the
wheels of one package and of the siblings that it declares, and no other. (That a package declares the third-party
packages it imports is checked by dependencies.py.)
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from dev import DISTRIBUTIONS, ROOT
from locking import locked
from wheelhouse import build, wheel_of

HOME = ROOT / ".nox" / "isolated"
TEST_REQUIREMENTS = ("pytest>=8", "hypothesis>=6.100", "sympy>=1.12")


def isolated(dist: str, extra: tuple[str, ...] = ()) -> Path:
    """The Python of an environment with ``dist``, its siblings, and the siblings in ``extra`` (the test kit)."""
    shared = third_party()
    wheels = build()
    folder = HOME / dist
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for old in site.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    (site / "third_party.pth").write_text(f"{shared}\n")
    names = [wheel_of(wheels, name) for name in closure(dist, *extra)]
    install = ["install", "--quiet", "--no-deps", "--no-index", "--target", str(site), *map(str, names)]
    subprocess.run([sys.executable, "-m", "pip", *install, "--disable-pip-version-check"], check=True)
    return python


def closure(*dists: str) -> list[str]:
    """These distributions and every sibling they need, directly or not, in the order of installing."""
    needed: set[str] = set()
    pending = list(dists)
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += [d for d in map(name_of, requirements(name)) if d in DISTRIBUTIONS]
    return [name for name in DISTRIBUTIONS if name in needed]


def third_party() -> Path:
    """A folder with what the packages need from others, and what tests need; made again when that changes."""
    wanted = sorted({r for name in DISTRIBUTIONS for r in requirements(name) if name_of(r) not in DISTRIBUTIONS})
    wanted += TEST_REQUIREMENTS
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:16]
    folder = HOME / f"third-party-{key}"
    with locked(HOME):
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *wanted]
            subprocess.run([*command, "--disable-pip-version-check"], check=True)
            (folder / "done").touch()
    return folder


def requirements(dist: str) -> list[str]:
    """What a package declares."""
    text = (ROOT / "packages" / dist / "pyproject.toml").read_text()
    return tomllib.loads(text)["project"]["dependencies"]


def name_of(requirement: str) -> str:
    """The distribution's name in a requirement such as ``numpy>=2``."""
    return re.split(r"[<>=!~ ;\[]", requirement)[0]
