"""Registers and spills of machine code, by the ``cuobjdump`` that triton's wheels contain."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path

__all__ = ["resource_usage"]


def resource_usage(cubin: bytes) -> tuple[int | None, int | None]:
    """(registers, bytes of stack) of a thread; (None, None) where the tool is not there or says nothing."""
    tool = _tool()
    if tool is None:
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"REG:(\d+) STACK:(\d+)", result.stdout)
    return (int(found[1]), int(found[2])) if found else (None, None)


def _tool() -> Path | None:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return path if path.exists() else None
