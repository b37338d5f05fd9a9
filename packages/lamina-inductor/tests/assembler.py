"""What the assembler that triton brings says of a kernel."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

__all__ = ["notices"]


def notices(triton: Any, ptx: str) -> str:
    """The assembler's notices for sm_90; skips the test where ``triton`` has none that takes the text."""
    folder = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    for name in ("ptxas", "ptxas-blackwell"):  # newer texts are for the second
        if (folder / name).exists():
            command = [str(folder / name), "-arch=sm_90a", "-v", "-", "-o", "/dev/null"]
            result = subprocess.run(command, input=ptx, capture_output=True, text=True, check=False)
            if result.returncode == 0:
                return result.stderr
    pytest.skip("this triton has no assembler that takes the text")
