"""What operators' samples do not show of a GPU: training, half-precision products, streams, graphs, memory, exchange.

Each program raises when something is wrong, and returns what is worth printing.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROGRAMS: list[Callable[[], str]] = []


@dataclass
class Outcome:
    """What became of a program."""

    name: str
    good: bool
    outcome: str


def program(function: Callable[[], str]) -> Callable[[], str]:
    """Register it."""
    PROGRAMS.append(function)
    return function


def run() -> list[Outcome]:
    """All programs."""
    found = []
    for function in PROGRAMS:
        start = time.perf_counter()
        try:
            text, good = function(), True
        except Exception as error:  # noqa: BLE001  (whatever goes wrong on the device is a finding)
            where = traceback.extract_tb(error.__traceback__)[-1]
            said = " ".join(str(error).split())[:300]
            text = f"FAILED {type(error).__name__} {Path(where.filename).name}:{where.lineno}: {said}"
            good = False
        found.append(Outcome(function.__name__, good, f"{text} ({time.perf_counter() - start:.1f} s)"))
    return found


def _losses(device: str) -> list[float]:
    import lamina_tensor as lt
    from lamina_tensor import nn, optim

    lt.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).to(device)
    adam = optim.AdamW(model.parameters(), lr=0.01)
    x = lt.rand(8, 1, 8, 8).to(device)
    target = lt.arange(8).to(device) % 5
    losses = []
    for _ in range(5):
        adam.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


@program
def training() -> str:
    """A small network with AdamW: the CPU's losses."""
    here, there = _losses("cpu"), _losses("cuda")
    worst = max(abs(a - b) for a, b in zip(here, there, strict=True))
    assert worst < 1e-4, (here, there)
    return f"losses within {worst:.1e}"


SHAPES = (
    ((64, 96), (96, 32)), ((3, 40, 72), (3, 72, 24)), ((2, 3, 16, 8), (8, 24)), ((2, 3, 8, 16), (3, 16, 8)),
    ((5,), (5, 7)), ((4, 7, 5), (5,)), ((1, 9, 5), (6, 5, 9)), ((3, 1, 8), (3, 8, 1)),
)  # fmt: skip


@program
def half_products() -> str:
    """bfloat16 and float16 products, also batched, broadcast and transposed, against float64."""
    import lamina_tensor as lt

    worst = 0.0
    for dtype in (lt.bfloat16, lt.float16):
        for a, b in SHAPES:
            x, y = lt.randn(*a).to(dtype), lt.randn(*b).to(dtype)
            pairs = [(x, y)]
            if x.ndim > 1 and y.ndim > 1:
                pairs.append((x.mT.contiguous().mT, y.mT.contiguous().mT))
            for left, right in pairs:
                got = (left.cuda() @ right.cuda()).cpu().double()
                want = left.double() @ right.double()
                error = float((got - want).abs().max() / want.abs().max())
                assert error < 1e-2 and got.shape == want.shape, (dtype, a, b, error)
                worst = max(worst, error)
    return f"relative error {worst:.1e}"


@program
def sums_of_half() -> str:
    """Sums of many bfloat16 numbers are accumulated in float32."""
    import lamina_tensor as lt

    ones = lt.ones(1 << 16, dtype=lt.bfloat16, device="cuda")
    assert ones.sum().item() == 1 << 16 and ones.mean().item() == 1.0 and ones.cumsum(0)[-1].item() == 1 << 16
    return "65536 ones"


@program
def random_numbers() -> str:
    """The CPU's numbers for the same seed."""
    import lamina_tensor as lt

    for draw in (lt.rand, lt.randn):
        lt.manual_seed(3)
        here, there = draw(1000), draw(1000, device="cuda").cpu()
        assert float((here - there).abs().max()) < 1e-5, draw.__name__
    lt.manual_seed(3)
    assert lt.randint(0, 1000, (50,)).tolist() == lt.randint(0, 1000, (50,), device="cuda").tolist()
    return "rand, randn, randint"


@program
def streams_and_events() -> str:
    """Work on a side stream, ordered by events; pinned copies that do not wait."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    side, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    host = lt.rand(1 << 20).pin_memory()
    with cuda.stream(side):
        start.record()
        x = host.to("cuda", non_blocking=True)
        for _ in range(10):
            x = x * 1.5 - 0.5
        end.record()
    cuda.current_stream().wait_stream(side)
    back = lt.empty(1 << 20).pin_memory()
    back.copy_(x, non_blocking=True)
    cuda.synchronize()
    want = host
    for _ in range(10):
        want = want * 1.5 - 0.5
    assert float((back - want).abs().max()) < 1e-3 and host.is_pinned()
    return f"{start.elapsed_time(end):.3f} ms on the side stream"


@program
def graphs() -> str:
    """A captured graph, replayed on new values."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    x = lt.rand(256, 256, device="cuda")
    y = (x @ x).relu() + 1  # kernels are compiled before the capture
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = (x @ x).relu() + 1
    for seed in (1, 2):
        lt.manual_seed(seed)
        fresh = lt.randn(256, 256)
        x.copy_(fresh)
        graph.replay()
        cuda.synchronize()
        assert float((y.cpu() - ((fresh @ fresh).relu() + 1)).abs().max()) < 1e-2
    return "replayed twice"


