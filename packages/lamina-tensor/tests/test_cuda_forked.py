"""A child of a process that used a device: it cannot use one, says so everywhere, and computes on the CPU."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.fixture(autouse=True)
def stub() -> Iterator[None]:
    before = cuda.use_provider(StubProvider())
    yield
    cuda.use_provider(before)


def in_child(call: Callable[[], Any]) -> str:
    """What a forked child's call gives, or the error that it raises, as text."""
    source, target = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = repr(call())
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            said = f"{type(error).__name__}: {error}"
        os.write(target, said.encode())
        os._exit(0)
    os.close(target)
    with os.fdopen(source) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


REFUSED: dict[str, Callable[[Any], Any]] = {
    "a new tensor": lambda x: lt.zeros(2, device="cuda"),
    "a copy to the device": lambda x: lt.ones(2).cuda(),
    "a copy from the device": lambda x: x.cpu(),
    "a ufunc": lambda x: x + 1,
    "a reference": lambda x: x.sort(),
    "a product": lambda x: x @ x.t(),
    "a write": lambda x: x.fill_(1),
    "a number": lambda x: x[0, 0].item(),
    "printing": repr,
    "copying": copy.deepcopy,
    "random numbers": lambda x: lt.rand(2, device="cuda"),
    "the current stream": lambda x: cuda.current_stream(),
    "an event": lambda x: cuda.Event().record(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_forked_child_is_told_to_be_spawned(what: str) -> None:
    x = lt.ones(2, 2, device="cuda")
    x + 1, x.sort(), x @ x.t()  # the fast ways there are known
    said = in_child(lambda: REFUSED[what](x))
    assert said.startswith("RuntimeError: Cannot re-initialize CUDA in forked subprocess"), said
    assert "'spawn' start method" in said
    assert REFUSED["a number"](x) in (0.0, 1.0)  # the parent goes on


def test_what_needs_no_device_goes_on() -> None:
    x = lt.ones(2, 2, device="cuda")

    def work() -> Any:
        nonlocal x
        x = None
        lt.manual_seed(3)
        return cuda.is_available(), cuda.device_count(), cuda.is_initialized(), (lt.ones(2) + 1).tolist()

    assert in_child(work) == "(False, 0, False, [2.0, 2.0])"
    assert cuda.is_available() and cuda.is_initialized()


def test_a_child_may_use_a_device_that_its_parent_did_not() -> None:
    assert in_child(lambda: lt.ones(2, device="cuda").tolist()) == "[1.0, 1.0]"


def test_a_driver_that_the_parent_started() -> None:
    """``is_available`` asks the driver, which then does not start again in a child: that is said, not "check it"."""
    from lamina_tensor.cuda import availability

    class Driver:
        cuDriverGetVersion = cuDeviceGetCount = staticmethod(lambda given: 0)

        def __init__(self, path: str) -> None:
            parent = os.getpid()
            self.cuInit = lambda flags: 0 if os.getpid() == parent else 3

    with pytest.MonkeyPatch.context() as patch:
        library = Driver("")
        patch.setattr(availability.ctypes, "CDLL", lambda path: library)
        assert "CUDA" in str(availability.missing())
        assert in_child(availability.missing)[1:].startswith("Cannot re-initialize CUDA in forked subprocess")
