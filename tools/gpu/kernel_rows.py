"""More rows for ``bench.py --table kernels``: running sums, sorts, and tensors that are read along another axis.

They are measured as those of ``rows.py``; bytes are counted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from rows import Row

__all__ = ["KERNEL_ROWS"]

Make = Callable[[Any], Row]
_BYTES = {"bfloat16": 2, "float32": 4, "int64": 8}


def _input(T: Any, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "int64":
        return T.randint(0, 1000, shape, device="cuda")
    return T.randn(*shape, device="cuda").to(getattr(T, dtype))


def _row(
    run: Callable[[Any], Any],
    *inputs: tuple[tuple[int, ...], str],
    out: int = -1,
    tolerance: float = 2e-2,
) -> Make:
    """``run(T)`` is the program; ``inputs``: shapes and dtypes; ``out``: bytes of the results, by default as many as
    the first input's."""

    def make(T: Any) -> Row:
        sizes = [prod(shape) * _BYTES[dtype] for shape, dtype in inputs]
        written = sizes[0] if out < 0 else out
        values = tuple([_input(T, shape, dtype) for shape, dtype in inputs])
        return Row(run(T), values, sum(sizes) + written, "inputs and results once", tolerance=tolerance)

    return make


# -- scans -----------------------------------------------------------------------------------------------


def _cumsum(shape: tuple[int, ...], dtype: str, dim: int = -1) -> Make:
    return _row(lambda T: lambda x: T.cumsum(x, dim), (shape, dtype))


def _cumsum_training(T: Any) -> Row:
    rows, columns = 16384, 4096

    def run(x: Any, ct: Any) -> Any:
        return T.autograd.grad(T.cumsum(x * 0.5, -1), x, ct)[0]

    x = _input(T, (rows, columns), "float32").requires_grad_(True)
    return Row(run, (x, _input(T, (rows, columns), "float32")), 8 * rows * columns, "ct, gradient: 2 * 4 B")


def _softmax_cumsum(T: Any) -> Callable[..., Any]:
    return lambda x: T.cumsum(T.softmax(x, -1), -1)


# -- sorts -----------------------------------------------------------------------------------------------


def _sort(shape: tuple[int, ...], dtype: str) -> Make:
    return _row(lambda T: lambda x: T.sort(x, -1), (shape, dtype), out=prod(shape) * (_BYTES[dtype] + 8))


def _topk(shape: tuple[int, ...], dtype: str, k: int) -> Make:
    return _row(lambda T: lambda x: T.topk(x, k, -1), (shape, dtype), out=shape[0] * k * (_BYTES[dtype] + 8))


def _router(T: Any) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        weights, experts = T.topk(x, 8, -1)
        return T.softmax(weights.float(), -1), experts

    return run


def _top_p(T: Any) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        values, places = T.sort(x, -1, descending=True)
        chances = T.softmax(values, -1)
        before = T.cumsum(chances, -1) - chances
        kept = T.where(before < 0.9, values, -1e4)
        return T.empty_like(x).scatter(-1, places, kept)

    return run


# -- tensors read along another axis -----------------------------------------------------------------------


def _permuted(shape: tuple[int, ...], dtype: str, *dims: int) -> Make:
    return _row(lambda T: lambda x: x.permute(*dims).contiguous(), (shape, dtype))


def _plus_transposed(n: int, dtype: str) -> Make:
    return _row(lambda T: lambda a, b: a + b.T, ((n, n), dtype), ((n, n), dtype))


def _softmax_transposed(T: Any) -> Callable[..., Any]:
    return lambda a, b: T.softmax(a + b.T, -1)


def _norm_transposed(T: Any) -> Callable[..., Any]:
    return lambda x: T.nn.functional.layer_norm(x.transpose(1, 2), (x.shape[1],))


KERNEL_ROWS: dict[str, Make] = {
    "cumsum f32 16384 x 4096": _cumsum((16384, 4096), "float32"),
    "cumsum bf16 16384 x 4096": _cumsum((16384, 4096), "bfloat16"),
    "cumsum f32 8 x 4M": _cumsum((8, 1 << 22), "float32"),
    "cumsum f32 64M": _cumsum((1 << 26,), "float32"),
    "cumsum int64 64M": _cumsum((1 << 26,), "int64"),
    "cumsum f32 4096 x 4096, dim 0": _cumsum((4096, 4096), "float32", 0),
    "cumsum training f32": _cumsum_training,
    "cummax f32 16384 x 4096": _row(lambda T: lambda x: T.cummax(x, -1)[0], ((16384, 4096), "float32")),
    "logcumsumexp f32 16384 x 4096": _row(lambda T: lambda x: T.logcumsumexp(x, -1), ((16384, 4096), "float32")),
    "softmax, cumsum f32 1024 x 50304": _row(_softmax_cumsum, ((1024, 50304), "float32")),
    "sort f32 65536 x 64": _sort((65536, 64), "float32"),
    "sort f32 16384 x 256": _sort((16384, 256), "float32"),
    "sort f32 16384 x 1024": _sort((16384, 1024), "float32"),
    "sort bf16 16384 x 1024": _sort((16384, 1024), "bfloat16"),
    "sort int64 16384 x 1024": _sort((16384, 1024), "int64"),
    "sort f32 4096 x 4096": _sort((4096, 4096), "float32"),
    "topk 50 bf16 64 x 50304": _topk((64, 50304), "bfloat16", 50),
    "topk 50 f32 4096 x 50304": _topk((4096, 50304), "float32", 50),
    "router: topk 8 bf16 65536 x 256": _row(_router, ((65536, 256), "bfloat16"), out=65536 * 8 * 12),
    "top-p f32 64 x 50304": _row(_top_p, ((64, 50304), "float32")),
    "a + b.T f32 8192": _plus_transposed(8192, "float32"),
    "a + b.T bf16 8192": _plus_transposed(8192, "bfloat16"),
    "transposed copy f32 8192": _permuted((8192, 8192), "float32", 1, 0),
    "transposed copy bf16 8192": _permuted((8192, 8192), "bfloat16", 1, 0),
    "NCHW to NHWC bf16 64 x 128 x 56 x 56": _permuted((64, 128, 56, 56), "bfloat16", 0, 2, 3, 1),
    "heads to rows bf16 8 x 4096 x 32 x 128": _permuted((8, 4096, 32, 128), "bfloat16", 0, 2, 1, 3),
    "reversed axes f32 256 x 384 x 512": _permuted((256, 384, 512), "float32", 2, 1, 0),
    "short axis f32 1M x 3": _permuted((1 << 20, 3), "float32", 1, 0),
    "softmax(a + b.T) bf16 8192": _row(_softmax_transposed, ((8192, 8192), "bfloat16"), ((8192, 8192), "bfloat16")),
    "layer norm transposed bf16 64 x 768 x 1024": _row(_norm_transposed, ((64, 768, 1024), "bfloat16")),
}
"""Names to rows."""
