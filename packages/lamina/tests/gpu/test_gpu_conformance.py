"""Operators' samples compiled for the GPU, on the stub of the driver: every ninth operator (tools/gpu has the rest)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[4] / "tools" / "gpu"))
import compiled_samples
import factorisations

EVERY = int(os.environ.get("LAMINA_GPU_SAMPLES_EVERY", "9"))
ALWAYS = ("full", "expand_as", *factorisations.FACTORISATIONS)
"""What once failed on a GPU or here."""
REFUSED = {"dot_general", "linear"}
"""Operators with samples in half types, whose products the stub's library refuses."""


@pytest.mark.parametrize("id", sorted({*compiled_samples.names()[::EVERY], *ALWAYS} - REFUSED))
@pytest.mark.usefixtures("device")
def test_compiled_samples(id: str) -> None:
    count, wrong = compiled_samples.check_operator(id)
    assert count
    assert not wrong, wrong[:3]
