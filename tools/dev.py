"""Set up and run Lamina from a clone, with nothing but a Python (>= 3.11) and a C++ compiler.

    python3 tools/dev.py setup   make .venv and install every package into it
    python3 tools/dev.py demo    set up, then train a small GPT on the machine's Python library
    python3 tools/dev.py test    set up, then run the default nox sessions
    python3 tools/dev.py nox ... set up, then run nox with these arguments

Only the standard library is used here: this file runs before anything is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "lamina-setup"

DISTRIBUTIONS = (
    "lamina-fx",
    "lamina-prims",
    "lamina-tensor",
    "lamina-dynamo",
    "lamina-aot",
    "lamina-inductor",
    "lamina-testing",
    "lamina",
)
"""In the order of installing: each needs only those before it."""

BUILD_REQUIREMENTS = ("setuptools>=77", "wheel", "pybind11>=2.13")
REQUIREMENTS = Path(__file__).with_name("requirements-dev.txt")

DEFAULT_SESSIONS = ("lint", "types", "layers", "interfaces", "deps", "unit", "triton", "docs_test", "integration")

LENGTHS = {"integration": 9, "triton": 8, "unit(lamina-inductor)": 8, "unit(lamina-dynamo)": 7,
           "unit(lamina-prims)": 6, "types": 5, "unit(lamina-tensor)": 5, "docs_test": 4}  # fmt: skip
"""Rank of the sessions by how long they take: the longest start first, so that two in parallel end together."""

PRINTING = threading.Lock()


def main(argv: list[str] | None = None) -> int:
    """Run one of the commands; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("setup", "demo", "test", "nox"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the demo or to nox")
    options = parser.parse_args(argv)
    check_machine()
    set_up()
    if options.command == "demo":
        return run([str(PYTHON), str(ROOT / "tools" / "demo" / "train_gpt.py"), *options.arguments])
    if options.command == "test":
        return run_sessions(options.arguments)
    if options.command == "nox":
        return run([str(PYTHON), "-m", "nox", *options.arguments])
    return 0


def check_machine() -> None:
    """Stop with one clear message when this Python or the compiler will not do."""
    if sys.version_info < (3, 11):  # noqa: UP036  (it runs under whatever python3 is)
        sys.exit(f"Lamina needs CPython 3.11 or newer; this is {sys.version.split()[0]} ({sys.executable})")
    if not any(shutil.which(name) for name in ("g++", "clang++")):
        sys.exit("no C++ compiler on PATH; install one (Debian: apt-get install g++) and run this again")


def set_up() -> None:
    """Make .venv and install everything, unless what is there is up to date."""
    key = fingerprint()
    if STAMP.exists() and STAMP.read_text() == key:
        return
    print(f"setting up {VENV} (once; a minute or two)", flush=True)
    if not PYTHON.exists():
        create_environment()
    pip("install", "--upgrade", "pip", *BUILD_REQUIREMENTS)
    pip("install", "-r", str(REQUIREMENTS))
    for name in DISTRIBUTIONS:
        pip("install", "--no-build-isolation", "--editable", str(ROOT / "packages" / name))
    STAMP.write_text(key)


def create_environment() -> None:
    """Make the virtual environment; say what is missing where Python came without ensurepip."""
    try:
        venv.create(VENV, with_pip=True, clear=VENV.exists())
    except subprocess.CalledProcessError as error:
        sys.exit(f"cannot make {VENV}: {error}. On Debian: apt-get install python3-venv python3-dev")


def fingerprint() -> str:
    """A hash of what decides the environment: this Python, the requirements, and each package's build files."""
    digest = hashlib.sha256(sys.version.encode())
    files = [Path(__file__), REQUIREMENTS]
    for name in DISTRIBUTIONS:
        folder = ROOT / "packages" / name
        files += [folder / "pyproject.toml", folder / "setup.py"]
        files += sorted(p for end in ("*.c", "*.cpp", "*.h", "*.hpp") for p in folder.joinpath("src").rglob(end))
        files += sorted(p for end in ("*.c", "*.cpp", "*.h", "*.hpp") for p in folder.joinpath("csrc").rglob(end))
    for path in files:
        if path.exists():
            digest.update(str(path.relative_to(ROOT)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def pip(*arguments: str) -> None:
    """Run pip in .venv; print its output only when it fails."""
    command = [str(PYTHON), "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(command)}")


def run_sessions(arguments: list[str]) -> int:
    """Run the default sessions, two at a time; a session's output is shown when it ends, the times at the end."""
    status = run([str(PYTHON), "-m", "nox", "-s", "wheel", "--no-error-on-missing-interpreters"])
    if status:
        return status
    names = [n for n in DEFAULT_SESSIONS if n != "unit"] + [f"unit({dist})" for dist in DISTRIBUTIONS]
    names.sort(key=lambda name: -LENGTHS.get(name, 0))
    begin = time.perf_counter()
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        results = list(pool.map(lambda name: run_session(name, arguments), names))
    print(f"\nall sessions: {time.perf_counter() - begin:.0f} s")
    for name, (code, seconds) in zip(names, results, strict=True):
        print(f"  {'FAILED' if code else 'passed'}  {seconds:5.0f} s  {name}")
    return max(code for code, _ in results)


def run_session(name: str, arguments: list[str]) -> tuple[int, float]:
    """Run one nox session and print its output in one piece; returns its exit status and seconds."""
    begin = time.perf_counter()
    command = [str(PYTHON), "-m", "nox", "-s", name, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    with PRINTING:
        print(f"==== {name}\n{done.stdout}", flush=True)
    return done.returncode, time.perf_counter() - begin


def environment() -> dict[str, str]:
    """The environment variables of a shell in which .venv is active."""
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "VIRTUAL_ENV": str(VENV), "PATH": path}


def run(command: list[str]) -> int:
    """Run a command in .venv's environment and return its exit status."""
    return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
