"""Compiled code on disk, seen by whole processes: damage, missing folders and compilers, races and kills.

Each case runs one small program in processes of its own; whatever happened to an earlier one, the next gives the right
results, compiles what is not there, and leaves a cache that the one after it uses.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = """
    import lamina

    @lamina.compile
    def f(x):
        return (x * 2 + 1).exp().sum()

    x = lamina.arange(4.0, requires_grad=True)
    y = f(x)
    y.backward()
    assert abs(y.item() - 1268.5) < 1, y
    assert lamina.allclose(x.grad, 2 * (x.detach() * 2 + 1).exp(), rtol=1e-4), x.grad
    assert lamina.compiler.summary().graphs == 1
    print("right")
"""
LIMIT = 120


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    """A compiler that notes each call in ``calls`` and then does the work."""
    real = shutil.which("g++") or shutil.which("clang++")
    assert real is not None, "these tests need a C++ compiler"
    script = tmp_path / "tools" / Path(real).name
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) ;; *) echo x >> {tmp_path}/calls;; esac\nexec {real} "$@"\n'
    )
    script.chmod(0o755)
    return script


def start(cache: Path | str, compiler: Path | None, program: str = PROGRAM, **extra: str) -> subprocess.Popen[str]:
    env = {**os.environ, "LAMINA_CACHE_DIR": str(cache), **extra}
    if compiler is not None:
        env["LAMINA_CXX"] = str(compiler)
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """What the process said on stderr, once it has given the right results."""
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0 and out.strip().endswith("right"), err
    return err


def calls(tmp_path: Path) -> int:
    """How often the compiler was called since the last time."""
    log = tmp_path / "calls"
    count = len(log.read_text().splitlines()) if log.exists() else 0
    log.write_text("")
    return count


def assert_cache_is_used(cache: Path, compiler: Path, tmp_path: Path) -> None:
    calls(tmp_path)
    assert finish(start(cache, compiler)) == ""
    assert calls(tmp_path) == 0


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "flipped in the library": lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
    "flipped in the description": lambda data: data[:-200] + bytes([data[-200] ^ 1]) + data[-199:],
    "flipped in the trailer": lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
    "of another version": lambda data: data[:-8] + b"\xff" * 8,
}


def test_damaged_entries_are_built_again(tmp_path: Path, compiler: Path) -> None:
    cache = tmp_path / "cache"
    assert finish(start(cache, compiler)) == "" and calls(tmp_path) > 0
    for damage in DAMAGE.values():
        for path in cache.glob("??/*.so"):
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(damage(data))
        assert finish(start(cache, compiler)) == ""
        assert calls(tmp_path) > 0
    assert_cache_is_used(cache, compiler, tmp_path)


def test_a_folder_that_nobody_can_write(compiler: Path) -> None:
    said = finish(start("/proc/lamina-cache", compiler))
    assert said.count("LAMINA_CACHE_DIR") == 1 and "Traceback" not in said


def test_a_folder_that_is_removed_during_use(tmp_path: Path, compiler: Path) -> None:
    cache = tmp_path / "cache"
    program = f"""
        import shutil
        import lamina
        f = lamina.compile(lambda x: (x * 2 + 1).exp().sum())
        g = lamina.compile(lambda x: (x * 3 + 1).tanh().sum())
        x = lamina.arange(4.0, requires_grad=True)
        y = f(x)
        shutil.rmtree({str(cache)!r})
        y.backward()
        assert lamina.allclose(x.grad, 2 * (x.detach() * 2 + 1).exp(), rtol=1e-4)
        assert abs(g(x).item() - (x * 3 + 1).tanh().sum().item()) < 1e-4
        assert abs(f(x).item() - 1268.5) < 1
        print("right")
    """
    assert finish(start(cache, compiler, program)) == ""


def test_processes_that_compile_the_same_at_once(tmp_path: Path, compiler: Path) -> None:
    cache = tmp_path / "cache"
    running = [start(cache, compiler) for _ in range(3)]
    assert [finish(process) for process in running] == [""] * 3
    together = calls(tmp_path)
    finish(start(tmp_path / "other", compiler))
    assert together == calls(tmp_path)  # the others waited for the first
    assert not list(cache.glob("??/.new-*"))


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + LIMIT
    while not path.exists():
        assert time.monotonic() < end and process.poll() is None, "the process never came to where it is killed"
        time.sleep(0.01)


def test_a_kill_while_the_compiler_runs(tmp_path: Path, compiler: Path) -> None:
    cache, marker = tmp_path / "cache", tmp_path / "pid"
    slow = tmp_path / "slow" / compiler.name
    slow.parent.mkdir()
    body = f'case "$*" in *--version*) exec {compiler} "$@";; esac\necho $$ > {marker}.new; mv {marker}.new {marker}'
    slow.write_text(f"#!/bin/sh\n{body}\nexec sleep 600\n")
    slow.chmod(0o755)
    process = start(cache, slow)
    wait_for(marker, process)
    process.kill()
    process.communicate(timeout=LIMIT)
    try:  # the compiler goes on, but nobody waits for it
        assert finish(start(cache, compiler)) == ""
        assert_cache_is_used(cache, compiler, tmp_path)
    finally:
        os.kill(int(marker.read_text()), signal.SIGKILL)


def test_a_kill_while_an_entry_is_written(tmp_path: Path, compiler: Path) -> None:
    cache = tmp_path / "cache"
    kill = """
    import os, pathlib, signal
    write = pathlib.Path.write_bytes
    def half(path, data):
        write(path, bytes(data)[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    pathlib.Path.write_bytes = half
    """
    process = start(cache, compiler, textwrap.dedent(kill) + textwrap.dedent(PROGRAM))
    process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGKILL
    assert list(cache.glob("??/.new-*")) and all(path.name.startswith(".new-") for path in cache.glob("??/*"))
    assert finish(start(cache, compiler)) == ""
    assert_cache_is_used(cache, compiler, tmp_path)


def test_without_a_compiler(tmp_path: Path) -> None:
    said = finish(start(tmp_path / "cache", None, PATH=str(tmp_path / "nothing"), CXX="", LAMINA_CXX=""))
    assert said.count("no C++ compiler found") == 1 and "Traceback" not in said
