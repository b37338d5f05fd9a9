"""Run the tests of the packages with C and C++ code under the address and undefined-behaviour sanitizers.

    python tools/sanitize.py            # builds into .nox/sanitize and runs the tests of all three
    python tools/sanitize.py lamina-dynamo -- -k hook

The packages are copied, built with ``-fsanitize`` and put in front of ``PYTHONPATH``; this Python runs their tests
with the sanitizers' libraries loaded first. Leaks are not looked for: the interpreter keeps memory until its end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".nox" / "sanitize"
TESTS = {
    "lamina-tensor": ("",),
    "lamina-dynamo": ("",),
    "lamina-inductor": (
        "test_launcher.py", "test_bad_indices.py", "test_write_backs.py", "test_robustness.py", "test_cpp_steps.py",
    ),
}  # fmt: skip
"""The distributions with extensions, in the order of building, and their tests that reach the extensions ("": all)."""

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
LIBRARIES = ("libasan.so", "libubsan.so", "libstdc++.so")
"""Loaded before everything else. libstdc++ too: the address sanitizer replaces its throw."""


def copy(home: Path) -> list[Path]:
    """Copies of the sources of all packages, without what was built from them; their ``src`` folders."""
    home.mkdir(parents=True, exist_ok=True)
    folders = []
    for package in sorted((ROOT / "packages").iterdir()):
        target = home / package.name
        shutil.rmtree(target / "src", ignore_errors=True)
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
        shutil.copytree(package / "src", target / "src", ignore=ignored)
        for name in ("pyproject.toml", "setup.py", "README.md"):
            if (package / name).exists():
                shutil.copy(package / name, target / name)
        folders.append(target / "src")
    return folders


def preloaded(compiler: str) -> str:
    """What ``LD_PRELOAD`` must name.

    Raises:
        RuntimeError: the compiler brings no such library.
    """
    found = []
    for name in LIBRARIES:
        told = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        path = Path(told.stdout.strip())
        if not path.is_absolute():
            raise RuntimeError(f"{compiler} has no {name}: install its sanitizer libraries")
        found.append(str(path.resolve()))
    return ":".join(found)


def environment(folders: list[Path], compiler: str) -> dict[str, str]:
    """The environment of a test run."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "LD_PRELOAD": preloaded(compiler),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=97",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=98",
        "PYTHONMALLOC": "malloc",
        "LAMINA_CHECK": "1",
        "LAMINA_CACHE_DIR": str(HOME / "cache"),
    }


def build(dist: str, home: Path, folders: list[Path]) -> None:
    """Build one package's extensions in its copy."""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "CFLAGS": FLAGS, "LDFLAGS": FLAGS}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=home / dist, env=paths, check=True)


def check_what_is_loaded(paths: dict[str, str]) -> None:
    """Refuse to test other extensions than those built here.

    Raises:
        RuntimeError: another file is loaded.
    """
    code = "import lamina_tensor._C as a, lamina_dynamo._core as b; print(a.__file__, b.__file__, sep='\\n')"
    done = subprocess.run([sys.executable, "-P", "-c", code], env=paths, capture_output=True, text=True, check=True)
    for file in done.stdout.split():
        if HOME not in Path(file).parents:
            raise RuntimeError(f"{file} would be tested instead of the one built in {HOME}")


def main(arguments: list[str]) -> int:
    """Build and test; the number of packages whose tests failed."""
    own, _, rest = (arguments, "", []) if "--" not in arguments else _split(arguments)
    wanted = own or list(TESTS)
    folders = copy(HOME)
    for dist in TESTS:
        build(dist, HOME, folders)
    paths = environment(folders, os.environ.get("CC", "gcc"))
    check_what_is_loaded(paths)
    failed = 0
    for dist in wanted:
        tests = [str(ROOT / "packages" / dist / "tests" / name) for name in TESTS[dist]]
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *rest]
        done = subprocess.run(command, env=paths, check=False)
        failed += done.returncode != 0
    return failed


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    place = arguments.index("--")
    return arguments[:place], "--", arguments[place + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
