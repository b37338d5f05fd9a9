"""What ``templates.py`` checks and times: functions over operators, their rivals in PyTorch, and tiles to try."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.nn.functional import conv2d, gelu, scaled_dot_product_attention

from lamina_fx import TensorSpec, bfloat16, bool_, float32
from lamina_inductor.tune.candidates import AttentionCandidate, Candidate, GemmCandidate
from lamina_prims import ops

__all__ = ["BACKWARD", "FORWARD", "Case", "attention_cases", "convolution_cases", "product_cases"]


@dataclass
class Case:
    """``fn`` over operators, ``rival`` and ``exact`` over PyTorch tensors; work in FLOP."""

    name: str
    fn: Callable[..., Any]
    specs: tuple[TensorSpec, ...]
    rival: Callable[..., Any]
    flops: float
    tries: list[Candidate] = field(default_factory=list)
    best: int = 6
    tolerance: float = 1e-2


def spec(*shape: int, dtype: Any = bfloat16) -> TensorSpec:
    return TensorSpec(shape, dtype)


WIDE = [
    GemmCandidate(128, 256, 64, 8, 3), GemmCandidate(128, 256, 64, 8, 4), GemmCandidate(256, 128, 64, 8, 3),
    GemmCandidate(128, 256, 64, 8, 3, descriptors=True), GemmCandidate(128, 256, 64, 8, 4, descriptors=True),
    GemmCandidate(128, 256, 64, 8, 3, persistent=True), GemmCandidate(128, 256, 64, 8, 3, 8, 1, True, True),
    GemmCandidate(128, 256, 64, 8, 4, 8, 1, True, True), GemmCandidate(128, 256, 64, 8, 4, 16, 1, True, True),
    GemmCandidate(256, 128, 64, 8, 3, descriptors=True), GemmCandidate(128, 128, 64, 4, 3),
    GemmCandidate(128, 128, 64, 8, 4), GemmCandidate(128, 256, 64, 8, 4, group=4, descriptors=True),
    GemmCandidate(128, 256, 64, 8, 4, group=16, descriptors=True),
]  # fmt: skip


def transposed(x: Any) -> Any:
    return ops.permute(x, (1, 0))


def product_cases() -> list[Case]:
    n = 4096
    square = spec(n, n)
    work = 2.0 * n**3
    big = 2.0 * 8192 * 4096 * 16384
    return [
        Case("4096 plain", ops.matmul, (square, square), torch.matmul, work, WIDE, 0),
        Case(
            "4096 bias gelu", lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)), (square, square, spec(n)),
            lambda x, w, b: gelu(x @ w + b), work, WIDE, 0,
        ),
        Case(
            "4096 bias tanh-gelu", lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b), "tanh"),
            (square, square, spec(n)), lambda x, w, b: gelu(x @ w + b, approximate="tanh"), work, WIDE[:5], 0,
        ),
        Case(
            "4096 linear", lambda x, w: ops.matmul(x, transposed(w)), (square, square), lambda x, w: x @ w.T, work,
            WIDE[:8], 0,
        ),
        Case(
            "mlp up", lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)),
            (spec(8192, 4096), spec(4096, 16384), spec(16384)), lambda x, w, b: gelu(x @ w + b), big, WIDE[:9], 0,
        ),
        Case(
            "mlp down", lambda x, w, b: ops.add(ops.matmul(x, w), b),
            (spec(8192, 16384), spec(16384, 4096), spec(4096)), lambda x, w, b: x @ w + b, big, WIDE[:9], 0,
        ),
        Case(
            "gpt up", lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)),
            (spec(16384, 768), spec(768, 3072), spec(3072)), lambda x, w, b: gelu(x @ w + b), 2.0 * 16384 * 768 * 3072,
            WIDE[:9], 3,
        ),
        Case(
            "gpt weight gradient", lambda x, g: ops.matmul(transposed(x), g), (spec(16384, 768), spec(16384, 768)),
            lambda x, g: x.T @ g, 2.0 * 16384 * 768 * 768,
            [GemmCandidate(128, 128, 64, 4, 4, split=s) for s in (2, 4, 8)], 5,
        ),
        *gpt_cases(),
        Case(
            "thin, weights converted", lambda x, w: ops.matmul(x, ops.convert_element_type(w, bfloat16)),
            (spec(16, 4096), spec(4096, 4096, dtype=float32)), lambda x, w: x @ w.to(x.dtype), 2.0 * 2**28,
            [GemmCandidate(16, 64, 128, 4, 4)], 0,
        ),
        Case(
            "thin", lambda x, w, b: ops.relu(ops.add(ops.matmul(x, w), b)),
            (spec(16, 4096), spec(4096, 4096), spec(4096)), lambda x, w, b: torch.relu(x @ w + b), 2.0 * 2**28,
            [GemmCandidate(16, 64, 128, 4, 4, split=s) for s in (2, 4, 8)], 6,
        ),
    ]  # fmt: skip


def gpt_cases() -> list[Case]:
    """Products of a training step of a GPT block, 16 x 1024 x 768."""
    rows = 16384

    def product(name: str, m: int, k: int, n: int, fn: Any, rival: Any, *specs: TensorSpec) -> Case:
        return Case(f"gpt {name}", fn, specs, rival, 2.0 * m * k * n, [], 5)

    return [
        product(
            "qkv", rows, 768, 2304, lambda x, w, b: ops.add(ops.matmul(x, w), b), lambda x, w, b: x @ w + b,
            spec(rows, 768), spec(768, 2304), spec(2304),
        ),
        product(
            "projection", rows, 768, 768, lambda x, w, b, r: ops.add(ops.add(ops.matmul(x, w), b), r),
            lambda x, w, b, r: x @ w + b + r, spec(rows, 768), spec(768, 768), spec(768), spec(rows, 768),
        ),
        product(
            "down", rows, 3072, 768, lambda x, w, b, r: ops.add(ops.add(ops.matmul(x, w), b), r),
            lambda x, w, b, r: x @ w + b + r, spec(rows, 3072), spec(3072, 768), spec(768), spec(rows, 768),
        ),
        product(
            "input gradient", rows, 768, 3072, lambda g, w, h: ops.mul(ops.matmul(g, transposed(w)), h),
            lambda g, w, h: (g @ w.T) * h, spec(rows, 768), spec(3072, 768), spec(rows, 3072),
        ),
        product(
            "up weight gradient", 768, rows, 3072, lambda x, g: ops.matmul(transposed(x), g), lambda x, g: x.T @ g,
            spec(rows, 768), spec(rows, 3072),
        ),
    ]  # fmt: skip


FORWARD = [AttentionCandidate(*c) for c in ((128, 64, 4, 3), (128, 128, 8, 2), (128, 64, 8, 3), (64, 64, 4, 3),
                                            (128, 128, 8, 3), (64, 128, 4, 3), (128, 64, 4, 2))]  # fmt: skip
BACKWARD = [
    AttentionCandidate(*c)
    for c in (
        (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 8, 2), (64, 128, 4, 2), (128, 128, 8, 2), (32, 128, 4, 2),
        (64, 128, 8, 3), (32, 64, 4, 3), (128, 64, 4, 2), (128, 64, 8, 2),
    )
]  # fmt: skip


FORWARD += [replace(c, descriptors=True) for c in FORWARD]
BACKWARD += [replace(c, descriptors=True) for c in BACKWARD]


def attention(mask: bool = False, causal: bool = False) -> Any:
    def fn(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        return ops.attention_with_lse(q, k, v, rest[0] if mask else None, causal, 0.125, 0.0, None)[0]

    return fn


def backward(g: Any, q: Any, k: Any, v: Any) -> Any:
    out, lse = ops.attention_with_lse(q, k, v, None, True, 0.125, 0.0, None)
    return ops.attention_backward(g, None, out, lse, q, k, v, None, True, 0.125, 0.0, None)


def torch_backward(g: Any, q: Any, k: Any, v: Any) -> Any:
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        result = scaled_dot_product_attention(*leaves, is_causal=True)
        return torch.autograd.grad(result, leaves, g)


def attention_cases() -> list[Case]:
    shape = (8, 16, 2048, 64)
    heads = spec(*shape)
    work = 2.0 * 2 * 8 * 16 * 2048 * 2048 * 64 / 2
    causal = torch.ones(2048, 2048, dtype=torch.bool, device="cuda").tril()
    small = spec(16, 12, 1024, 64)
    wide = spec(4, 16, 2048, 128)
    return [
        Case(
            "gpt attention forward and backward", backward, (small,) * 4, torch_backward, work * 1.3125, BACKWARD, 1,
        ),
        Case(
            "gpt attention", attention(causal=True), (small,) * 3,
            lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True), work * 0.375, FORWARD, 1,
        ),
        Case(
            "wide attention", attention(causal=True), (wide,) * 3,
            lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.125), work,
            [*FORWARD[:5], *FORWARD[7:12]], 3,
        ),
        Case(
            "causal attention", attention(causal=True), (heads,) * 3,
            lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True), work, FORWARD, 2,
        ),
        Case(
            "masked attention", attention(mask=True), (*(heads,) * 3, spec(2048, 2048, dtype=bool_)),
            lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m), work, FORWARD, 0,
        ),
        Case(
            "additive mask", lambda q, k, v, m: attention(mask=True)(q, k, v, ops.where(m, 0.0, -math.inf)),
            (*(heads,) * 3, spec(2048, 2048, dtype=bool_)),
            lambda q, k, v, m: scaled_dot_product_attention(q, k, v, causal), work, FORWARD[:3], 0,
        ),
        Case(
            "causal attention forward and backward", backward, (heads,) * 4, torch_backward, 3.5 * work, BACKWARD, 1,
        ),
    ]  # fmt: skip


def convolution(x: Any, w: Any, mean: Any, scale: Any, shift: Any, r: Any) -> Any:
    y = ops.convolution(x, w, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    y = ops.add(ops.mul(ops.sub(y, _over(mean)), _over(scale)), _over(shift))
    return ops.relu(ops.add(y, r))


def _over(v: Any) -> Any:
    return ops.reshape(v, (1, v.shape[0], 1, 1))


def torch_convolution(x: Any, w: Any, mean: Any, scale: Any, shift: Any, r: Any) -> Any:
    y = conv2d(x, w, padding=1)
    return torch.relu((y - mean[:, None, None]) * scale[:, None, None] + shift[:, None, None] + r)


def convolution_cases() -> list[Case]:
    image, vector = spec(64, 128, 56, 56), spec(128)
    last = TensorSpec((64, 128, 56, 56), bfloat16, (56 * 56 * 128, 1, 56 * 128, 128))
    tries = [GemmCandidate(*c) for c in ((128, 128, 64, 8, 3), (128, 128, 64, 4, 3))]
    tries += [GemmCandidate(*c, descriptors=True) for c in ((128, 128, 64, 4, 3), (256, 128, 64, 8, 3))]
    tries += [GemmCandidate(256, 128, 64, 8, s, persistent=True, descriptors=True) for s in (3, 4)]
    work = 2.0 * 64 * 56 * 56 * 128 * 128 * 9
    rest = (spec(128, 128, 3, 3), vector, vector, vector)
    return [
        Case("convolution", convolution, (image, *rest, image), torch_convolution, work, tries, 0),
        Case("convolution, channels last", convolution, (last, *rest, last), torch_convolution, work, tries, 0),
    ]
