"""Compile products, attention, a convolution and a GPT's block by measuring and by the model: ``python tuned.py``.

Prints for each program the error against eager (in float32), the times of both, and what tuning tried and took. Needs
lamina built for this Python (``tools/gpu/setup.sh``), a GPU, CuPy and triton.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rows import ROWS

import lamina
from lamina_inductor.tune.tuner import Tuner

F = lamina.nn.functional
SHORT, LONG = 5, 25


def mlp(x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
    return F.gelu(x @ w + b) @ v + c


def attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def by_hand(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = (q @ k.transpose(-2, -1)) * 0.125
    return lamina.softmax(scores.masked_fill(lamina.logical_not(mask), float("-inf")), -1) @ v


def convolution(x: Any, w: Any, scale: Any, shift: Any, r: Any) -> Any:
    return lamina.relu(F.conv2d(x, w, padding=1) * scale + shift + r)


def _half(*shape: int) -> Any:
    return (lamina.randn(*shape) * 0.1).to(lamina.bfloat16).cuda()


def _heads() -> tuple[Any, ...]:
    return tuple(_half(8, 16, 2048, 64) for _ in range(3))


def programs() -> dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]]:
    """Functions that give a program and its inputs."""
    return {
        "mlp 4096": lambda: (
            mlp, (_half(4096, 4096), *(t for _ in "ab" for t in (_half(4096, 4096), _half(4096)))),
        ),
        "causal attention": lambda: (attention, _heads()),
        "attention by hand": lambda: (by_hand, (*_heads(), lamina.ones(2048, 2048, dtype=lamina.bool).tril().cuda())),
        "convolution": lambda: (
            convolution, (_half(64, 128, 56, 56), _half(128, 128, 3, 3), _half(128, 1, 1), _half(128, 1, 1),
                          _half(64, 128, 56, 56)),
        ),
    }  # fmt: skip


def seconds(fn: Callable[..., Any], inputs: tuple[Any, ...], count: int) -> float:
    lamina.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        fn(*inputs)
    lamina.cuda.synchronize()
    return time.perf_counter() - start


def microseconds(fn: Callable[..., Any], inputs: tuple[Any, ...]) -> float:
    seconds(fn, inputs, LONG)
    long = min(seconds(fn, inputs, LONG) for _ in range(3))
    return (long - min(seconds(fn, inputs, SHORT) for _ in range(3))) / (LONG - SHORT) * 1e6


def error(got: Any, want: Any) -> float:
    a, b = got.float(), want.float()
    return float(((a - b).norm() / b.norm()).cpu())


class Watch:
    """The tuners that compilations make, and what they measured, best first."""

    def __init__(self) -> None:
        self.tuners: list[Tuner] = []
        self.chosen: list[str] = []
        make, measure = Tuner.__init__, Tuner._measure

        def made(tuner: Tuner, *given: Any, **options: Any) -> None:
            make(tuner, *given, **options)
            self.tuners.append(tuner)

        def measured(tuner: Tuner, problem: Any, *rest: Any) -> dict[str, float]:
            found = measure(tuner, problem, *rest)
            best = sorted(found.items(), key=lambda item: item[1])[:4]
            self.chosen.append(f"    {problem.key}: " + ", ".join(f"{name} {s * 1e6:.0f} us" for name, s in best))
            return found

        Tuner.__init__, Tuner._measure = made, measured  # type: ignore[method-assign]

    def report(self) -> str:
        """Counts and seconds since the last report."""
        tried, spent, compiling = (sum(getattr(t, f) for t in self.tuners) for f in ("tried", "spent", "compiling"))
        lines = [f"    {tried} candidates in {spent:.1f} s ({compiling:.1f} s of it compiling)", *self.chosen]
        self.tuners.clear()
        self.chosen.clear()
        return "\n".join(lines)


def block() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A training step of a GPT block, as ``bench.py`` has it."""
    row = ROWS["gpt block training"](lamina)
    return row.run, row.inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="programs with this word in their names")
    parser.add_argument("--again", action="store_true", help="in a second process, too, which finds what was measured")
    options = parser.parse_args()
    if options.again:
        os.environ.setdefault("LAMINA_CACHE_DIR", tempfile.mkdtemp())
    watch = Watch()
    for name, make in (programs() | {"gpt block training": block}).items():
        if options.only not in name:
            continue
        fn, inputs = make()
        wanted = fn(*inputs)
        line = f"{name:20}"
        for mode in ("default", "max-autotune"):
            compiled = lamina.compile(fn, mode=mode)
            start = time.perf_counter()
            got = compiled(*inputs)
            lamina.cuda.synchronize()
            first = time.perf_counter() - start
            pairs = zip(_several(got), _several(wanted), strict=True)
            worst = max(error(a, b) for a, b in pairs)
            line += f" {mode}: {microseconds(compiled, inputs):7.0f} us, error {worst:.1e}, {first:5.1f} s;"
        print(line, watch.report(), sep="\n", flush=True)
    if options.again:
        command = [sys.executable, __file__, "--only", options.only]
        print("in another process:", flush=True)
        subprocess.run(command, check=True)


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


if __name__ == "__main__":
    main()
