"""A GPU without a GPU: compiled CUDA programs run through the real launcher onto a stub of the driver.

``StubDevice`` builds ``stub_cuda.cpp``, chooses the front end's stub provider (memory is the host's) and, at each
launch, runs the kernel's IR with NumPy over the memory that the launch's parameters point to. So the addresses, sizes,
grids and the order of a program are tested as they reach the driver; only the Triton text is not (``lamina-inductor``'s
tests do that).
"""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lamina_fx import int64
from lamina_fx.symbolic import as_expr
from lamina_inductor.backends.triton import CompiledKernel, TritonBackend, TritonKernel, TritonProgram, build, emit
from lamina_inductor.backends.triton import backend as triton_backend
from lamina_inductor.backends.triton.grids import program_count
from lamina_inductor.backends.triton.kernel_printer import size_names
from lamina_inductor.backends.triton.templates.expand import NoTemplates
from lamina_inductor.ir.interpret import KernelError, run_kernel
from lamina_inductor.ir.kernel import Kernel
from lamina_inductor.ir.program import INDEX_BITS
from lamina_inductor.schedule.copies import copy_call
from lamina_prims.arrays import numpy_dtype

__all__ = ["LaunchRecord", "StubDevice", "build_stub"]

_HANDLER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(ctypes.c_uint64),
    ctypes.c_int,
)  # fmt: skip
_EXTENT = 1 << 40


