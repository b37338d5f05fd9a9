"""A pytest plugin: tests of eager tensors run on the device "cuda", though they do not name it.

    PYTHONPATH=tools/gpu:packages/lamina-fx/src:packages/lamina-prims/src:packages/lamina-tensor/src \
        python -m pytest -p on_device packages/lamina-tensor/tests/test_nn.py

Tensors are made on the device by default; ``numpy()`` copies, and ``from_numpy`` uploads. What is about the CPU itself
(memory shared with NumPy, specs without a device) is left out. ``LAMINA_CUDA_PROVIDER=stub`` does it without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lamina_tensor as lt

try:
    import pytest
except ImportError:  # ``everything_there`` needs none
    pytest = None  # type: ignore[assignment]

CPU_ONLY = (
    "test_numpy_and_from_numpy_share_memory",
    "test_fake_tensors_know_shapes_views_and_gradients",
    "test_no_gpu_is_said_clearly",
    "test_autocast_lists",
    "test_get_and_set_as_numpy[[[0 1] [1 0]]]",  # equal indices: which value stays is not determined on a GPU
)

_numpy, _from_numpy = lt.Tensor.numpy, lt.from_numpy


def numpy(self: Any, *, force: bool = False) -> Any:
    """A copy on the host, with the errors of the CPU."""
    return _numpy(self.cpu() if self.is_cuda and not self.requires_grad else self, force=force)


def from_numpy(array: Any) -> Any:
    """On the device."""
    return _from_numpy(array).cuda()


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leave out what is about the CPU."""
    items[:] = [item for item in items if not item.name.startswith(CPU_ONLY)]


@contextmanager
def everything_there(front_end: Any = lt) -> Iterator[None]:
    """Inside, tensors are made on the device, and what is asked for an ndarray copies."""
    lt.Tensor.numpy, front_end.from_numpy = numpy, from_numpy
    lt.set_default_device("cuda")
    try:
        yield
    finally:
        lt.set_default_device(None)
        lt.Tensor.numpy, front_end.from_numpy = _numpy, _from_numpy


if pytest is not None:

    @pytest.fixture(autouse=True)
    def everything_on_the_device() -> Iterator[None]:
        """Of each test."""
        with everything_there():
            yield
