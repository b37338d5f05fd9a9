"""The launcher by itself, with a plan made by hand, on the stub of the driver."""

from __future__ import annotations

from typing import Any

import pytest
from stub_device import StubDevice

import lamina
from lamina_inductor.host.gpu import gpu_launcher


def program(*kernels: tuple[Any, ...], grid: tuple[int, int, int] = (1, 1, 1)) -> Any:
    """One launch of each kernel, over one input of 16 floats."""
    arguments = ((0, 0, -1, 0), (5, -1, -1, 0), (5, -1, -1, 0))
    return gpu_launcher().Program(
        name="plan", device=0, inputs=((11, True, False, -1, (0,), (1,)),), outputs=(), sizes=(), slots=(16, 1, *grid),
        operations=(), constants=(), workspace=(1, -1, ()), kernels=kernels, descriptors=(), tables=(),
        steps=tuple([("launch", (k, (2, 3, 4), arguments)) for k in range(len(kernels))]), results=(), host_call=None,
        fail=None, adapt=None, checks=False, captured=0,
    )  # fmt: skip


def test_programs_of_a_kernel_that_wait_for_each_other_run_at_once(device: StubDevice) -> None:
    x = lamina.zeros(16).cuda()
    before = device.library.stub_cooperative()
    run = program(
        ("plain", b"plain\0", 0, 128, 1), ("waits", b"waits\0", 0, 64, 2, True), ("last", b"last\0", 0, 32, 1, False)
    )
    with device.blind():
        run(x)
    assert device.library.stub_cooperative() == before + 1


def test_an_empty_grid_is_no_launch_and_a_huge_one_is_refused(device: StubDevice) -> None:
    x, kernel = lamina.zeros(16).cuda(), ("k0", b"k0\0", 0, 128, 1)
    before = device.library.stub_launches()
    program(kernel, grid=(4, 0, 1))(x)
    assert device.library.stub_launches() == before
    with pytest.raises(RuntimeError, match="plan: kernel k0 would need 70000 programs"):
        program(kernel, grid=(4, 70000, 1))(x)
    version = x._version
    device.library.stub_fail_launch(719)
    with pytest.raises(RuntimeError, match="plan: launching kernel k0 failed: CUDA_ERROR_STUB"):
        program(kernel)(x)
    assert x._version == version + 1  # it may have been written
