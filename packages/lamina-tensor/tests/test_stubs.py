"""The written types are those of the operators there are."""

from __future__ import annotations

from pathlib import Path

import lamina_tensor
from lamina_tensor.stubs import stub_text


def test_stub_is_current() -> None:
    path = Path(lamina_tensor.__file__).with_name("__init__.pyi")
    assert path.read_text() == stub_text(), "run python -m lamina_tensor.stubs"
