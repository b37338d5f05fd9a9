"""What needs two GPUs: ``python tools/gpu/two_devices.py``, a line for each check, less than a minute.

Tensors and compiled programs on ``cuda:1``, copies between devices that are ordered with the work on both, streams,
events and memory of each, errors for mixed devices. The exit status is 1 when something is wrong.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent)]

import features  # noqa: E402

import lamina  # noqa: E402
from lamina import cuda, nn  # noqa: E402
from lamina.nn import functional as F  # noqa: E402

FIRST, SECOND = "cuda:0", "cuda:1"
CHECKS: list[Callable[[], str | None]] = [features.FEATURES["several_devices"]]


def check(function: Callable[[], str | None]) -> Callable[[], str | None]:
    """Register it."""
    CHECKS.append(function)
    return function


def close(got: Any, want: Any, device: str, tolerance: float = 1e-4) -> None:
    """A tensor is on a device and near another one."""
    assert str(got.device) == device, (got.device, device)
    lamina.testing.assert_close(got.cpu(), want.cpu(), rtol=tolerance, atol=tolerance)


def network() -> Any:
    """The same numbers wherever it is called."""
    lamina.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))


@check
def compiled_function_on_each() -> str:
    """One function, called with tensors of either device in turn: a program and kernels for each."""
    run = lamina.compile(lambda x, y: ((x @ y).softmax(-1) * 2 + x.sum()).sin())
    x, y = lamina.rand(128, 128), lamina.rand(128, 128)
    want = ((x @ y).softmax(-1) * 2 + x.sum()).sin()
    for device in (SECOND, FIRST, SECOND, FIRST):
        close(run(x.to(device), y.to(device)), want, device, 1e-3)
        assert cuda.current_device() == 0
    with cuda.device(1):
        close(run(x.to(FIRST), y.to(FIRST)), want, FIRST, 1e-3)
        assert cuda.current_device() == 1
    return f"{lamina.compiler.summary().graphs} graphs"


@check
def compiled_templates_on_the_second() -> None:
    """Products, attention and convolutions of bfloat16, whose descriptors and libraries belong to a device."""
    lamina.manual_seed(0)
    a, b = lamina.randn(512, 256).bfloat16(), lamina.randn(256, 512).bfloat16()
    q = lamina.randn(2, 4, 128, 64).bfloat16()
    x, k = lamina.randn(2, 16, 14, 14).bfloat16(), lamina.randn(16, 16, 3, 3).bfloat16()

    def work(a: Any, b: Any, q: Any, x: Any, k: Any) -> Any:
        attended = F.scaled_dot_product_attention(q, q, q, is_causal=True)
        return F.gelu(a @ b), attended, F.conv2d(x, k, padding=1).relu()

    run = lamina.compile(work)
    for got, want in zip(run(*[t.to(SECOND) for t in (a, b, q, x, k)]), work(a, b, q, x, k), strict=True):
        error = (got.cpu().float() - want.float()).abs().max() / want.float().abs().max()
        assert str(got.device) == SECOND and error.item() < 2e-2, (got.device, error)


def _losses(device: str, wrap: Callable[..., Any]) -> list[float]:
    model = network().to(device)
    adam = lamina.optim.AdamW(model.parameters(), lr=1e-2)
    x, target = lamina.arange(32 * 64).reshape(32, 64).float().sin().to(device), (lamina.arange(32) % 10).to(device)

    def step() -> Any:
        adam.zero_grad()
        loss = F.cross_entropy(F.dropout(model(x), 0.1), target)
        loss.backward()
        adam.step()
        return loss.detach()

    run = wrap(step)
    lamina.manual_seed(7)
    return [run().item() for _ in range(5)]


@check
def compiled_training_on_the_second() -> str:
    """A whole step with its optimizer and dropout: the CPU's losses, also replayed as a CUDA graph."""
    want = _losses("cpu", lambda f: f)
    for wrap in (lamina.compile, lambda f: lamina.compile(f, mode="reduce-overhead")):
        got = _losses(SECOND, wrap)
        assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-3, (got, want)
    return f"last loss {want[-1]:.4f}"


