"""``GpuArtifact``: a graph compiled for a GPU, callable, and storable as one file that needs only the driver to run.

A file holds the machine code of all kernels one behind the other, then JSON with the plan, constants behind it, as
``cache.store`` has it. Reading one imports no triton.
"""

from __future__ import annotations

import builtins
import json
import os
import struct
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lamina_fx import DTYPES, dtype_of

from ...cache.saved import ArtifactError, copy_entry, saved_entry
from ...cache.store import Entry
from ...host.arguments import numpy_dtype
from ...host.description import KernelInfo
from ...host.encoding import decode, encode
from ...host.gpu import front_end, gpu_launcher
from ...ir.program import INDEX_BITS, check_text
from .compile import CompiledKernel
from .device_steps import DeviceSteps
from .gpu_plan import GpuPlan

__all__ = ["GpuArtifact", "GpuDescription", "from_bytes", "images_of", "to_bytes"]

_MAGIC = b"LMGPU005"
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class GpuDescription:
    """What a GPU program is, without its machine code.

    Attributes:
        name: of the graph. toolchain: what compiled it. sm: for which GPUs. device: number of the GPU it runs on.
        images: per kernel (name, bytes of machine code, shared memory, threads, clusters, do its programs wait for
            each other).
        labels: per input its name, None where it is no tensor. symbols: names of the sizes.
        checks: (number, exception, template of its message, size). kernels, source: to look at.
        captured: run as a CUDA graph: 2 always, 1 where little must be copied for it, 0 never.
    """

    name: str
    toolchain: str
    sm: int
    device: int
    plan: GpuPlan
    images: tuple[tuple[str, int, int, int, int, bool], ...]
    labels: tuple[str | None, ...]
    symbols: tuple[str, ...]
    checks: tuple[tuple[int, str, str, Any], ...]
    constants: tuple[Any, ...]
    kernels: tuple[KernelInfo, ...]
    source: str
    captured: int = 1


def to_bytes(description: GpuDescription) -> bytes:
    """The stored form.

    Raises:
        NotStorable: a step holds something that has no stored form.
    """
    fields = dict(vars(description))
    constants = fields.pop("constants")
    fields["plan"] = dict(vars(description.plan))
    fields["kernels"] = [tuple(getattr(k, f) for f in KernelInfo.__dataclass_fields__) for k in description.kernels]
    fields["constants"] = [(c.dtype.name, c.shape) for c in constants]
    text = json.dumps(encode(fields), separators=(",", ":")).encode()
    return _MAGIC + _LENGTH.pack(len(text)) + text + b"".join([c.tobytes() for c in constants])


def from_bytes(data: bytes) -> GpuDescription:
    """The description that ``to_bytes`` stored.

    Raises:
        ValueError: not such a description.
    """
    start = len(_MAGIC) + _LENGTH.size
    if data[: len(_MAGIC)] != _MAGIC or len(data) < start:
        raise ValueError("it describes no GPU program")
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    at = start + length
    fields = decode(json.loads(data[start:at]))
    constants = []
    for name, shape in fields["constants"]:
        kind = numpy_dtype(dtype_of(name))
        count = int(np.prod(shape, dtype=np.int64))
        constants.append(np.frombuffer(data, kind, count, at).reshape(shape).copy())
        at += count * kind.itemsize
    fields["constants"] = tuple(constants)
    fields["kernels"] = tuple([KernelInfo(*k) for k in fields["kernels"]])
    fields["plan"] = GpuPlan(**fields["plan"])
    return GpuDescription(**fields)


class Wider:
    """The same graph with indices of 64 bits, compiled when a call's sizes first need it; ``compile`` does that."""

    __slots__ = ("compile", "name", "wide")

    def __init__(self, name: str, compile: Callable[[], GpuArtifact] | None) -> None:
        self.name, self.compile = name, compile
        self.wide: GpuArtifact | None = None

    def artifact(self) -> GpuArtifact:
        """The artifact for any sizes.

        Raises:
            RuntimeError: it was read from a file that holds none.
        """
        if self.wide is None:
            if self.compile is None:
                raise RuntimeError(
                    f"{self.name}: these sizes need indices of 64 bits, and the stored program has 32; compile it with "
                    "options={'index_bits': 64} and save that"
                )
            self.wide = self.compile()
        return self.wide

    def __call__(self) -> Any:
        """What the launcher calls in place of its own program."""
        return self.artifact().function


