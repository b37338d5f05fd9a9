"""The checks for two GPUs on the stub with two devices: their eager parts (programs run as they are written)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lamina
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools" / "gpu"))
import two_devices

LONG = ("copies_wait_for_the_work_before_them",)


@pytest.fixture(scope="module", autouse=True)
def two() -> Iterator[None]:
    before = cuda.use_provider(StubProvider(devices=2, memory=1 << 28))
    yield
    cuda.use_provider(before)


@pytest.mark.parametrize("name", [f.__name__ for f in two_devices.CHECKS if f.__name__ not in LONG])
def test_checks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_written(function: Any, **options: Any) -> Any:
        return function

    monkeypatch.setattr(lamina, "compile", as_written)
    next(f for f in two_devices.CHECKS if f.__name__ == name)()