class Stages(nn.Module):
    """The first half on one GPU, the second on another; how large a batch was stays on the first."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        lamina.manual_seed(0)
        self.first = nn.Sequential(nn.Linear(64, 128), nn.GELU()).to(first)
        self.second = nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 10)).to(second)
        self.register_buffer("seen", lamina.zeros((), device=first))

    def forward(self, x: Any) -> Any:
        """From the first to the second."""
        self.seen += x.shape[0]
        return self.second(self.first(x).to(self.second[1].weight.device)).softmax(-1)


def _staged(first: str, second: str, wrap: Callable[..., Any]) -> list[float]:
    model = Stages(first, second)
    adam = lamina.optim.AdamW(model.parameters(), lr=1e-2)
    x, target = lamina.arange(32 * 64).reshape(32, 64).float().sin().to(first), (lamina.arange(32) % 10).to(second)

    def step(x: Any, target: Any) -> Any:
        adam.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        adam.step()
        return loss.detach()

    run = wrap(step)
    return [run(x[: 32 - k], target[: 32 - k]).item() for k in (0, 0, 0, 5, 7, 9)] + [model.seen.item()]


@check
def compiled_across_devices() -> str:
    """Copies between GPUs inside compiled code, there and back, with writes, views and sizes that vary."""
    run = lamina.compile(lambda x, y: ((x * 2).t().to(SECOND) + y).sum(0).to(FIRST) * x[0, 0], fullgraph=True)
    for rows in (3, 5, 7):
        x, y = lamina.rand(rows, 4), lamina.rand(4, rows)
        want = ((x * 2).t() + y).sum(0) * x[0, 0]
        close(run(x.to(FIRST), y.to(SECOND)), want, FIRST)

    def apart(x: Any, y: Any) -> Any:
        z = x.to(SECOND)
        x.mul_(2)
        y.copy_(x * 3)
        return z + y, x + 1

    x, y = lamina.rand(5), lamina.rand(5)
    xs, ys = x.to(FIRST), y.to(SECOND)
    got, want = lamina.compile(apart, fullgraph=True)(xs, ys), (7 * x, 2 * x + 1)
    for a, b, device in zip((*got, xs, ys), (*want, 2 * x, 6 * x), (SECOND, FIRST, FIRST, SECOND), strict=True):
        close(a, b, device)
    noisy = lamina.compile(lambda x: F.dropout(x, 0.5).to(SECOND) + lamina.rand(8, device=SECOND), fullgraph=True)
    lamina.manual_seed(11)
    got = [noisy(lamina.ones(8, device=FIRST)) for _ in range(3)]
    lamina.manual_seed(11)
    for a in got:
        close(a, F.dropout(lamina.ones(8, device=FIRST), 0.5).to(SECOND) + lamina.rand(8, device=SECOND), SECOND)
    want = _staged("cpu", "cpu", lambda f: f)
    for wrap in (lamina.compile, lambda f: lamina.compile(f, mode="reduce-overhead")):
        got = _staged(FIRST, SECOND, wrap)
        assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-3, (got, want)
    return f"{lamina.compiler.summary().graphs} graphs"


@check
def copies_wait_for_the_work_before_them() -> str:
    """A copy to the other device comes after what the first one has still to do, and before what it does next."""
    x = lamina.ones(1 << 24, device=FIRST)
    for number in range(20):
        for _ in range(5):
            x = x * 1.0001 + 1
        y = x.to(SECOND)
        x.mul_(0).add_(number)  # the source is overwritten at once
        z = (y + 1).to(FIRST)
        assert z[0].item() == z[-1].item() > number + 1 and abs(z[0].item() - y[0].item() - 1) < 1e-3
    held = lamina.rand(1 << 24, device=FIRST)
    sums = []
    for _ in range(5):
        sums.append((held * 1.5).to(SECOND).sum())  # the source is freed at once, and its memory taken again
        lamina.zeros(1 << 24, device=FIRST)
    assert len({s.item() for s in sums}) == 1
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with cuda.device(1):
        start.record()
        for _ in range(5):
            held.to(SECOND)
        end.record()
        end.synchronize()
        rate = 5 * held.nbytes / start.elapsed_time(end) / 1e6
    return f"{rate:.0f} GB/s from one to the other"


@check
def copies_on_streams() -> None:
    """The same on side streams of both devices."""
    here, there = cuda.Stream(device=0), cuda.Stream(device=1)
    with cuda.stream(here):
        x = lamina.ones(1 << 22, device=FIRST)
        for _ in range(20):
            x = x + 1
        with cuda.stream(there):
            y = x.to(SECOND) * 2
            done = there.record_event()
    done.synchronize()
    assert y[0].item() == y[-1].item() == 42 and cuda.current_device() == 0
    assert cuda.current_stream(1).cuda_stream == 0


@check
def compiled_on_a_stream_of_the_second() -> None:
    """A program goes to the current stream of its tensors' device."""
    run = lamina.compile(lambda x: (x * 3).cumsum(0))
    x = lamina.ones(1000, device=SECOND)
    run(x)
    side = cuda.Stream(device=1)
    side.wait_stream(cuda.current_stream(1))
    with cuda.stream(side):
        y = run(x)
    side.synchronize()
    assert y[-1].item() == 3000 and str(y.device) == SECOND


