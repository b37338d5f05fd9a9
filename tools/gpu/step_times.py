"""Where a compiled program's time goes on the GPU: per kernel, with the bytes and operations that it must at least do.

``with recorded() as programs:`` around the compilation; calls inside ``with timing(programs):``; ``table(programs)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Recorded", "recorded", "table", "timing"]


@dataclass
class Recorded:
    """A program in place of what an artifact runs. times: milliseconds of the steps, a tuple for each timed call."""

    program: Any
    emitted: Any
    on: bool = False
    times: list[tuple[float, ...]] = field(default_factory=list)

    def __call__(self, *inputs: Any) -> Any:
        """Run; when ``on``, once more with clocks, behind the first run, so that the host's time is hidden."""
        result = self.program(*inputs)
        if self.on:
            self.times.append(self.program.time_steps(*inputs))
        return result


@contextmanager
def recorded() -> Iterator[list[Recorded]]:
    """The programs that are built inside; the cache must not have them."""
    from lamina_inductor.backends.triton import backend

    found: list[Recorded] = []
    build = backend.build_artifact

    def built(graph: Any, emitted: Any, *rest: Any, **given: Any) -> Any:
        artifact = build(graph, emitted, *rest, **given)
        found.append(Recorded(artifact.function, _at_capture(emitted)))
        artifact.function = found[-1]
        return artifact

    backend.build_artifact = built
    try:
        yield found
    finally:
        backend.build_artifact = build


@contextmanager
def timing(programs: list[Recorded]) -> Iterator[None]:
    """Calls inside are timed."""
    for program in programs:
        program.on = True
    yield
    for program in programs:
        program.on = False


def _at_capture(emitted: Any) -> Any:
    """The program with the sizes at capture in place of symbols."""
    from lamina_inductor.backends.triton.templates.known_sizes import with_sizes

    program, hints = emitted.program, emitted.program.hints
    known = replace(program, buffers=with_sizes(program.buffers, hints))
    return replace(emitted, steps=with_sizes(emitted.steps, hints), program=known)


def table(programs: list[Recorded], rows: int = 40) -> str:
    """Kernels by the time that all their launches take (the least of the timed calls)."""
    sums: dict[str, list[float]] = {}
    for program in programs:
        for step, *times in zip(program.emitted.steps, *program.times, strict=True):
            name, moved, operations = _about(program.emitted, step)
            row = sums.setdefault(name, [0.0, 0.0, 0.0, 0.0])
            for k, value in enumerate((1.0, min(times) * 1e3, moved, operations)):
                row[k] += value
    total = sum(us for _, us, _, _ in sums.values())
    lines = [f"{'kernel':52s} {'runs':>5s} {'us':>9s} {'part':>6s} {'us each':>9s} {'TB/s':>6s} {'TFLOP/s':>8s}"]
    for name, (count, us, moved, operations) in sorted(sums.items(), key=lambda item: -item[1][1])[:rows]:
        rates = f"{moved / us / 1e6:6.2f} {operations / us / 1e6:8.0f}" if us else ""
        lines.append(f"{name[:52]:52s} {count:5.0f} {us:9.1f} {us / total:6.1%} {us / count:9.2f} {rates}")
    return "\n".join([*lines, f"{'all':52s} {'':5s} {total:9.1f}"])


def _about(emitted: Any, step: Any) -> tuple[str, float, float]:
    """(name, bytes of all operands, operations of a product) of a step."""
    kernel = getattr(step, "kernel", None)
    if kernel is None:
        given = [getattr(step.step, name, None) for name in ("left", "right", "out")]
        operands = [o for o in given if o is not None]
        shape = f" {'x'.join(map(str, (*operands[-1].shape, operands[0].shape[-1])))}" if len(operands) == 3 else ""
        work = 2.0 * _numel(operands[-1]) * int(operands[0].shape[-1]) if shape else 0.0
        return step.operator + shape, float(sum(_bytes(emitted, o) for o in operands)), work
    names = [name for name, _ in kernel.parameters]
    given = dict(zip(names, step.buffers, strict=False))
    moved = sum(_bytes(emitted, b) for b in step.buffers)
    left, right = (getattr(given.get(name), "operand", given.get(name)) for name in ("left", "right"))
    if not hasattr(left, "shape") or not hasattr(right, "shape"):
        return kernel.name, moved, 0.0
    shared = max({*map(int, left.shape[-2:])} & {*map(int, right.shape[-2:])})  # the sum's length, of those both have
    return kernel.name, moved, 2.0 * _numel(left) * _numel(right) / shared


def _numel(operand: Any) -> int:
    count = 1
    for size, stride in zip(operand.shape, operand.strides, strict=True):
        count *= int(size) if stride != 0 else 1
    return count


def _bytes(emitted: Any, value: Any) -> float:
    if isinstance(value, tuple):
        return sum(_bytes(emitted, v) for v in value)
    value = getattr(value, "operand", emitted.program.buffers.get(value, value) if isinstance(value, str) else value)
    return float(_numel(value) * value.dtype.itemsize) if hasattr(value, "strides") else 0.0
