"""Device conformance: every operator's samples on the stub device give the CPU's results, on the device.

The stub's arrays refuse those of the host and have the functions that CuPy has, so that this also finds references
that lean on NumPy itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_fx import TensorSpec
from lamina_prims import operator
from lamina_prims.registry import operators
from lamina_tensor import cuda
from lamina_tensor.creator import creating_tensors
from lamina_tensor.cuda.stub_provider import StubProvider

SAMPLED = [id for id, op in operators().items() if op.samples is not None and not op.effect]
MAY_LEAVE = ("device_put", "to.device", "to.other")
"""Operators whose samples name the CPU as the place of the result."""


@pytest.fixture(scope="module", autouse=True)
def stub() -> Iterator[StubProvider]:
    provider = StubProvider()
    before = cuda.use_provider(provider)
    yield provider
    cuda.use_provider(before)


def map_arrays(value: Any, fn: Any) -> Any:
    if isinstance(value, np.ndarray):
        return fn(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map_arrays(v, fn) for v in value)
    return {k: map_arrays(v, fn) for k, v in value.items()} if isinstance(value, dict) else value


def flat(value: Any) -> list[Any]:
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def on_cpu(array: np.ndarray[Any, Any]) -> Any:
    return lt.tensor(array)


def on_gpu(array: np.ndarray[Any, Any]) -> Any:
    return lt.tensor(array).cuda()


def same(got: Any, want: Any, values: bool) -> None:
    assert got.dtype is want.dtype and got.shape == want.shape
    if values:
        a, b = got.cpu().numpy(), want.numpy()
        if a.dtype.num >= 256:
            a, b = a.astype(np.float32), b.astype(np.float32)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("id", SAMPLED)
def test_samples_on_the_device(id: str) -> None:
    op = operator(id)
    places = any(p.name == "device" for p in op.schema.parameters)
    for sample in op.samples(np.random.default_rng(0)):
        args, kwargs = map_arrays(sample.args, on_gpu), map_arrays(sample.kwargs, on_gpu)
        if not any(isinstance(v, lt.Tensor) for v in flat([*args, *kwargs.values()])):
            if not places:
                continue
            kwargs["device"] = "cuda"
        with creating_tensors():
            want = flat(op(*map_arrays(sample.args, on_cpu), **map_arrays(sample.kwargs, on_cpu)))
            got = flat(op(*args, **kwargs))
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            if isinstance(b, lt.Tensor):
                assert a.device.type == "cuda" or id in MAY_LEAVE
                same(a, b, "nondeterministic" not in op.tags)
            else:
                assert a is b or a == b


INFERRED = [id for id in SAMPLED if operator(id).meta is not None and "dynamic" not in operator(id).tags]


@pytest.mark.parametrize("id", INFERRED)
def test_the_meta_tells_layout_and_device(id: str) -> None:
    op = operator(id)
    sample = next(iter(op.samples(np.random.default_rng(1))))
    args, kwargs = map_arrays(sample.args, on_gpu), map_arrays(sample.kwargs, on_gpu)
    if not any(isinstance(v, lt.Tensor) for v in flat([*args, *kwargs.values()])) or id in MAY_LEAVE:
        return

    def spec(value: Any) -> Any:
        if isinstance(value, lt.Tensor):
            return value.spec
        return type(value)(spec(v) for v in value) if isinstance(value, (list, tuple)) else value

    wanted = flat(op.infer(spec(args), {k: spec(v) for k, v in kwargs.items()}))
    with creating_tensors():
        got = flat(op(*args, **kwargs))
    for a, want in zip(got, wanted, strict=True):
        if isinstance(want, TensorSpec):
            assert (a.spec.shape, a.dtype, a.device) == (want.shape, want.dtype, want.device)
            ones = [n == 1 or 0 in want.shape for n in want.shape]
            assert all(o or x == y for o, x, y in zip(ones, a.stride(), want.strides, strict=True))


ERRING = [id for id, op in operators().items() if op.errors]


@pytest.mark.parametrize("id", ERRING)
def test_errors_are_those_of_the_cpu(id: str) -> None:
    op = operator(id)
    for sample in op.errors() if callable(op.errors) else op.errors:
        args, kwargs = sample.args, sample.kwargs
        try:
            with creating_tensors():
                op(*map_arrays(args, on_cpu), **map_arrays(kwargs, on_cpu))
        except sample.error as error:
            wanted = str(error)
        else:
            continue  # only the meta function objects: what is computed makes sense
        with creating_tensors(), pytest.raises(sample.error) as raised:
            op(*map_arrays(args, on_gpu), **map_arrays(kwargs, on_gpu))
        assert str(raised.value).replace(" cuda:0", "") == wanted
