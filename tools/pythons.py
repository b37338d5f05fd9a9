"""One environment per CPython: found, made, kept, and filled with the wheels of this tree built for it.

Nothing of one version can reach another: each has its own environment (``.nox/pythons/<version>``), its own wheels
(``wheelhouse/<tag>``, built from a copy of the sources, see wheelhouse.py) and its own cache of compiled programs.
An environment is made again when its interpreter or what the packages require changes; a package is installed again
when its sources change.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from dev import BUILD_REQUIREMENTS, DISTRIBUTIONS, ROOT
from environments import TEST_REQUIREMENTS, name_of, requirements
from wheelhouse import build, wheel_of

HOME = ROOT / ".nox" / "pythons"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PARALLEL = "pytest-xdist>=3.6"
PLACES = "on PATH, among pyenv's versions, among uv's"

CAPTURES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests_integration").glob("test_capture_*.py"))
TESTS: tuple[tuple[str, ...], ...] = (
    ("packages/lamina-dynamo/tests",),
    ("packages/lamina-fx/tests",),
    ("packages/lamina-tensor/tests",),
    ("packages/lamina-aot/tests",),
    ("packages/lamina/tests",),
    ("packages/lamina-inductor/tests/test_launcher.py",),
    ("packages/lamina-inductor/tests/test_robustness.py",),
    ("tests_integration/test_models.py", "tests_integration/test_training.py", "tests_integration/test_functions.py"),
    # the longest file first: a file stays with one worker
    ("tests_integration/test_user_programs.py", "tests_integration/test_random_functions.py", *CAPTURES),
)
"""What runs under each version, one process of pytest an entry: whatever depends on the interpreter (bytecode, frames,
the C and C++ extensions), and whole programs through all layers."""


def find_python(version: str) -> str | None:
    """An interpreter of this minor version, on PATH, among pyenv's versions or among uv's; None when there is none."""
    found = shutil.which(f"python{version}")
    candidates = [sys.executable] if sys.version_info[:2] == tuple(map(int, version.split("."))) else []
    candidates += [found] if found else []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += newest(pyenv.glob(f"versions/{version}.*/bin/python"))
    candidates += newest((Path.home() / ".local/share/uv/python").glob(f"cpython-{version}.*/bin/python{version}"))
    return next((python for python in candidates if is_version(python, version)), None)


def newest(paths: Iterable[Path]) -> list[str]:
    """The highest patch release first: 3.12.10 is newer than 3.12.9."""

    def release(path: Path) -> list[int]:
        digits = path.parents[1].name.removeprefix("cpython-").split("-")[0].split(".")
        return [int(part) for part in digits if part.isdigit()]

    return [str(path) for path in sorted(paths, key=release, reverse=True)]


def is_version(python: str, version: str) -> bool:
    """Whether it runs (a shim of pyenv need not) and is CPython of this minor version, with its lock."""
    program = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2], sys.abiflags)"
    done = subprocess.run([python, "-c", program], text=True, capture_output=True, check=False)
    return done.returncode == 0 and done.stdout.split() == ["cpython", version]


def environment(version: str, interpreter: str) -> Path:
    """The Python of this version's environment, with every package of this tree installed in it."""
    folder = HOME / version
    python = folder / "bin" / "python"
    stamp = folder / "made-for"
    wanted = [*BUILD_REQUIREMENTS, *third_party(), *TEST_REQUIREMENTS, PARALLEL]
    key = fingerprint(interpreter, wanted)
    if not stamp.exists() or stamp.read_text() != key:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"making {folder}", flush=True)
        # without pip: it is the caller's that installs, and some distributions leave ensurepip out
        subprocess.run([interpreter, "-m", "venv", "--without-pip", str(folder)], check=True)
        pip(python, "install", *wanted)
        stamp.write_text(key)
    for name in DISTRIBUTIONS:
        install(python, name)
    return python


def third_party() -> list[str]:
    """What the packages require of others."""
    return sorted({r for name in DISTRIBUTIONS for r in requirements(name) if name_of(r) not in DISTRIBUTIONS})


def fingerprint(interpreter: str, wanted: list[str]) -> str:
    """A hash of what an environment is made of."""
    version = subprocess.run([interpreter, "-VV"], text=True, capture_output=True, check=True).stdout
    return hashlib.sha256("\n".join([interpreter, version, *wanted]).encode()).hexdigest()


def install(python: Path, name: str) -> None:
    """Install a package's wheel, built if need be, unless that very wheel is installed."""
    wheels = build((name,), str(python))
    installed = python.parents[1] / f"{name}.sha256"
    key = (wheels / f"{name}.sha256").read_text()
    if not installed.exists() or installed.read_text() != key:
        pip(python, "install", "--no-deps", "--no-index", "--force-reinstall", str(wheel_of(wheels, name)))
        installed.write_text(key)


def pip(python: Path, *arguments: str) -> None:
    """Run this environment's pip for another one."""
    command = [sys.executable, "-m", "pip", "--python", str(python), *arguments]
    subprocess.run([*command, "--quiet", "--disable-pip-version-check"], check=True)
