"""Steps that are no kernels read views that go backwards: references on the host, products, convolutions, copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina
from lamina.nn import functional as F

X = lamina.arange(20.0).reshape(4, 5) % 7 - 3
Y = lamina.arange(30.0).reshape(5, 6) % 11 - 5
BATCH = lamina.arange(3 * 4 * 5.0).reshape(3, 4, 5).sin()
IMAGES = lamina.arange(2 * 3 * 6 * 6.0).reshape(2, 3, 6, 6).cos()
FILTERS = IMAGES[:, :, :3, :3]

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a reference": (lambda x: lamina.linalg.pinv(x.flip(0)), (X,)),
    "a reference of two elements": (lambda x: lamina.linalg.inv(x[:2, :2].flip(0)), (X,)),
    "a sort": (lambda x: x.flip((0, 1)).sort(1), (X,)),
    "rows of a product": (lambda x, y: x.flip(0) @ y, (X, Y)),
    "columns of a product": (lambda x, y: x.flip(1) @ y, (X, Y)),
    "both sides of a product": (lambda x, y: x.flip((0, 1)) @ y.flip((0, 1)), (X, Y)),
    "batches": (lambda x: x.flip(0) @ x.mT.flip(0), (BATCH,)),
    "attention": (lambda x: F.scaled_dot_product_attention(x.flip(1), x.flip(0), x.flip((0, 1))), (BATCH,)),
    "a convolution": (lambda x, w: F.conv2d(x.flip(3), w.flip(2)), (IMAGES, FILTERS)),
    "many parts": (lambda x: lamina.cat([x.flip(0), x.flip(1)] * 10), (X,)),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_flipped_operands(name: str, dynamic: bool | None) -> None:
    fn, inputs = PROGRAMS[name]
    got, wanted = lamina.compile(fn, dynamic=dynamic)(*inputs), fn(*inputs)
    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, wanted)], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)
