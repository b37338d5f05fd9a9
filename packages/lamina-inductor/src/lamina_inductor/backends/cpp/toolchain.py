"""The C++ compiler: which one, with what flags, and how a unit becomes a shared library.

Owns everything that is said to a compiler. Units include no header, so nothing but the compiler itself is needed
(no Python headers, no libstdc++); a shared library is linked against libmvec, libm, libc and libgcc only.

``LAMINA_CXX`` (or ``CXX``) names the compiler; otherwise ``g++``, ``clang++`` and ``c++`` are looked up on PATH.
``LAMINA_CXXFLAGS`` are further flags, behind ours (``-march=x86-64-v3``, ``-fsanitize=address``); they are part of
every cache key. ``LAMINA_LIBMVEC=0`` does without glibc's vector math, as on a system that has none.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["CompileError", "Toolchain", "cpu_flags", "find_toolchain", "libc_version"]

# The loops say by pragma what is independent, so the vectoriser and a few clean-up passes are all they need.
# Measured, -O3 runs no kernel faster and takes half as long again to compile them.
_GCC_LEVEL = (
    *("-O1", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fno-tree-slp-vectorize", "-fstrict-aliasing"),
    *("-ftree-pre", "-fgcse", "-frerun-cse-after-loop", "-fexpensive-optimizations", "-fschedule-insns2"),
)
_NUMERICS = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")


class CompileError(RuntimeError):
    """The compiler rejected a unit, or could not be run. Carries the command and the first lines it printed."""


@dataclass(frozen=True)
class Toolchain:
    """One compiler and how it is called.

    Attributes:
        path: the executable.
        family: ``"gcc"`` or ``"clang"``.
        version: first line of ``--version``.
        has_libmvec: glibc's vector math of 2.35 or later can be linked.
        cpu: what ``-march=native`` stands for: a digest of the processor's flags.
    """

    path: str
    family: str
    version: str
    has_libmvec: bool
    cpu: str

    @property
    def version_line(self) -> str:
        """The compiler's own first line, without the file's stamp that makes ``version`` a key."""
        return self.version.rsplit(" ", 2)[0]

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags for compiling a unit. They decide numerics: no finite-math, no signed-zero flag, contraction on."""
        common = (
            "-std=c++17",
            "-fno-exceptions",
            "-fno-rtti",
            "-fPIC",
            "-w",
            "-pipe",
            "-fno-asynchronous-unwind-tables",
        )
        simd = ("-fopenmp-simd", "-march=native", "-mprefer-vector-width=512" if "avx512f" in cpu_flags() else "")
        if self.family == "clang" and self.has_libmvec:
            simd = (*simd, "-fveclib=libmvec")
        level = _GCC_LEVEL if self.family == "gcc" else ("-O2",)
        return tuple(f for f in (*level, *common, *_NUMERICS, *simd, *self._more()) if f)

    @staticmethod
    def _more() -> list[str]:
        text = os.environ.get("LAMINA_CXXFLAGS", "")
        try:
            return shlex.split(text)
        except ValueError as error:
            raise CompileError(f"LAMINA_CXXFLAGS={text!r} is no list of flags: {error}") from error

    @property
    def libraries(self) -> tuple[str, ...]:
        """Flags for linking."""
        mvec = ("-lmvec",) if self.has_libmvec else ()
        return ("-nostdlib", "-shared", *mvec, "-lm", "-lc", "-lgcc")

    @property
    def key(self) -> str:
        """What of the tool chain decides a binary; part of a cache key."""
        parts = (self.version, self.cpu, libc_version(), *self.flags, *self.libraries)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    def build(self, units: Sequence[str], output: Path) -> None:
        """Compile ``units`` (C++ texts; in parallel when several) and link them into the library ``output``.

        Raises:
            CompileError: the compiler failed; the message has the command and the first lines of its output.
        """
        with tempfile.TemporaryDirectory(prefix="lamina-") as folder:
            sources = [Path(folder, f"unit{i}.cpp") for i in range(len(units))]
            for path, text in zip(sources, units, strict=True):
                path.write_text(text)
            if len(sources) == 1:
                _wait(_start([self.path, *self.flags, str(sources[0]), *self.libraries, "-o", str(output)]))
                return
            objects = self._compile_parallel(sources)
            _wait(_start([self.path, *objects, *self.libraries, "-o", str(output)]))

    def _compile_parallel(self, sources: Sequence[Path]) -> list[str]:
        objects = [str(s.with_suffix(".o")) for s in sources]
        limit = max(1, len(os.sched_getaffinity(0)))
        running: list[_Job] = []
        for source, target in zip(sources, objects, strict=True):
            if len(running) >= limit:
                _wait(running.pop(0))
            running.append(_start([self.path, *self.flags, "-c", str(source), "-o", target]))
        for job in running:
            _wait(job)
        return objects


@dataclass(frozen=True)
class _Job:
    command: tuple[str, ...]
    process: subprocess.Popen[str]


def _start(command: Sequence[str]) -> _Job:
    env = {**os.environ, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, close_fds=False
        )
    except OSError as error:
        raise CompileError(f"cannot run {command[0]}: {error}") from error
    return _Job(tuple(command), process)


def _wait(job: _Job) -> None:
    text, _ = job.process.communicate()
    if job.process.returncode:
        shown = "\n".join(text.splitlines()[:30])
        raise CompileError(f"{' '.join(job.command)} failed with status {job.process.returncode}:\n{shown}")


@functools.cache
def cpu_flags() -> frozenset[str]:
    """Names of the processor's features, as the kernel spells them; empty where it does not tell."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


@functools.cache
def libc_version() -> str:
    """Such as ``"glibc 2.36"``; another libc gives its name as far as Python knows it."""
    name, version = platform.libc_ver()
    return f"{name or 'libc'} {version}".strip()


def _glibc_has_vector_math() -> bool:
    name, version = platform.libc_ver()
    if name != "glibc" or platform.machine() != "x86_64":
        return False
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) >= (2, 35)


def _candidates() -> list[str]:
    named = [os.environ[v] for v in ("LAMINA_CXX", "CXX") if os.environ.get(v)]
    return [named[0]] if named else ["g++", "clang++", "c++"]


def find_toolchain() -> Toolchain | None:
    """The compiler to use, or None when there is none. Looked up again when PATH or the variables change."""
    names = _candidates()
    for name in names:
        path = shutil.which(name)
        if path:
            found = _probe(os.path.realpath(path), path)
            if found is not None:
                return replace(found, has_libmvec=False) if os.environ.get("LAMINA_LIBMVEC") == "0" else found
    return None


@functools.cache
def _probe(real: str, path: str) -> Toolchain | None:
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    family = "clang" if "clang" in text.lower() else "gcc"
    stamp = os.stat(real)
    cpu = hashlib.sha256(" ".join(sorted(cpu_flags()) or [platform.processor()]).encode()).hexdigest()[:16]
    version = f"{text.splitlines()[0]} {stamp.st_size} {stamp.st_mtime_ns}"
    return Toolchain(path, family, version, _glibc_has_vector_math(), cpu)