class GpuArtifact:
    """A compiled graph. Call it with tensors, in the order of the graph's placeholders; it returns a tuple.

    Attributes:
        name: of the graph.
        kernels: the generated kernels, with their Triton text and what was fused into each.
        source: one module with all kernels.
        function: what a call runs; calling it directly saves a Python frame.
    """

    __slots__ = ("_entry", "_wider", "description", "function", "kernels", "name", "source")

    def __init__(
        self,
        description: GpuDescription,
        code: bytes,
        entry: Entry | None = None,
        wider: Callable[[], GpuArtifact] | None = None,
    ) -> None:
        self.description = description
        self.name = description.name
        self.kernels = description.kernels
        self.source = description.source
        self._wider = None if description.plan.narrow < 0 else Wider(description.name, wider)
        self.function: Any = _program(description, code, self._wider)
        self._entry = entry

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Put the graph's work on the current stream."""
        return self.function(*inputs)

    def over(self, function: Any) -> GpuArtifact:
        """The same artifact with this function to run, and without constants, which its own function holds."""
        made = copy(self)
        made.description, made.function = replace(self.description, constants=()), function
        made._entry = None if self._entry is None else replace(self._entry, description=b"")
        return made

    def time_steps(self, *inputs: Any) -> tuple[tuple[str, float], ...]:
        """Run with these inputs; (kernel or kind of step, seconds on the device) of each step, in order.

        Where the device is idle before the call, times of the first steps hold the host's: call the artifact before.
        """
        if self._wider is not None and not self.function.fits(*inputs):
            return self._wider.artifact().time_steps(*inputs)
        plan, images = self.description.plan, self.description.images
        names = [images[what[0]][0] if kind == "launch" else kind for kind, what in plan.steps]
        times = self.function.time_steps(*inputs)
        return tuple([(name, ms / 1e3) for name, ms in zip(names, times, strict=True)])

    def __repr__(self) -> str:
        return f"<GpuArtifact {self.name}: {len(self.kernels)} kernels for sm_{self.description.sm}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact as one file. It runs on GPUs of the same compute capability, with the driver alone.

        Raises:
            RuntimeError: a step of it has no stored form.
        """
        if self._entry is None:
            raise RuntimeError(f"{self.name} holds a step that cannot be stored; see its source")
        copy_entry(self._entry.path, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> GpuArtifact:
        """Read what ``save`` wrote.

        Raises:
            FileNotFoundError: no such file.
            ArtifactError: the file is damaged or none of ours.
        """
        return GpuArtifact.open(saved_entry(path))

    @staticmethod
    def open(
        entry: Entry,
        description: GpuDescription | None = None,
        wider: Callable[[], GpuArtifact] | None = None,
    ) -> GpuArtifact:
        """The artifact of a cache entry. ``wider`` compiles one for larger sizes.

        Raises:
            ArtifactError: it cannot be read.
        """
        try:
            found = description or from_bytes(entry.description)
            code = entry.path.read_bytes()[: entry.library_bytes]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"the artifact in {entry.path} cannot be read ({error}); compile again") from error
        return GpuArtifact(found, code, entry, wider)


def images_of(compiled: Sequence[CompiledKernel]) -> tuple[tuple[str, int, int, int, int, bool], ...]:
    """Rows of ``GpuDescription.images``."""
    return tuple([(k.name, len(k.cubin), k.shared, 32 * k.warps, k.clusters, k.cooperative) for k in compiled])


def _program(description: GpuDescription, code: bytes, wider: Wider | None) -> Any:
    plan, at = description.plan, 0
    kernels = []
    for name, size, *launch in description.images:
        kernels.append((name, code[at : at + size], *launch))
        at += size
    fail = _failure(description)
    return gpu_launcher().Program(
        name=description.name,
        device=description.device,
        inputs=plan.inputs,
        outputs=plan.outputs,
        sizes=plan.sizes,
        slots=plan.slots,
        operations=plan.operations,
        constants=tuple([c.reshape(-1).view(np.uint8) for c in description.constants]),
        workspace=plan.workspace,
        kernels=tuple(kernels),
        descriptors=plan.descriptors,
        tables=plan.tables,
        steps=plan.steps,
        results=plan.results,
        host_call=DeviceSteps(plan.device_steps, description.symbols, description.device, fail),
        fail=fail,
        adapt=_adapter(description),
        checks=plan.checks,
        captured=0 if plan.device_steps else description.captured,
        narrow=plan.narrow,
        wider=wider,
    )


def _failure(description: GpuDescription) -> Callable[[int], None]:
    known = {number: check for number, *check in description.checks}

    def fail(word: int) -> None:
        if word >> INDEX_BITS not in known:
            raise RuntimeError(f"{description.name} failed with error word {word}")
        error, template, size = known[word >> INDEX_BITS]
        index = word & ((1 << INDEX_BITS) - 1)
        index -= (index >> (INDEX_BITS - 1)) << INDEX_BITS
        raise getattr(builtins, error, RuntimeError)(check_text(template, str(index), size))

    return fail


def _adapter(description: GpuDescription) -> Callable[..., Any]:
    """What the launcher calls for an input that does not fit: ``adapt(number, value, sizes, strides)``."""

    def adapt(number: int, value: Any, sizes: tuple[int, ...] | None, strides: tuple[int, ...] | None) -> Any:
        code, written, on_host = description.plan.inputs[number][:3]
        where = f"{description.name}: input {number} ({description.labels[number]})"
        if sizes is None:
            try:
                return front_end().convert(value, None, None)
            except (TypeError, ValueError, BufferError) as error:
                raise TypeError(f"{where} must be a tensor, got {type(value).__name__}: {error}") from error
        place = "cpu" if on_host else f"cuda:{description.device}"
        wanted = f"{DTYPES[code].name}[{', '.join(map(str, sizes))}] on {place}"
        have = f"{getattr(value, 'dtype', '?')}[{', '.join(map(str, value.shape))}] on {value.device}".replace(
            "lamina.", ""
        )
        same = tuple(value.shape) == sizes and have == wanted
        if not same:
            raise RuntimeError(
                f"{where} must be {wanted}, as the graph was compiled for; got {have}. Compile again for other "
                "shapes, or move or convert the argument."
            )
        if written:
            raise RuntimeError(
                f"{where} is written by the program, so it must have the strides {strides} (in elements) it was "
                f"compiled for; got {tuple(value.stride())}."
            )
        return front_end().convert(value, sizes, strides)

    return adapt