@check
def errors_of_the_second() -> None:
    """Mixed devices, several devices in one compiled function, an index out of range found on the device."""
    x, y = lamina.ones(4, device=FIRST), lamina.ones(4, device=SECOND)
    words = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
    features.raises(RuntimeError, words, lambda: x + y)
    features.raises(RuntimeError, "cuda:0 and cuda:1", lambda: lamina.compile(lambda a, b: a * 2 + b)(x, y))
    features.raises(RuntimeError, "there is no device cuda:9", lambda: x.to("cuda:9"))
    run = lamina.compile(lambda t, i: t[i] * 2)
    index = lamina.tensor([1, 7], device=SECOND)

    def wait() -> None:
        run(y, index)
        cuda.synchronize(1)

    features.raises(IndexError, "", wait)
    close(run(y, index % 4), lamina.full((2,), 2.0), SECOND)


@check
def memory_of_each() -> None:
    """Each device has an account, peaks and a summary of its own; both give back what nobody uses."""
    before = [cuda.memory_allocated(i) for i in (0, 1)]
    x = lamina.zeros(1 << 20, device=SECOND)
    assert [cuda.memory_allocated(i) for i in (0, 1)] == [before[0], before[1] + x.nbytes]
    del x
    kept = cuda.memory_reserved(1)
    cuda.empty_cache()
    assert cuda.memory_reserved(1) <= kept and "cuda:1" in cuda.memory_summary(1)
    features.raises(cuda.OutOfMemoryError, "cuda:1 has", lambda: lamina.empty(1 << 50, device=SECOND))


@check
def random_numbers_of_each() -> None:
    """A generator each, seeded together; the CPU's numbers."""
    lamina.manual_seed(5)
    want = lamina.rand(100)
    lamina.manual_seed(5)
    close(lamina.rand(100, device=FIRST), want, FIRST)
    close(lamina.rand(100, device=SECOND), want, SECOND)
    run = lamina.compile(lambda x: F.dropout(x, 0.5))
    x = lamina.ones(1000, device=SECOND)
    lamina.manual_seed(6)
    first = run(x)
    lamina.manual_seed(6)
    assert run(x).tolist() == first.tolist() and run(x).tolist() != first.tolist()


@check
def threads() -> None:
    """A thread for each device, at once."""
    run = lamina.compile(lambda x: (x.sin() @ x.cos()).tanh())
    x = lamina.rand(200, 200)
    want, wrong = (x.sin() @ x.cos()).tanh(), []

    def work(device: str) -> None:
        try:
            cuda.set_device(device)
            mine = x.to(device)
            for _ in range(20):
                close(run(mine), want, device, 1e-3)
            assert str(lamina.ones(2, device="cuda").device) == device
        except Exception as error:  # noqa: BLE001 - raised below
            wrong.append(error)

    both = [threading.Thread(target=work, args=(device,)) for device in (FIRST, SECOND)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    if wrong:
        raise wrong[0]
    assert cuda.current_device() == 0


def main() -> int:
    """Run them."""
    warnings.simplefilter("ignore")
    failed, begin = 0, time.perf_counter()
    for function in CHECKS:
        start = time.perf_counter()
        try:
            text = "right" + (f": {said}" if (said := function()) else "")
        except features.LeftOut as error:
            failed, text = failed + 1, f"needs {error}"
        except Exception as error:  # noqa: BLE001  (whatever goes wrong on the device is a finding)
            at = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
            failed, text = (
                failed + 1,
                f"FAILED {' '.join(at[1:2] + at[-1:])} {type(error).__name__}: {str(error)[:300]}",
            )
        print(f"{function.__name__:<40} {time.perf_counter() - start:6.2f} s  {text}", flush=True)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} right, {time.perf_counter() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
