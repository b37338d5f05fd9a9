"""Compile products, attention and a convolution by measuring and by the model: ``python tools/gpu/tuned.py``.

Prints for each program the error against eager (in float32), the times of both, and the seconds that tuning took. Needs
lamina built for this Python (``tools/gpu/setup.sh``), a GPU, CuPy and triton.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

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


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    heads = tuple(_half(8, 16, 2048, 64) for _ in range(3))
    mask = lamina.ones(2048, 2048, dtype=lamina.bool).tril().cuda()
    image = _half(64, 128, 56, 56)
    return {
        "mlp 4096": (mlp, (_half(4096, 4096), *(t for _ in "ab" for t in (_half(4096, 4096), _half(4096))))),
        "causal attention": (attention, heads),
        "attention by hand": (by_hand, (*heads, mask)),
        "convolution": (
            convolution, (image, _half(128, 128, 3, 3), _half(128, 1, 1), _half(128, 1, 1), _half(64, 128, 56, 56)),
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


def main() -> None:
    chosen: list[str] = []
    measure = Tuner._measure

    def recorded(self: Tuner, problem: Any, *rest: Any) -> dict[str, float]:
        found = measure(self, problem, *rest)
        best = sorted(found.items(), key=lambda item: item[1])[:4]
        chosen.append(f"    {problem.key}: " + ", ".join(f"{name} {s * 1e6:.0f} us" for name, s in best))
        return found

    Tuner._measure = recorded  # type: ignore[method-assign]
    for name, (fn, inputs) in programs().items():
        wanted = fn(*inputs)
        line = f"{name:20}"
        for mode in ("default", "max-autotune"):
            compiled = lamina.compile(fn, mode=mode)
            start = time.perf_counter()
            got = compiled(*inputs)
            lamina.cuda.synchronize()
            first = time.perf_counter() - start
            line += (
                f" {mode}: {microseconds(compiled, inputs):7.0f} us, error {error(got, wanted):.1e}, {first:5.1f} s;"
            )
        print(line, *chosen, sep="\n", flush=True)
        chosen.clear()


if __name__ == "__main__":
    main()
