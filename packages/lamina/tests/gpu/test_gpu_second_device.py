"""Programs on the second of two devices, on the stub of the driver: a process of its own, which sees two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

PROGRAM = """
import sys
import pytest
sys.path += [{here!r}, {tools!r}]
from pathlib import Path
from stub_device import StubDevice
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider

StubDevice.install(Path({library!r}), pytest.MonkeyPatch().setattr)
cuda.use_provider(StubProvider(devices=2, memory=1 << 28))
import two_devices
for check in two_devices.CHECKS:
    if check.__name__ in {names!r}:
        check()
        print("right", check.__name__)
"""

NAMES = (
    "compiled_function_on_each", "compiled_training_on_the_second", "compiled_across_devices",
    "compiled_on_a_stream_of_the_second",
    "errors_of_the_second", "random_numbers_of_each",
)  # fmt: skip


def test_programs_of_the_second_device(library: Path, tmp_path: Path) -> None:
    tools = str(HERE.parents[3] / "tools" / "gpu")
    program = PROGRAM.format(here=str(HERE), tools=tools, library=str(library), names=NAMES)
    environment = os.environ | {
        "LAMINA_LIBCUDA": str(library), "LAMINA_LIBCUBLAS": str(library), "STUB_DEVICES": "2",
        "LAMINA_CACHE_DIR": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[:-1] == [f"right {name}" for name in NAMES]
