"""What users do with a device, on the stub with two devices; and the table of the whole corpus."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "gpu"))
from conformance import Outcome, table  # noqa: E402
from features import FEATURES, LeftOut  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def stub() -> Iterator[None]:
    before = cuda.use_provider(StubProvider(devices=2, memory=1 << 28))
    yield
    cuda.use_provider(before)


@pytest.mark.parametrize("name", FEATURES)
def test_features(name: str) -> None:
    try:
        FEATURES[name]()
    except LeftOut as error:
        pytest.skip(f"needs {error}")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/gpu/conformance.py"), "--jobs", "1", *arguments]
    environment = {**os.environ, "LAMINA_CUDA_PROVIDER": "stub"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_corpus_is_run_in_parts() -> None:
    done = run("--parts", "eager", "features", "--every", "60")
    assert done.returncode == 0, done.stdout
    assert "0 wrong, 0 left out" in done.stdout.splitlines()[-1] and "\nfeatures" in done.stdout


def test_what_fails_is_said_and_makes_the_script_fail() -> None:
    done = run("--parts", "graphs", "--every", "100")  # there is no driver to run them
    assert done.returncode == 1 and "WRONG graphs" in done.stdout and "1 wrong, 0 left out" in done.stdout


def test_the_table_counts_what_was_not_come_to() -> None:
    found = [Outcome("eager", "add", 12, (), 1.0), Outcome("eager", "mul", 9, ("sample 3: wrong",), 2.0)]
    text = table(found, [("eager", "add"), ("eager", "mul"), ("eager", "div")])
    assert text.splitlines()[1].split()[:6] == ["eager", "2", "21", "1", "1", "3"]
