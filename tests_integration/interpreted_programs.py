"""Random programs on CUDA tensors without a GPU: ``python interpreted_programs.py library batches seed tiles dynamic``.

Everything is real but the device: capture, gradients, the Triton backend, the launcher. It launches onto the stub of
the driver (``library``, of packages/lamina/tests/gpu), and each launch runs the kernel's text in Triton's interpreter
over the memory that reached the driver. Prints one JSON object: batch -> what is wrong, for those where something is.

``tiles``: "small" makes tiles and blocks so small that little programs walk long rows, split their sums and look up
their rows in tables; or "usual". ``dynamic``: "dynamic" for symbolic sizes, or "static".

The interpreter's patches hold for a whole process, so this is one of its own.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read by @triton.jit when it decorates
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "packages/lamina-inductor/tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "packages/lamina/tests/gpu"))

import ml_dtypes
import numpy as np
import triton_interpreted as interpreted
from random_programs import Program, random_program
from stub_device import LaunchRecord, StubDevice
from test_random_programs import compiled_of, differences, run

import lamina
from lamina_dynamo.capture import CaptureWarning
from lamina_inductor.backends.triton import CompiledKernel, TritonKernel, build, load_function
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider

TOGETHER = 6
DTYPES: dict[str, Any] = {
    "i1": np.bool_, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "i8": np.int8,
    "i16": np.int16, "i32": np.int32, "i64": np.int64, "fp16": np.float16, "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32, "fp64": np.float64,
}  # fmt: skip

SMALL: dict[str, dict[str, int]] = {
    "backends.triton.tiles": {
        "POINTWISE": 32, "WHOLE_ROW": 8, "ONE_PASS": 4, "SHORT_ROW": 4, "SHORT_AREA": 16, "AREA": 16, "SHORT_COLUMN": 4,
        "COLUMN_STEP": 2, "FEW_PROGRAMS": 4, "FEW_RESULTS": 4, "SECTOR": 2, "BLOCK_AREA": 16, "BLOCK_WIDTH": 8,
    },
    "schedule.grid_nest": {
        "BLOCK": 16, "COLUMN_BLOCK": 4, "FEW": 4, "WHOLE_ROW": 8,
    },
    "schedule.staged_nest": {
        "FEWEST_ROWS": 2, "MOST_ROWS": 8, "MOST_BLOCKS": 8, "MANY_WARPS": 4, "AREA": 16, "BLOCK_WIDTH": 8,
    },
    "schedule.tiled_nest": {"FEW": 8, "BLOCK": 8},
    "schedule.late_nest": {"CHUNKS": 2},
    "backends.triton.axis_tiles": {
        "SIDE": 4, "AREA": 16, "FEW_SIDE": 2, "FEW_AREA": 4, "NARROW_SIDE": 8, "LONG": 8, "SHORT_SIDE": 2,
        "THREE_AREA": 16,
    },
    "backends.triton.crossed_tiles": {
        "SECTOR": 16, "AREA": 16, "FEWEST": 2, "WIDE": 4, "STEP": 2, "SMALL_AREA": 16, "CHUNK_AREA": 16, "PROGRAMS": 1,
        "WALKED_ROWS": 4, "WALKED_STEP": 2,
    },
    "backends.triton.tables": {"MANY": 2},
}  # fmt: skip


class RawPointer(interpreted.HostTensor):
    """An address as an argument of the interpreter."""

    def __init__(self, address: int, dtype: Any) -> None:
        window = (ctypes.c_ubyte * (1 << 40)).from_address(address)
        super().__init__(np.frombuffer(window, np.dtype(dtype), 1))


class Kernels:
    """Keeps the kernels that were "compiled", each by its number, and runs them by their text."""

    def __init__(self) -> None:
        self.known: list[TritonKernel] = []

    def compile(
        self, kernels: list[TritonKernel], sm: int, begun: Any = None, meanwhile: Any = None
    ) -> list[CompiledKernel]:
        """In place of the compiler."""
        if meanwhile is not None:
            meanwhile()
        return [self._keep(k, sm) for k in kernels]

    def _keep(self, kernel: TritonKernel, sm: int) -> CompiledKernel:
        self.known.append(kernel)
        image = f"{kernel.name}@{len(self.known) - 1}\0".encode()
        return CompiledKernel(kernel.name, sm, "", image, 0, kernel.tile.warps)

    def run(self, record: LaunchRecord, number: int) -> None:
        """A launch: what the driver was given, to the function."""
        kernel = self.known[number]
        function = load_function(kernel)
        function.fn.__globals__["libdevice"] = interpreted.Library()
        kinds = [kind for _, kind in kernel.parameters]
        arguments = [_argument(value, kind) for value, kind in zip(record.values, kinds, strict=False)]
        function[record.grid](*arguments, **kernel.constants)


def _argument(value: int, kind: str) -> Any:
    if kind[0] == "*":
        return RawPointer(value, DTYPES[kind[1:]])
    bits = int(kind[1:])
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def make_small() -> None:
    """Small tiles and blocks, in the modules that own the numbers; one that is gone is an error."""
    for module, numbers in SMALL.items():
        owner = importlib.import_module(f"lamina_inductor.{module}")
        for name, value in numbers.items():
            assert type(getattr(owner, name)) is int, f"{module}.{name} is no number any more"
            setattr(owner, name, value)


def check(device: StubDevice, programs: list[Program], dynamic: bool | None) -> list[str]:
    """What differs between eager on the CPU and compiled on the device."""
    device.errors.clear()
    device.clear()
    plain, compiled = compiled_of(programs, None, dynamic=dynamic)
    wanted, found = run(plain, programs), run(compiled, programs, "cuda")
    if not device.launches:
        return ["nothing was launched"]
    if device.errors:
        return [f"{type(device.errors[0]).__name__}: {device.errors[0]}"]
    return [text for want, have in zip(wanted, found, strict=True) for text in differences(want, have)]


def failure(device: StubDevice, programs: list[Program], dynamic: bool | None) -> str | None:
    """What is wrong, with the program."""
    try:
        wrong = check(device, programs, dynamic)
    except Exception as error:  # noqa: BLE001 - the test says what it is
        wrong = [f"{type(error).__name__}: {error}"]
    return "\n".join([*map(str, programs), *wrong]) if wrong else None


def main(library: str, batches: str, seed: str, tiles: str, sizes: str) -> None:
    """Run the batches; where one fails, each of its programs alone."""
    interpreted.prepare()
    np.seterr(all="ignore")
    warnings.filterwarnings("error", category=CaptureWarning)  # no program goes on in Python
    if tiles == "small":
        make_small()
    os.environ.update(LAMINA_LIBCUDA=library, LAMINA_LIBCUBLAS=library)
    device, kernels = StubDevice.install(Path(library), setattr), Kernels()
    build.compile_kernels = kernels.compile
    device._run = kernels.run  # type: ignore[method-assign]  # by the text, not by the IR
    cuda.use_provider(StubProvider())
    dynamic = True if sizes == "dynamic" else None
    report: dict[str, str] = {}
    for batch in range(int(batches)):
        rng = np.random.default_rng([int(seed), batch])
        programs = [random_program(rng, k) for k in range(TOGETHER)]
        found = failure(device, programs, dynamic)
        if found:
            alone = (failure(device, [p], dynamic) for p in programs)
            report[str(batch)] = next((text for text in alone if text), found)
        lamina.compiler.reset()
    print(json.dumps(report))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAMINA_CACHE_DIR"] = folder
        main(*sys.argv[1:])
