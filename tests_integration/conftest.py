"""Whole-stack tests run with a cache folder of their own and forget what was compiled between tests."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("LAMINA_CACHE_DIR", tempfile.mkdtemp(prefix="lamina-tests-"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import lamina


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test starts with nothing compiled and the same random numbers."""
    lamina.compiler.reset()
    lamina.manual_seed(0)
    yield
    lamina.compiler.reset()
