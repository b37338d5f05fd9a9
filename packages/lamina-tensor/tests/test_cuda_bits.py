"""``nextafter`` on a device, from the order of bits: all numbers of half types, and the odd ones of the wide types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider


@pytest.fixture(autouse=True)
def stub() -> Iterator[None]:
    before = cuda.use_provider(StubProvider())
    yield
    cuda.use_provider(before)


def odd_numbers(dtype: Any) -> np.ndarray[Any, Any]:
    info = np.finfo(dtype)
    found = np.array([0, info.smallest_subnormal, info.tiny, 1, info.max, np.inf, np.nan], dtype)
    return np.concatenate([found, -found, np.nextafter(found, dtype(0.5))])


NUMBERS = {
    "float16": np.arange(1 << 16, dtype=np.uint16).view(np.float16),
    "bfloat16": np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16),
    "float32": odd_numbers(np.float32),
    "float64": odd_numbers(np.float64),
}


@pytest.mark.parametrize("to", [0.0, -0.0, np.inf, -np.inf, 1.0, np.nan])
@pytest.mark.parametrize("name", NUMBERS)
def test_neighbours(name: str, to: float) -> None:
    x = NUMBERS[name]
    with np.errstate(all="ignore"):
        want = np.nextafter(x, np.array(to, x.dtype))
    for y in (lt.full(x.shape, to, dtype=getattr(lt, name), device="cuda"), to):
        got = lt.nextafter(lt.tensor(x).cuda(), y).cpu().numpy()
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))
        some = ~np.isnan(want) & ((want != 0) | (to != 0))  # C and NumPy differ from 0 to -0 in half
        np.testing.assert_array_equal(np.signbit(got)[some], np.signbit(want)[some])
