"""The command ``lamina``: each subcommand, on a cache of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import lamina
from lamina.cli import main
from lamina_fx.cuda_messages import INSTALL
from lamina_inductor import cache_info, clear_cache, toolchain

SOURCES = Path(__file__).parents[2]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "cache"


def _fill() -> None:
    lamina.compile(lambda x: (x * 3).sin())(lamina.ones(5))
    assert cache_info().entries == 1


def test_doctor_tells_what_is_there(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = toolchain()
    assert main(["doctor"]) == (1 if found is None else 0)
    text = capsys.readouterr().out
    rows = ["python", "lamina-fx", "lamina-inductor", "compiler", "vector units", "cores", "cache", "GPU driver"]
    for row in [*rows, "cupy", "triton", "device cuda"]:
        assert row in text, row
    if found is not None:
        assert found.path in text


def test_doctor_tells_the_version_of_cupy(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "cupy.py").touch()
    metadata = tmp_path / "cupy_cuda13x-14.1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: cupy-cuda13x\nVersion: 14.1.2\n")
    (metadata / "top_level.txt").write_text("cupy\n")
    settings = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "LAMINA_LIBCUDA": "/nowhere/libcuda.so.1"}
    command = [sys.executable, "-m", "lamina", "doctor"]
    text = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False).stdout
    assert "14.1.2 (cupy-cuda13x)" in text
    assert "there is no NVIDIA driver (LAMINA_LIBCUDA=/nowhere/libcuda.so.1 does not load)" in text


def test_doctor_tells_of_the_stub_provider(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CUDA_PROVIDER", "stub")
    main(["doctor"])
    assert "a stub that runs eager code only (LAMINA_CUDA_PROVIDER=stub)" in capsys.readouterr().out


def test_every_message_names_one_extra(cache: Path) -> None:
    """What users install brings all that compiled CUDA code needs."""
    assert INSTALL == "pip install 'lamina[cuda]'"
    extra = {Requirement(r).name for r in requires("lamina") or () if "extra ==" in r}
    assert extra == {"lamina-tensor", "lamina-inductor"}
    written = [p for p in SOURCES.glob("*/src/**/*.py") if re.search(r"install '?lamina-\w+\[", p.read_text())]
    assert not written


def test_doctor_without_a_compiler(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CXX", "no-such-compiler")
    assert main(["doctor"]) == 1
    assert "none found" in capsys.readouterr().out


def test_cache_info_and_clear(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "info"]) == 0
    assert f"{cache}: 0 entries" in capsys.readouterr().out
    assert not cache.exists()  # asking makes nothing
    _fill()
    assert main(["cache", "info"]) == 0
    assert f"{cache}: 1 entry" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "removed" in capsys.readouterr().out
    assert (cache_info().entries, cache_info().bytes) == (0, 0)


def test_clearing_gives_what_was_there(cache: Path) -> None:
    _fill()
    before = clear_cache()
    assert before.entries == 1
    assert before.bytes > 0
    assert before.folder == cache


def test_the_command_imports_no_library_for_gpus(cache: Path) -> None:
    program = (
        "import sys; from lamina.cli import main; main(['doctor']); main(['cache', 'info'])\n"
        "found = {m.partition('.')[0] for m in sys.modules} & {'cupy', 'triton', 'torch'}; assert not found, found"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