def build_stub(folder: Path) -> Path:
    """The library, compiled."""
    target = folder / "libcuda_stub.so"
    source = Path(__file__).with_name("stub_cuda.cpp")
    subprocess.run(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", target, source, "-ldl"], check=True)
    return target


@dataclass(frozen=True)
class LaunchRecord:
    """What reached the driver."""

    name: str
    grid: tuple[int, ...]
    threads: int
    shared: int
    values: tuple[int, ...]


@dataclass
class StubDevice:
    """See the module. launches: what was launched since ``clear``."""

    library: ctypes.CDLL
    launches: list[LaunchRecord] = field(default_factory=list)
    programs: list[TritonProgram] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    copies: dict[str, Kernel] = field(default_factory=dict)
    images: list[TritonKernel] = field(default_factory=list)

    @staticmethod
    def install(path: Path, replace_with: Callable[..., None]) -> StubDevice:
        """Be told of launches on the library, which the environment must name as the driver and cuBLAS; stand in for
        triton by ``replace_with(object, name, value)``."""
        device = StubDevice(ctypes.CDLL(str(path)))
        device.handler = _HANDLER(device._on_launch)
        device.library.stub_on_launch(device.handler)
        replace_with(build, "compile_kernels", device.compile_kernels)
        replace_with(build, "toolchain", lambda: "stub")
        replace_with(triton_backend, "toolchain", lambda: "stub")
        replace_with(triton_backend, "require_triton", lambda: None)
        replace_with(triton_backend, "_planner", lambda *given: NoTemplates())
        replace_with(TritonBackend, "emit", lambda self, graph, **o: device.emit(self, graph, **o))
        replace_with(emit, "copy_call", device.copy_call)
        return device

    @contextmanager
    def blind(self) -> Iterator[None]:
        """Inside, launches do nothing: for tests of large memory."""
        self.library.stub_on_launch(ctypes.cast(None, _HANDLER))
        yield
        self.library.stub_on_launch(self.handler)

    def clear(self) -> None:
        """Forget the launches."""
        self.launches.clear()

    def compile_kernels(
        self, kernels: Sequence[TritonKernel], sm: int, begun: Any = None, meanwhile: Any = None
    ) -> list[CompiledKernel]:
        """In place of the compiler."""
        if meanwhile is not None:
            meanwhile()
        first = len(self.images)
        self.images += kernels
        return [
            CompiledKernel(k.name, sm, "", f"{k.name}@{number}\0".encode(), 0, k.tile.warps)
            for number, k in enumerate(kernels, first)
        ]

    def emit(self, backend: TritonBackend, graph: Any, **options: Any) -> TritonProgram:
        """In place of ``TritonBackend.emit``: remembers the kernels' IR, which templates have none of."""
        backend.planner = NoTemplates()
        program = _EMIT(backend, graph, **options)
        self.programs.append(program)
        return program

    # -- launches --------------------------------------------------------------------------------------

    def _on_launch(self, name: bytes, grid: Any, threads: int, shared: int, values: Any, count: int) -> None:
        called, _, number = name.decode().partition("@")
        record = LaunchRecord(called, tuple(grid[:3]), threads, shared, tuple(values[:count]))
        self.launches.append(record)
        try:
            self._run(record, int(number))
        except BaseException as error:  # noqa: BLE001 - ctypes would lose it
            self.errors.append(error)

    def _run(self, record: LaunchRecord, number: int) -> None:
        triton, kernel = self._find(record, number)
        if triton.parameters[0][0] == "table":
            self._run_rows(record, triton, kernel)
            return
        names = {n: v for (n, _), v in zip(triton.parameters, record.values, strict=False)}
        assert len(record.values) == len(triton.parameters) + 2
        arrays = [_memory(names[p.name], p.dtype) if p.name in names else np.zeros(0) for p in kernel.params]
        sizes = _sizes(triton, kernel, names, record.grid[0])
        given = dict(zip(kernel.sizes, map(as_expr, sizes), strict=True))
        programs = program_count(kernel.body[0], triton.tile, lambda extent: extent.substitute(given))
        assert record.grid == (programs, 1, 1), (record, programs)
        for name, kind in triton.parameters:
            assert kind[0] != "*" or names[name] % 16 == 0 or name == "error", f"{name} is not aligned"
        try:
            run_kernel(kernel, arrays, sizes)
        except KernelError as error:
            word = error.check << INDEX_BITS | error.index & (1 << INDEX_BITS) - 1
            ctypes.c_int64.from_address(names["error"]).value = word

    def _run_rows(self, record: LaunchRecord, triton: TritonKernel, kernel: Kernel) -> None:
        """A kernel over a table: a call for each row."""
        phase = [p for p in kernel.params if re.search(rf"^    {p.name} = ", triton.source, re.MULTILINE)]
        spelt = [n for n in size_names(kernel).values() if re.search(rf"^    {n} = ", triton.source, re.MULTILINE)]
        first, count, width = _layout(triton.source, record)
        if "    programs = tl.load(row" in triton.source:
            spelt.append("programs")
        table = _memory(record.values[0], int64)
        assert not first or record.grid[0] == table[:count].sum()
        for number in range(count):
            row = table[first + number * width : first + (number + 1) * width]
            found = dict(zip([p.name for p in phase] + spelt, row.tolist(), strict=False))
            arrays = [_memory(found[p.name], p.dtype) if p in phase else np.zeros(0) for p in kernel.params]
            run_kernel(kernel, arrays, _sizes(triton, kernel, found, found.get("programs", record.grid[0])))

    def _find(self, record: LaunchRecord, number: int) -> tuple[TritonKernel, Kernel]:
        """The kernel of this image (of another process: of the latest program that has one of its name), cut to the
        launched phase."""
        known = self.images[number] if number < len(self.images) else None
        found = [(p, k) for p in reversed(self.programs) for k in p.kernels if k.name == record.name]
        assert found, f"no kernel {record.name}"
        program, kernel = next((pair for pair in found if pair[1] is known), found[0])
        return kernel, self._phase(program, kernel)

    def _phase(self, program: TritonProgram, triton: TritonKernel) -> Kernel:
        for kernel in (*program.program.kernels, *self.copies.values()):
            without = re.sub(r"(_symbolic)?(_odd)?_table\d*$", "", triton.name)
            if kernel.name in (triton.name, without):
                return replace(kernel, body=tuple(p for p in kernel.body if p.body))
            number = without.removeprefix(f"{kernel.name}_")
            if number != triton.name and number.isdigit():
                return replace(kernel, body=(kernel.body[int(number)],))
        raise AssertionError(f"no kernel IR for {triton.name}")

    def copy_call(self, copy: Any, name: str) -> Any:
        """In place of ``copy_call``: remembers the kernel."""
        call = copy_call(copy, name)
        self.copies[name] = call.kernel
        return call


_EMIT = TritonBackend.emit


def _layout(source: str, record: LaunchRecord) -> tuple[int, int, int]:
    """Of a table: where its rows begin, how many there are, how long one is."""
    searched = re.search(r"row = table \+ (\d+) \+ .* \* (\d+)\n", source)
    if searched:
        return int(searched[1]), int(searched[1]), int(searched[2])
    return 0, record.grid[1], int(re.search(r"program_id\(1\) \* (\d+)", source)[1])  # type: ignore[index]


def _sizes(triton: TritonKernel, kernel: Kernel, names: dict[str, int], programs: int) -> list[int]:
    """Sizes by what a launch names; the one that no mask needs is as large as the programs tell."""
    spelt = size_names(kernel)
    known = {s: as_expr(_signed(names[n])) for s, n in spelt.items() if n in names}
    one = replace(kernel.body[0], extent=as_expr(1))
    each = program_count(one, triton.tile, lambda extent: extent.substitute(known))
    whole = programs // int(each) * triton.tile.step
    return [_signed(names.get(n, whole)) for n in spelt.values()]


def _memory(address: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Flat memory from an address on, as long as anybody could index it."""
    kind = numpy_dtype(dtype)
    raw = (ctypes.c_ubyte * math.floor(_EXTENT)).from_address(address or 16)
    return np.frombuffer(raw, np.uint8).view(kind)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
