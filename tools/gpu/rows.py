"""What ``bench.py`` measures: programs that read alike for lamina and for torch, and the fewest bytes each must move.

``ROWS[name](T)`` gives a ``Row``; ``T`` is the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpt import GPT2, data, flops, make, small_error, training

__all__ = ["ROWS", "Row"]


@dataclass(frozen=True)
class Row:
    """A program and its inputs.

    Attributes:
        run: the program. inputs: its arguments.
        moved: the fewest bytes it must move (each input read once, each result written once); 0: not bound by memory.
        formula: how they are counted.
        operations: of matrix products; 0: there are none.
        target: microseconds that it should take at most.
        tolerance: of results, relative by norm. own_parameters: it has parameters beside its inputs.
        trains: it changes them, so every call's result is another (the losses of the first calls are shown).
        tokens: that a call works on. check: after the first call, the relative error of what it changed.
        ceiling: what the device library does by itself, to measure the others by; it has no ratio.
    """

    run: Callable[..., Any]
    inputs: tuple[Any, ...]
    moved: int = 0
    formula: str = ""
    operations: float = 0.0
    target: float = 0.0
    tolerance: float = 2e-2
    own_parameters: bool = False
    trains: bool = False
    tokens: int = 0
    check: Callable[[], float] | None = None
    ceiling: bool = False


def _random(T: Any, *shape: int, dtype: str = "bfloat16", scale: float = 1.0, grad: bool = False) -> Any:
    made = (T.randn(*shape, device="cuda") * scale).to(getattr(T, dtype))
    return made.requires_grad_(True) if grad else made


def _copy(T: Any) -> Row:
    n = 1 << 30
    return Row(lambda x: x.clone(), (_random(T, n),), 2 * 2 * n, "x, out: 2 * 2 B * 2^30", ceiling=True)


def _pointwise(T: Any) -> Row:
    n = 1 << 26

    def run(x: Any, y: Any) -> Any:
        return T.tanh(x * 1.5 + 0.5) * T.sigmoid(y) + x

    inputs = _random(T, n), _random(T, n)
    return Row(run, inputs, 3 * 2 * n, "x, y, out: 3 * 2 B * 2^26", target=2 * 3 * n / 4.3e12 / 0.9 * 1e6)


def _softmax(T: Any) -> Row:
    rows, columns = 16384, 4096
    moved = 2 * 2 * rows * columns
    return Row(
        lambda x: T.softmax(x, -1), (_random(T, rows, columns),), moved, "x, out: 2 * 2 B * 16384 * 4096", target=69
    )


def _norm_gelu(T: Any) -> Row:
    rows, columns = 16384, 4096
    F = T.nn.functional

    def run(x: Any, w: Any, b: Any) -> Any:
        return F.gelu(F.layer_norm(x, (columns,), w, b))

    inputs = _random(T, rows, columns), _random(T, columns), _random(T, columns)
    return Row(run, inputs, 2 * 2 * rows * columns, "x, out: 2 * 2 B * 16384 * 4096", target=82)


def _rms_rotary(T: Any) -> Row:
    batch, length, heads, width = 8, 4096, 32, 128

    def run(x: Any, w: Any, cos: Any, sin: Any) -> Any:
        h = x.float()
        h = (h * T.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w
        first, second = h[..., : width // 2], h[..., width // 2 :]
        return h * cos + T.cat((-second, first), -1) * sin

    x = _random(T, batch, length, heads, width)
    inputs = x, _random(T, width), _random(T, length, 1, width), _random(T, length, 1, width)
    moved = 2 * 2 * batch * length * heads * width
    return Row(run, inputs, moved, "x, out: 2 * 2 B * 8 * 4096 * 32 * 128", target=139)


def _norm_training(T: Any) -> Row:
    rows, columns = 16384, 2048
    F = T.nn.functional

    def run(x: Any, w: Any, b: Any, ct: Any) -> Any:
        y = F.gelu(F.layer_norm(x, (columns,), w, b))
        return T.autograd.grad(y, (x, w, b), ct)

    x, w, b = (_random(T, *s, grad=True) for s in ((rows, columns), (columns,), (columns,)))
    moved = 3 * 2 * rows * columns
    return Row(run, (x, w, b, _random(T, rows, columns)), moved, "x, ct, dx: 3 * 2 B * 16384 * 2048", target=80)


def _cross_entropy(T: Any) -> Row:
    rows, classes = 8192, 50304

    def run(x: Any, t: Any) -> Any:
        loss = T.nn.functional.cross_entropy(x, t)
        return loss.detach(), *T.autograd.grad(loss, (x,))

    x = _random(T, rows, classes, grad=True)
    target = (T.arange(rows, device="cuda") * 7919) % classes
    return Row(run, (x, target), 2 * 2 * rows * classes, "x, dx: 2 * 2 B * 8192 * 50304", target=680)


def _columns(T: Any) -> Row:
    rows, columns = 16384, 8192

    def run(x: Any) -> Any:
        h = x.float()
        return T.relu((h - h.mean(0)) * T.rsqrt(h.var(0, unbiased=False) + 1e-5)).to(x.dtype)

    moved = 3 * 2 * rows * columns
    return Row(run, (_random(T, rows, columns),), moved, "x twice, out: 3 * 2 B * 16384 * 8192", target=205)


def _adamw(T: Any) -> Row:
    sizes = [1 << 20] * 48 + [1 << 10] * 48
    parameters = [T.nn.Parameter(_random(T, n, dtype="float32")) for n in sizes]
    for p in parameters:
        p.grad = _random(T, *p.shape, dtype="float32")
    options = {} if T.__name__ == "lamina" else {"foreach": True}
    optimizer = T.optim.AdamW(parameters, lr=1e-3, **options)

    before = [p.detach().clone() for p in parameters]

    def run() -> Any:
        optimizer.step()

    def check() -> float:  # the first step: both moments are what the gradient makes them
        worst = 0.0
        for p, old in zip(parameters, before, strict=True):
            update = -1e-3 * (0.01 * old + p.grad / (p.grad.abs() + 1e-8))
            worst = max(worst, float(((p.detach() - old - update).norm() / update.norm()).item()))
        before.clear()
        return worst

    formula = "p, g, m, v read, p, m, v written: 7 * 4 B * 50.4 M"
    return Row(run, (), 7 * 4 * sum(sizes), formula, target=400, tolerance=1e-3, check=check)


def _mlp(T: Any) -> Row:
    rows, width, hidden = 8192, 4096, 16384
    F = T.nn.functional

    def run(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)

    shapes = (rows, width), (hidden, width), (hidden,), (width, hidden), (width,)
    inputs = tuple(_random(T, *s, scale=1 / math.sqrt(s[-1]) if len(s) > 1 and s[0] != rows else 1.0) for s in shapes)
    return Row(run, inputs, operations=4.0 * rows * width * hidden, target=3250)


def _gemm_gelu(T: Any) -> Row:
    n = 4096
    F = T.nn.functional

    def run(x: Any, w: Any, b: Any) -> Any:
        return F.gelu(F.linear(x, w, b))

    return Row(
        run, (_random(T, n, n), _random(T, n, n, scale=1 / 64), _random(T, n)), operations=2.0 * n**3, target=188
    )


def _product(T: Any) -> Row:
    n = 4096
    return Row(
        lambda x, y: x @ y, (_random(T, n, n), _random(T, n, n, scale=1 / 64)), operations=2.0 * n**3, ceiling=True
    )


def _attention_inputs(T: Any) -> tuple[Any, Any, Any]:
    return tuple(_random(T, 8, 16, 2048, 64) for _ in range(3))  # type: ignore[return-value]


def _attention(T: Any) -> Row:
    length = 2048

    def run(q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = q @ k.transpose(-1, -2) / math.sqrt(64)
        return T.softmax(scores.masked_fill(mask, float("-inf")), -1) @ v

    mask = T.ones(length, length, dtype=T.bool, device="cuda").triu(1)
    return Row(run, (*_attention_inputs(T), mask), operations=4.0 * 8 * 16 * length**2 * 64, target=450)


def _sdpa(T: Any) -> Row:
    def run(q: Any, k: Any, v: Any) -> Any:
        return T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Row(run, _attention_inputs(T), operations=2.0 * 8 * 16 * 2048**2 * 64, target=260)


def _convolution(T: Any) -> Row:
    batch, channels, size = 64, 128, 56
    F = T.nn.functional

    def run(x: Any, w: Any, mean: Any, var: Any, g: Any, b: Any, r: Any) -> Any:
        return T.relu(F.batch_norm(F.conv2d(x, w, padding=1), mean, var, g, b, False) + r)

    shape = (batch, channels, size, size)
    x, r = (_random(T, *shape).to(memory_format=T.channels_last) for _ in range(2))
    w = _random(T, channels, channels, 3, 3, scale=0.03).to(memory_format=T.channels_last)
    norm = [_random(T, channels, dtype="float32") for _ in range(4)]
    norm[1] = norm[1].abs() + 0.5
    half = [n.to(T.bfloat16) for n in norm]
    flops = 2.0 * batch * size**2 * channels**2 * 9
    return Row(run, (x, w, *half, r), operations=flops, target=167, tolerance=3e-2)


class _Block:
    """A block of a GPT as PyTorch users write it."""

    def __init__(self, T: Any, width: int, heads: int) -> None:
        class Block(T.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.ln1, self.ln2 = T.nn.LayerNorm(width), T.nn.LayerNorm(width)
                self.qkv, self.out = T.nn.Linear(width, 3 * width), T.nn.Linear(width, width)
                self.up, self.down = T.nn.Linear(width, 4 * width), T.nn.Linear(4 * width, width)

            def forward(self, x: Any) -> Any:
                batch, length, _ = x.shape
                q, k, v = (
                    p.view(batch, length, heads, width // heads).transpose(1, 2)
                    for p in self.qkv(self.ln1(x)).split(width, 2)
                )
                y = T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
                return x + self.down(T.nn.functional.gelu(self.up(self.ln2(x))))

        self.module = Block().to("cuda").to(T.bfloat16)


def _gpt_block(T: Any) -> Row:
    batch, length, width = 16, 1024, 768
    block = _Block(T, width, 12).module

    def run(x: Any, ct: Any) -> Any:
        y = block(x)
        return T.autograd.grad(y, (x, *block.parameters()), ct)

    x = _random(T, batch, length, width, grad=True)
    flops = 3 * (2.0 * batch * length * 12 * width**2 + 2.0 * batch * 12 * length**2 * 64)
    return Row(
        run, (x, _random(T, batch, length, width)), operations=flops, target=2200, tolerance=4e-2, own_parameters=True
    )


def _gpt(T: Any) -> Row:
    model = make(T, GPT2)
    step = training(T, GPT2, model)
    tokens = GPT2.batch * GPT2.length
    check = (lambda: small_error(T)) if T.__name__ == "lamina" else None
    return Row(step, data(T, GPT2), operations=flops(GPT2), tolerance=1e-3, trains=True, tokens=tokens, check=check)


def _tiny(T: Any) -> Row:
    return Row(
        lambda x, y: T.sin(x) + 2 * y, (_random(T, 16, dtype="float32"), _random(T, 16, dtype="float32")), target=12
    )


ROWS: dict[str, Callable[[Any], Row]] = {
    "copy": _copy, "pointwise chain": _pointwise, "softmax": _softmax, "layer norm + gelu": _norm_gelu,
    "rms norm + rotary": _rms_rotary, "layer norm + gelu training": _norm_training,
    "cross entropy training": _cross_entropy, "column standardise + relu": _columns, "adamw": _adamw, "mlp": _mlp,
    "product 4096": _product, "gemm + bias + gelu": _gemm_gelu, "attention by hand": _attention, "causal sdpa": _sdpa,
    "conv + bn + relu": _convolution, "gpt block training": _gpt_block, "gpt training step": _gpt, "tiny call": _tiny,
}  # fmt: skip
