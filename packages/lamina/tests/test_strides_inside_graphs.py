"""Operators whose meaning depends on where elements lie in memory: compiled as eager, also of values that a compiled
program computes and that eager code lays out in another order than their dimensions'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lamina
from lamina.nn import functional as F

BACKENDS = ("cpp", "reference")


def turned(*shape: int) -> lamina.Tensor:
    """Memory has the dimensions in the opposite order."""
    size = 1
    for n in shape:
        size *= n
    return lamina.arange(float(size)).add(1).sin().reshape(shape[::-1]).permute(tuple(range(len(shape)))[::-1])


def images() -> lamina.Tensor:
    return turned(5, 4, 3, 2).permute(3, 2, 1, 0).contiguous(memory_format=lamina.channels_last)


MATRIX: dict[str, Callable[[Any], Any]] = {
    "as it lies": lambda x: x.mul(2).as_strided((4, 3), (1, 4)),
    "flat": lambda x: x.mul(2).as_strided((12,), (1,)),
    "offset": lambda x: x.mul(2).as_strided((3,), (4,), 2),
    "conversion": lambda x: x.double().as_strided((12,), (1,)),
    "diagonal": lambda x: x.mul(2).diagonal(),
    "diagonal beside": lambda x: x.mul(2).diagonal(-1),
    "diagonal of a part": lambda x: x.mul(2)[1:, ::2].diagonal(),
    "diagonal of an expansion": lambda x: x.mul(2)[0].expand(3, 3).diagonal(),
    "diagonal of windows": lambda x: x.mul(2)[:, 1].unfold(0, 2, 1).t().diagonal(),
    "diagonal of overlaps": lambda x: x.mul(2).as_strided((2, 4), (3, 2)).t().diagonal(),
    "unfold": lambda x: x.mul(2).unfold(0, 2, 1),
    "beyond a part": lambda x: x.mul(2)[1:, ::2].as_strided((3,), (2,), 1),
    "of a transpose": lambda x: x.mul(2).t().as_strided((3, 4), (4, 1)),
    "of an expansion": lambda x: x.mul(2)[:1].expand(3, 3).as_strided((3,), (4,)),
    "written through": lambda x: (lambda v: (v.as_strided((6,), (1,)).fill_(7), v)[1])(x.mul(2)),
    "diagonal written": lambda x: (lambda v: (v.diagonal().fill_(7), v)[1])(x.mul(2)),
    "flip": lambda x: x.flip(0).as_strided((12,), (1,)),
    "where": lambda x: lamina.where(x > 0, x, -x).as_strided((12,), (1,)),
    "cummax": lambda x: x.cummax(1)[0].as_strided((12,), (1,)),
    "parts of a complex": lambda x: lamina.complex(x, x * 2).imag.as_strided((6,), (2,)),
    "input": lambda x: x.as_strided((12,), (1,)),
    "part of the input": lambda x: x[1:].diagonal() * 2,
}
IMAGES: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: x.relu().as_strided((120,), (1,)),
    "convolution": lambda x: F.conv2d(x, lamina.ones(2, x.shape[1], 1, 1)).as_strided((40,), (1,)),
    "diagonal": lambda x: x.relu().diagonal(0, 1, 3),
    "unfold": lambda x: x.relu().unfold(2, 2, 1),
    "broadcast": lambda x: (x.relu() + lamina.ones(x.shape[1], 1, 1)).as_strided((120,), (1,)),
}
CASES = [(f, lambda: turned(4, 3)) for f in MATRIX.values()] + [(f, images) for f in IMAGES.values()]
NAMES = [*MATRIX, *(f"images: {name}" for name in IMAGES)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("function", "make"), CASES, ids=NAMES)
def test_memory_is_seen_as_eager_lays_it_out(function: Any, make: Any, backend: str, dynamic: bool) -> None:
    want = function(make())
    got = lamina.compile(function, backend=backend, dynamic=dynamic)(make())
    lamina.testing.assert_close(got, want)


DECOMPOSED: dict[str, Callable[[Any], Any]] = {
    "with nothing in front": lambda x: lamina.cat([lamina.zeros(0), x]).as_strided((12,), (1,)),
    "diag_embed": lambda x: lamina.diag_embed(x).as_strided((16,), (1,)),
    "view_as_real": lambda x: lamina.view_as_real(lamina.complex(x, x)).as_strided((24,), (1,)),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", DECOMPOSED.values(), ids=DECOMPOSED)
def test_what_an_operator_decomposes_to_has_its_layout(function: Any, backend: str, dynamic: bool) -> None:
    x = turned(4, 3)
    lamina.testing.assert_close(lamina.compile(function, backend=backend, dynamic=dynamic)(x), function(x))


@pytest.mark.parametrize("function", [MATRIX[n] for n in ("flat", "offset", "diagonal", "beyond a part", "unfold")])
def test_gradients_reach_the_elements_that_were_seen(function: Any) -> None:
    def gradient(x: Any) -> Any:
        y = function(x)
        return lamina.autograd.grad((y * lamina.arange(float(y.numel())).reshape(y.shape)).sum(), x)[0]

    want = gradient(turned(4, 3).requires_grad_())
    lamina.testing.assert_close(lamina.compile(gradient)(turned(4, 3).requires_grad_()), want)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [lambda x: lamina.fft.fft(x), lambda x: lamina.polar(x, x), lambda x: x.cummax(0)])
def test_results_of_the_reference_backend_have_eager_strides(function: Any, dynamic: bool) -> None:
    got = lamina.compile(function, backend="reference", dynamic=dynamic)(turned(4, 3))
    want = function(turned(4, 3))
    for a, b in zip(
        (got,) if isinstance(got, lamina.Tensor) else got, (want,) if isinstance(want, lamina.Tensor) else want
    ):
        assert a.stride() == b.stride()
