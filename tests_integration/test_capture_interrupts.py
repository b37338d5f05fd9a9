"""An interrupt while a function is captured or compiled, and threads that compile one function at once."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from captures import outside

import lamina
from lamina.backends import ReferenceBackend
from lamina.frontend import LaminaFrontend
from lamina_dynamo import recording
from lamina_dynamo.capture import CaptureWarning
from lamina_fx import Graph


@pytest.fixture(autouse=True)
def interrupts_raise() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt whatever this process inherited: a shell's background jobs ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupted:
    """A backend that is interrupted in its first ``times`` compilations."""

    name = "interrupted"
    keep: frozenset[str] = frozenset()

    def __init__(self, times: int) -> None:
        self.times = times
        self.compiled = 0

    def compile(self, graph: Graph, *, name: str, options: dict[str, Any]) -> Any:
        if self.times > 0:
            self.times -= 1
            signal.raise_signal(signal.SIGINT)
        self.compiled += 1
        return ReferenceBackend().compile(graph, name=name, options=options)


def program(x: Any) -> Any:
    with lamina.no_grad():
        y = x * 2
    outside()
    return (x * y).sin().sum()


def values(function: Callable[..., Any]) -> tuple[Any, ...]:
    x = lamina.arange(4).float().requires_grad_()
    result = function(x)
    result.backward()
    return result.detach().numpy(), x.grad.numpy()


def assert_undisturbed() -> None:
    """Modes, limits and the hook are as if nothing had been compiled."""
    assert lamina.is_grad_enabled()
    assert sys.getrecursionlimit() == LIMIT
    with recording() as events:
        program(lamina.ones(3))
    assert not events, "frames are captured outside of compiled functions"


LIMIT = sys.getrecursionlimit()


@pytest.mark.parametrize("times", [1, 2, 3])
def test_interrupt_in_the_backend(times: int) -> None:
    """It reaches the caller; later calls compile."""
    backend = Interrupted(times)
    compiled = lamina.compile(program, backend=backend)
    for _ in range(times):
        with pytest.raises(KeyboardInterrupt):
            values(compiled)
        assert_undisturbed()
    for want, have in zip(values(program), values(compiled), strict=True):
        np.testing.assert_allclose(want, have, rtol=1e-6)
    assert backend.compiled == 3  # two forward halves, one of them with a backward
    values(compiled)
    assert backend.compiled == 3


def test_interrupt_while_the_frame_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes that the traced program had switched are switched back."""
    met = []

    def interrupting(self: Any, tensor: Any) -> Any:
        if not met:
            met.append(True)
            assert not lamina.is_grad_enabled()
            signal.raise_signal(signal.SIGINT)
        return original(self, tensor)

    original = LaminaFrontend.spec
    compiled = lamina.compile(program, backend="reference")
    values(compiled)
    lamina.compiler.reset()
    calls = iter(range(3))
    monkeypatch.setattr(
        LaminaFrontend, "spec", lambda self, t: original(self, t) if next(calls, 9) < 1 else interrupting(self, t)
    )
    with pytest.raises(KeyboardInterrupt):
        values(compiled)
    monkeypatch.undo()
    assert_undisturbed()
    for want, have in zip(values(program), values(compiled), strict=True):
        np.testing.assert_allclose(want, have, rtol=1e-6)
    assert lamina.compiler.summary().graphs == 2


def test_interrupt_in_the_function_itself() -> None:
    stopped = []

    @lamina.compiler.disable
    def stop() -> None:
        if not stopped:
            stopped.append(True)
            signal.raise_signal(signal.SIGINT)

    log = []

    def f(x: Any) -> Any:
        y = x * 2
        try:
            stop()
        finally:
            log.append("left")
        return y + 1

    compiled = lamina.compile(f, backend="reference")
    with pytest.raises(KeyboardInterrupt):
        compiled(lamina.ones(2))
    assert log == ["left"]
    assert_undisturbed()
    assert compiled(lamina.ones(2)).tolist() == [3.0, 3.0]
    assert lamina.compiler.summary().graphs == 2


# -- threads ------------------------------------------------------------------------------------------------------


def together(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(i)`` on ``count`` threads that start at once; the first error is raised here."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            barrier.wait()
            work(i)
        except BaseException as error:  # noqa: BLE001  (raised again by who started the threads)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def slow(x: Any, n: int) -> Any:
    y = x
    for i in range(n):
        y = (y * (i + 1) + 1).sin()
    outside(time.sleep(0.001))
    with lamina.no_grad():
        w = y.sum(dim=-1)
    return (y * 2).sum() + w.mean()


@pytest.mark.parametrize("calls", [[(4, 2)], [(3, 1), (4, 2), (5, 3), (6, 1)]])
def test_threads_compile_one_function_at_once(calls: Sequence[tuple[int, int]]) -> None:
    """While one compiles, the others run in Python; everyone gets eager's results and gradients."""
    compiled = lamina.compile(slow, backend="reference")

    def work(i: int) -> None:
        rng = random.Random(i)
        for _ in range(6):
            size, n = rng.choice(calls)
            ours, theirs = (lamina.arange(2 * size).float().reshape(2, size).requires_grad_() for _ in range(2))
            want, have = slow(ours, n), compiled(theirs, n)
            want.backward()
            have.backward()
            np.testing.assert_allclose(want.detach().numpy(), have.detach().numpy(), rtol=1e-5)
            np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-5)

    with warnings.catch_warnings():
        warnings.simplefilter("error", category=CaptureWarning)
        together(6, work)
    assert_undisturbed()
    assert lamina.compiler.summary().graphs >= 2
    with recording() as events:
        compiled(lamina.ones(2, calls[0][0]), calls[0][1])
    assert not [event for event in events if event.skipped]


def test_reset_while_threads_run_compiled_code() -> None:
    compiled = lamina.compile(slow, backend="reference")
    want = slow(lamina.ones(2, 3), 2).item()

    def work(i: int) -> None:
        for _ in range(8):
            if i == 0:
                lamina.compiler.reset()
            assert compiled(lamina.ones(2, 3), 2).item() == pytest.approx(want, rel=1e-5)

    together(4, work)
    assert_undisturbed()
