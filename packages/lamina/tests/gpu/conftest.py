"""The stub device: chosen for this folder's tests, which run in one process with the rest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from stub_device import StubDevice, build_stub

import lamina
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no g++ to build the stub with")
    return build_stub(tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="module")
def stub(library: Path) -> Iterator[StubDevice]:
    patch = pytest.MonkeyPatch()
    for variable in ("LAMINA_LIBCUDA", "LAMINA_LIBCUBLAS"):
        patch.setenv(variable, str(library))
    device = StubDevice.install(library, patch.setattr)
    before = cuda.use_provider(StubProvider())
    yield device
    lamina.compiler.reset()  # records hold graphs, and those their constants: tensors on a device that goes now
    cuda.use_provider(before)
    patch.undo()


@pytest.fixture
def device(stub: StubDevice, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubDevice]:
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path))
    stub.clear()
    stub.errors.clear()
    yield stub
    assert not stub.errors, stub.errors[0]
