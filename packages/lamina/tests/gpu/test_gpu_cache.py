"""Artifacts of GPU programs on disk, where processes die, meet, or find what is not for them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stub_device import StubDevice
from stub_process import run_process

import lamina
from lamina.records import records
from lamina_inductor.backends.triton import backend, build
from lamina_inductor.cache.store import default_store

PROGRAM = """
run = lamina.compile(lambda x: x.sin().softmax(-1))
x = lamina.arange(140).reshape(7, 20) / 100.0
difference = (run(x.cuda()).cpu() - x.sin().softmax(-1)).abs().max()
if device.programs:  # the stub runs the kernels' IR, which is not in the artifact
    assert difference < 1e-5 and not device.errors
print("compiled", len(device.programs), "launched", len(device.launches))
"""
SLOW = """
import time
from lamina_inductor.backends.triton import build
def slow(*given):
    print("compiling", flush=True)
    time.sleep({seconds})
    return device.compile_kernels(*given)
build.compile_kernels = slow
"""
SLOW_WRITE = """
import time
from lamina_inductor.cache import store
pack = store._pack
def slow(*parts):
    print("writing", flush=True)
    time.sleep(60)
store._pack = slow
"""


def files(folder: Path, pattern: str = "*.so") -> list[Path]:
    return [path for path in folder.glob(f"??/{pattern}") if not path.name.startswith(".new")]


@pytest.mark.parametrize(("begins", "where"), [(SLOW.format(seconds=60), "compiling"), (SLOW_WRITE, "writing")])
def test_a_process_that_is_killed_leaves_nothing_that_stops_the_next(
    device: StubDevice, tmp_path: Path, begins: str, where: str
) -> None:
    library = device.library._name
    with run_process(library, tmp_path, begins + PROGRAM) as killed:
        assert killed.stdout is not None and killed.stdout.readline().strip() == where
        waiting = run_process(library, tmp_path, PROGRAM)
        killed.kill()
    assert waiting.communicate(timeout=60)[0].strip() == "compiled 1 launched 1"
    assert run_process(library, tmp_path, PROGRAM).communicate(timeout=60)[0].strip() == "compiled 0 launched 1"
    assert len(files(tmp_path)) == 1


def test_of_processes_that_want_one_program_one_compiles(device: StubDevice, tmp_path: Path) -> None:
    code = SLOW.format(seconds=1) + PROGRAM
    running = [run_process(device.library._name, tmp_path, code) for _ in range(3)]
    said = sorted(process.communicate(timeout=120)[0].strip() for process in running)
    assert said == ["compiled 0 launched 1", "compiled 0 launched 1", "compiling\ncompiled 1 launched 1"]
    assert len(files(tmp_path)) == 1


def compiled(device: StubDevice) -> int:
    """Compile the program once more, in a way that looks at the disk; how many programs were emitted."""
    return run_compiled(device)[0]


def run_compiled(device: StubDevice) -> tuple[int, Any]:
    """The same, and the artifact."""
    before = len(device.programs)
    run, x = lamina.compile(lambda x: x.sin().softmax(-1)), lamina.ones(7, 20)
    assert (run(x.cuda()).cpu() - 0.05).abs().max() < 1e-6
    return len(device.programs) - before, next(iter(records()[-1].artifacts.values()))


def test_the_cache_of_another_triton_is_made_again(
    device: StubDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (compiled(device), compiled(device)) == (1, 0)
    monkeypatch.setattr(build, "toolchain", lambda: "triton 9.9.9")
    assert (compiled(device), compiled(device)) == (1, 0)
    assert len(files(tmp_path)) == 1


def test_the_cache_of_another_gpu_is_neither_found_nor_taken(
    device: StubDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    info = backend.gpu_info()
    monkeypatch.setattr(backend, "gpu_info", lambda index=0: replace(info, sm=80))
    assert compiled(device) == 1
    (other,) = files(tmp_path)
    monkeypatch.setattr(backend, "gpu_info", lambda index=0: info)
    assert compiled(device) == 1
    (own,) = [path for path in files(tmp_path) if path != other]
    shutil.copyfile(other, own)  # whole, but for sm_80
    assert compiled(device) == 1
    count, artifact = run_compiled(device)
    assert count == 0 and artifact.description.sm == info.sm


@pytest.mark.parametrize("at", [0, 5, 200, -60, -1])
def test_a_file_with_one_wrong_byte_is_made_again(device: StubDevice, tmp_path: Path, at: int) -> None:
    assert compiled(device) == 1
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + (whole[at + 1 :] if at != -1 else b""))
    assert default_store().find(path.parent.name + path.stem) is None
    assert (compiled(device), compiled(device)) == (1, 0)
    assert default_store().find(path.parent.name + path.stem) is not None
