"""Comparison of tensors with tolerances that follow from the dtype.

>>> from lamina_tensor import tensor
>>> assert_close(tensor([1.0, 2.0]), tensor([1.0, 2.0 + 1e-7]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lamina_fx import DType
from lamina_prims.arrays import numpy_dtype

from .._C import TensorBase, wrap

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7), "float8_e4m3fn": (1e-1, 1e-2), "float8_e5m2": (2e-1, 1e-2),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_dtype: bool = True,
    check_device: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Tensors, numbers, arrays, and sequences and mappings of them. The tolerances follow from the dtypes (the wider of
    both) unless both are given; shape, dtype and device must agree.

    Raises:
        ValueError: only one of ``rtol`` and ``atol`` is given. AssertionError: the message says where and by how much.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    options = (rtol, atol, equal_nan, check_dtype, check_device, check_stride)
    try:
        _compare(actual, expected, "", options)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """``assert_close`` without a check of the dtype."""
    assert_close(actual, expected, rtol=rtol, atol=atol, check_dtype=False, equal_nan=True)


def _compare(actual: Any, expected: Any, where: str, options: tuple[Any, ...]) -> None:
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(actual) != set(expected):
            raise AssertionError(f"The keys of the mappings do not match{where}: {list(actual)} and {list(expected)}")
        for key in expected:
            _compare(actual[key], expected[key], f"{where} at key {key!r}", options)
        return
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences do not match{where}: {len(actual)} != {len(expected)}")
        for index, (a, b) in enumerate(zip(actual, expected)):
            _compare(a, b, f"{where} at index {index}", options)
        return
    if expected is None or isinstance(expected, str):
        if actual != expected:
            raise AssertionError(f"{actual!r} is not {expected!r}{where}")
        return
    numbers = not isinstance(actual, TensorBase) and not isinstance(expected, TensorBase)
    left, right = _tensor(actual), _tensor(expected)
    _check_attributes(left, right, where, options, numbers)
    _check_values(left, right, where, options)


def _tensor(value: Any) -> Any:
    return value.detach() if isinstance(value, TensorBase) else wrap(np.asarray(value))


def _check_attributes(left: Any, right: Any, where: str, options: tuple[Any, ...], numbers: bool) -> None:
    _, _, _, dtype, device, stride = options
    if left._sizes != right._sizes:
        raise AssertionError(f"The values for attribute 'shape' do not match{where}: {left.shape} != {right.shape}.")
    if dtype and not numbers and left.dtype is not right.dtype:
        raise AssertionError(
            f"The values for attribute 'dtype' do not match{where}: {left.dtype!r} != {right.dtype!r}."
        )
    if device and left.device != right.device:
        raise AssertionError(f"The values for attribute 'device' do not match{where}: {left.device} != {right.device}.")
    if stride and left.stride() != right.stride():
        raise AssertionError(
            f"The values for attribute 'stride()' do not match{where}: {left.stride()} != {right.stride()}."
        )


def _check_values(left: Any, right: Any, where: str, options: tuple[Any, ...]) -> None:
    rtol, atol, equal_nan = options[:3]
    if rtol is None:
        pairs = [_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (left, right)]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    a, b = _wide(left), _wide(right)
    with np.errstate(all="ignore"):
        if a.dtype.kind in "fc":
            bad = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
        else:
            bad = a != b
        if not bad.any():
            return
        distance = np.abs(a - b) if a.dtype.kind != "b" else np.abs(a.astype(np.int64) - b)
        relative = np.where(b != 0, distance / np.abs(b), np.inf) if a.dtype.kind in "fc" else distance
    worst = np.unravel_index(np.argmax(np.where(bad, np.nan_to_num(distance, nan=np.inf), -1)), bad.shape)
    at = tuple(int(i) for i in worst)
    raise AssertionError(
        f"Tensor-likes are not close{where}!\n\n"
        f"Mismatched elements: {int(bad.sum())} / {bad.size} ({100 * bad.mean():.1f}%)\n"
        f"Greatest absolute difference: {distance[worst]} at index {at} (up to {atol} allowed)\n"
        f"Greatest relative difference: {relative[worst]} at index {at} (up to {rtol} allowed)\n"
        f"actual {a[worst]}, expected {b[worst]}"
    )


def _wide(tensor: Any) -> np.ndarray[Any, Any]:
    array = tensor._values("assert_close")
    kind = tensor.dtype.kind
    return array.astype({"float": np.float64, "complex": np.complex128, "int": array.dtype, "bool": bool}[kind])


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    seed: int = 0,
) -> Any:
    """A tensor of pseudo-random numbers in [low, high) (by default [-9, 9), [0, 10) for unsigned, bools)."""
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    drawn = (*sizes[:-1], sizes[-1] * 2) if noncontiguous and sizes else sizes
    generator = np.random.default_rng(seed)
    bottom = low if low is not None else -9 if dtype.is_signed else 0
    top = high if high is not None else 2 if dtype.kind == "bool" else 9 if dtype.is_signed else 10
    values = generator.uniform(bottom, top, drawn)
    if dtype.kind == "complex":
        values = values + 1j * generator.uniform(bottom, top, drawn)
    if dtype.kind in ("int", "bool"):
        values = np.floor(values)
    made = wrap(np.asarray(values).astype(numpy_dtype(dtype)))
    made = made if device is None else made.to(device)
    made = made[..., ::2] if noncontiguous and sizes else made
    return made.requires_grad_() if requires_grad else made