@program
def graphs_of_random_numbers() -> str:
    """What looks at no values is captured: embedding, dropout; each replay draws anew."""
    import lamina_tensor as lt
    from lamina_tensor import cuda, nn

    table, index = lt.ones(50, 64, device="cuda"), lt.arange(40, device="cuda")
    _ = nn.functional.dropout(table[index], 0.5) @ table.mT
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        rows = nn.functional.dropout(table[index], 0.5)
        products = rows @ table.mT
    seen = []
    for _ in range(2):
        graph.replay()
        assert set(rows.flatten().tolist()) == {0.0, 2.0} and products[:, 0].tolist() == rows.sum(1).tolist()
        seen.append(rows.tolist())
    assert seen[0] != seen[1]
    return "two draws"


@program
def bad_index() -> str:
    """An index out of range is an IndexError, and the device can be used afterwards."""
    import lamina_tensor as lt

    x = lt.ones(4, device="cuda")
    try:
        x[lt.tensor([1, 9], device="cuda")]
    except IndexError as error:
        text = str(error)
    assert x.sum().item() == 4.0
    return text


@program
def memory() -> str:
    """The account, and what is said when there is not enough."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    before = cuda.memory_allocated()
    x = lt.empty(1 << 20, device="cuda")
    assert cuda.memory_allocated() == before + (4 << 20) and cuda.max_memory_allocated() >= before + (4 << 20)
    try:
        lt.empty(1 << 50, device="cuda")
    except cuda.OutOfMemoryError as error:
        text = str(error)
    assert "Tried to allocate 4096.00 TiB" in text and "float32[1048576]" in text, text
    del x
    cuda.empty_cache()
    lt.ones(4, device="cuda").sum().item()
    return text[:110]


@program
def exchange() -> str:
    """DLPack and the array interface with CuPy, both ways."""
    import lamina_tensor as lt
    from lamina_tensor.cuda.activation import active_provider

    if active_provider().name != "cupy":
        return "needs CuPy"
    import cupy

    x = lt.arange(6.0, device="cuda").reshape(2, 3)
    theirs = cupy.from_dlpack(x)
    theirs[0, 0] = 9
    also = cupy.asarray(x.t())
    assert x[0, 0].item() == 9 and also.shape == (3, 2) and also.data.ptr == x.data_ptr()
    mine, second = lt.from_dlpack(theirs), lt.as_tensor(theirs)
    mine[1, 1] = 7
    assert second[1, 1].item() == 7 and second.data_ptr() == x.data_ptr()
    half = lt.from_dlpack(lt.ones(3, dtype=lt.bfloat16, device="cuda"))
    assert half.dtype is lt.bfloat16 and half.tolist() == [1, 1, 1]
    return "shared"


@program
def dtypes() -> str:
    """Every dtype goes there and back, and is converted there."""
    import lamina_tensor as lt
    from lamina_fx import DTYPES

    for dtype in DTYPES:
        x = lt.tensor([0, 1, 2, 3]).to(dtype)
        y = x.cuda()
        assert y.cpu().tolist() == x.tolist() and y[1:].clone().tolist() == x[1:].tolist(), dtype
        assert y.float().tolist() == x.float().tolist() and y.double().to(dtype).tolist() == x.tolist(), dtype
    return f"{len(DTYPES)} dtypes"


@program
def speed() -> str:
    """Microseconds of small calls on the host's side, and the rate of a large product."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    x = lt.rand(16, device="cuda")
    for _ in range(20):
        x + x
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(500):
        x + x
    add = (time.perf_counter() - start) / 500 * 1e6
    cuda.synchronize()
    if cuda.get_device_name() == "stub device":
        return f"add {add:.1f} us a call"
    a = lt.rand(4096, 4096, device="cuda").bfloat16()
    _ = a @ a
    first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    first.record()
    for _ in range(20):
        _ = a @ a
    last.record()
    last.synchronize()
    rate = 20 * 2 * 4096**3 / first.elapsed_time(last) / 1e9
    return f"add {add:.1f} us a call; bf16 4096^3 {rate:.0f} TFLOP/s"
