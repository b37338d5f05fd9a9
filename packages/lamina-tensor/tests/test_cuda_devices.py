"""The stub device itself: memory and its end, streams, events, graphs, checks, other libraries."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import lamina_tensor as lt
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider


@pytest.fixture(autouse=True)
def stub() -> Iterator[StubProvider]:
    provider = StubProvider(devices=2, memory=1 << 20)
    before = cuda.use_provider(provider)
    yield provider
    cuda.use_provider(before)


def gpu(*data: Any, **options: Any) -> lt.Tensor:
    return lt.tensor(data, device="cuda", **options)


# -- memory -----------------------------------------------------------------------------------------------------


def test_memory_is_counted() -> None:
    cuda.init()  # until then the account says 0, whatever tests before this one left on the device
    cuda.reset_peak_memory_stats()
    start = cuda.memory_allocated()
    x = lt.zeros(1000, device="cuda")
    assert cuda.memory_allocated() == start + 4000 and cuda.memory_reserved() >= 4000
    view = x[10:]
    del x
    assert cuda.memory_allocated() == start + 4000  # the view keeps the memory
    del view
    assert cuda.memory_allocated() == start and cuda.max_memory_allocated() >= start + 4000
    assert cuda.memory_stats()["allocated_bytes.all.current"] == start
    free, total = cuda.mem_get_info()
    assert total == 1 << 20 and free <= total
    assert "held by tensors" in cuda.memory_summary()
    cuda.empty_cache()


def test_the_most_that_was_reserved_outlives_the_memory() -> None:
    cuda.init()
    cuda.reset_peak_memory_stats()
    before = cuda.memory_reserved()
    x = lt.zeros(1000, device="cuda")
    assert cuda.max_memory_reserved() == before + 4000
    cuda.empty_cache()
    del x
    assert cuda.memory_reserved() == before and cuda.max_memory_reserved() == before + 4000
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_reserved() == before


def test_only_devices_in_use_give_memory_back(stub: StubProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(stub, "empty_cache", asked.append)
    cuda.init()
    used = lt.ones(1, device="cuda:1")
    cuda.empty_cache()
    assert (
        1 in asked
        and used.get_device() == 1
        and all(cuda.memory_stats(i)["allocated_bytes.all.allocated"] for i in asked)
    )


def test_out_of_memory_says_who_holds_it() -> None:
    keep = lt.zeros(100, 1000, device="cuda")
    for ask in (
        lambda: lt.empty(300_000, device="cuda"),
        lambda: lt.ones(300_000).cuda(),
        lambda: keep.repeat(3, 1),
        lambda: lt.zeros(300_000, device="cuda"),
    ):
        with pytest.raises(cuda.OutOfMemoryError) as caught:
            ask()
        text = str(caught.value)
        assert "CUDA out of memory. Tried to allocate 1.14 MiB. cuda:0 has" in text and "of 1.00 MiB" in text
        assert "The largest: 390.62 KiB Tensor float32[100, 1000]" in text
    assert lt.OutOfMemoryError is cuda.OutOfMemoryError and issubclass(cuda.OutOfMemoryError, RuntimeError)
    lt.ones(1000, device="cuda").sum().item()  # goes on


# -- streams, events, graphs, checks ------------------------------------------------------------------------------


def test_streams_and_events() -> None:
    default = cuda.current_stream()
    assert default == cuda.default_stream() and default.cuda_stream == 0
    side = cuda.Stream()
    with cuda.stream(side):
        assert cuda.current_stream() == side != default
        (lt.ones(2, device="cuda") + 1).sum()
        with cuda.stream(cuda.Stream()):
            assert cuda.current_stream() != side
        assert cuda.current_stream() == side
    assert cuda.current_stream() == default and side.query()
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record(), end.record(side)
    side.wait_event(start), side.wait_stream(default), end.wait(), end.synchronize(), side.synchronize()
    assert start.elapsed_time(end) >= 0 and end.query()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        cuda.Event().elapsed_time(end)
    with cuda.stream(None):
        assert cuda.current_stream() == default


def test_checks_run_at_every_synchronisation() -> None:
    seen: list[int] = []
    remove = cuda.at_synchronize(lambda: seen.append(1))
    x = gpu(1.0)
    for wait in (
        cuda.synchronize,
        cuda.current_stream().synchronize,
        cuda.Event().synchronize,
        x.item,
        x.cpu,
        x.tolist,
    ):
        count = len(seen)
        wait()
        assert len(seen) == count + 1

    def fail() -> None:
        raise IndexError("index 9 is out of bounds")

    remove_failing = cuda.at_synchronize(fail)
    with pytest.raises(IndexError, match="index 9"):
        cuda.synchronize()
    remove_failing()
    remove()
    cuda.synchronize()


def test_graphs_are_replayed_over_the_same_memory() -> None:
    x = gpu(1.0, 2.0)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        assert cuda.is_current_stream_capturing()
        y = (x * 2).cumsum(0)
        x += 1
    kept = y.data_ptr()
    x.copy_(gpu(10.0, 20.0))
    graph.replay()
    assert y.tolist() == [20, 60] and x.tolist() == [11, 21] and y.data_ptr() == kept
    graph.replay()
    assert y.tolist() == [22, 64]
    with pytest.raises(RuntimeError, match="capture into the graph first"):
        cuda.CUDAGraph().replay()
    with pytest.raises(RuntimeError, match="non-default stream"):
        cuda.CUDAGraph().capture_begin()
    step = cuda.make_graphed_callables(lambda a, b: a @ b, (lt.ones(2, 2, device="cuda"), lt.ones(2, 2, device="cuda")))
    assert step(lt.eye(2, device="cuda") * 3, lt.ones(2, 2, device="cuda")).tolist() == [[3, 3], [3, 3]]


# -- other libraries ----------------------------------------------------------------------------------------------


def test_dlpack_and_the_array_interface() -> None:
    x = lt.arange(6.0, device="cuda").reshape(2, 3)
    assert x.__dlpack_device__() == (2, 0)
    y = lt.from_dlpack(x)
    y[0, 0] = 9
    assert y.is_cuda and x[0, 0].item() == 9
    face = x.t().__cuda_array_interface__
    assert face["shape"] == (3, 2) and face["typestr"] == "<f4" and face["strides"] == (4, 12) and face["stream"] == 1
    assert face["data"] == (x.data_ptr(), False) and x.__cuda_array_interface__["strides"] is None

    class Other:
        __cuda_array_interface__ = face

    z = lt.as_tensor(Other())
    assert z.is_cuda and z.data_ptr() == x.data_ptr() and z.tolist() == x.t().tolist()
    assert lt.tensor(Other()).data_ptr() != x.data_ptr()
    assert not hasattr(lt.ones(2), "__cuda_array_interface__")
    with pytest.raises(TypeError, match="use DLPack"):
        _ = x.bfloat16().__cuda_array_interface__
    with pytest.raises(BufferError, match="require gradient"):
        lt.ones(2, device="cuda", requires_grad=True).__dlpack__()


def test_devices_and_their_properties() -> None:
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.is_initialized()
    assert cuda.get_device_capability() == (9, 0) and cuda.get_device_name(1) == "stub device"
    assert cuda.get_device_properties().total_memory == 1 << 20 and cuda.get_arch_list() == ["sm_90"]
    cuda.set_device(1)
    assert lt.ones(1, device="cuda").get_device() == 1
    cuda.set_device("cuda:0")
    with cuda.device_of(lt.ones(1, device="cuda:1")):
        assert cuda.current_device() == 1
    assert cuda.is_bf16_supported()


def test_what_a_graph_captures_does_not_wait(stub: StubProvider) -> None:
    table, index = lt.ones(5, 8, device="cuda"), gpu(1, 4)
    lt.rand(1, device="cuda")
    waits = stub.statistics().copies_to_host
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        rows = lt.nn.functional.dropout(table[index], 0.5)
    assert stub.statistics().copies_to_host == waits
    first = rows.tolist()
    graph.replay()
    assert rows.tolist() != first and set(rows.flatten().tolist()) == {0.0, 2.0}  # the state on the device goes on


@pytest.mark.parametrize("dtype", [lt.float8_e4m3fn, lt.float8_e5m2], ids=str)
def test_float8_is_rounded_as_on_the_cpu(dtype: lt.dtype, stub: StubProvider) -> None:
    codes = lt.arange(256, dtype=lt.uint8).view(dtype)
    lt.testing.assert_close(codes.cuda().float().cpu(), codes.float(), equal_nan=True)
    exact = codes.float()[:128][lt.isfinite(codes.float()[:128])].double()
    between = (exact[1:] + exact[:-1]) / 2
    top = lt.tensor([447.0, 464.0, 465.0, 57344.0, 61439.0, 61440.0, 1e9, float("inf"), float("nan"), 1e-9, 0.0])
    numbers = lt.cat([exact, between, between * 1.001, between * 0.999, top.double(), lt.randn(500).double() * 20])
    for sign in (1, -1):
        for source in (lt.float64, lt.float32, lt.bfloat16):
            x = (numbers * sign).to(source)
            before = stub.statistics().copies_to_host
            there = x.cuda().to(dtype)
            assert stub.statistics().copies_to_host == before
            got, want = there.cpu().float(), x.to(dtype).float()
            assert lt.isnan(got).tolist() == lt.isnan(want).tolist()
            lt.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
            assert lt.signbit(got).tolist() == lt.signbit(want).tolist() or lt.isnan(want).any()


def test_bytes_seen_as_float8() -> None:
    x = lt.arange(8, dtype=lt.uint8, device="cuda")
    y = x.view(lt.float8_e4m3fn)
    assert y.storage is x.storage and y.tolist() == lt.arange(8, dtype=lt.uint8).view(lt.float8_e4m3fn).tolist()
    y[0] = 2.0
    assert y.view(lt.uint8)[0].item() == x[0].item() == 0x40


def test_one_device_takes_the_short_way_with_the_same_results(stub: StubProvider) -> None:
    cuda.use_provider(StubProvider(devices=1))
    x = lt.arange(4.0, device="cuda", requires_grad=True)
    ((x + 1) * x - 0.5 / (x + 1)).exp().sum().backward()
    y = lt.arange(4.0, requires_grad=True)
    ((y + 1) * y - 0.5 / (y + 1)).exp().sum().backward()
    lt.testing.assert_close(x.grad.cpu(), y.grad)
    z = lt.arange(4, device="cuda")
    z += 2
    z.mul_(z)[1:].sub_(lt.ones(3, dtype=lt.int64, device="cuda"))
    assert z.tolist() == [4, 8, 15, 24] and z._version == 3 and (z > 8).tolist() == [False, False, True, True]
    assert (z / 2).dtype is lt.float32 and (z + 0.5).dtype is lt.float32 and (z * lt.tensor(2)).is_cuda
    with pytest.raises(RuntimeError, match=r"add: .*\[4\].*\[3\]|The size of tensor"):
        z + lt.ones(3, device="cuda")
    with pytest.raises(RuntimeError):
        z.add_(lt.ones(2, 4, dtype=lt.int64, device="cuda"))


def test_memory_that_another_stream_uses_is_held() -> None:
    x = lt.ones(8, device="cuda")
    side = cuda.Stream()
    x.record_stream(side)
    held = cuda.memory_allocated()
    del x
    assert cuda.memory_allocated() == held - 32
    with pytest.raises(RuntimeError, match="expected a CUDA tensor"):
        lt.ones(1).record_stream(side)


def test_older_names_of_mixed_precision() -> None:
    x = lt.ones(2, 2, device="cuda")
    with cuda.amp.autocast():
        assert (x @ x).dtype is lt.float16
    assert cuda.amp.GradScaler().is_enabled()


def test_empty_views_share_the_version() -> None:
    x = lt.ones(1, 3, device="cuda")
    view = x[1:]
    assert view.storage is x.storage and view._base is x
    x.add_(1)
    assert view._version == x._version == 1 and view[:, 1:].storage is x.storage


class Unfinished:
    """An event that has not happened yet."""

    def __init__(self) -> None:
        self.ptr, self.done = id(self), False

    def record(self, stream: Any) -> None:
        pass


def test_pinned_memory_is_held_until_it_was_copied(stub: StubProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Unfinished] = []

    def new_event(timing: bool, blocking: bool) -> Unfinished:
        events.append(Unfinished())
        return events[-1]

    monkeypatch.setattr(stub, "new_event", new_event)
    host, device = lt.ones(4).pin_memory(), lt.ones(4, device="cuda")
    source, target = weakref.ref(host.storage), lt.empty(4, pin_memory=True)
    there = host.to("cuda", non_blocking=True)
    target.copy_(device, non_blocking=True)
    sink = weakref.ref(target.storage)
    del host, target
    gc.collect()
    assert source() is not None and sink() is not None and there.tolist() == [1, 1, 1, 1]
    for event in events:
        event.done = True
    lt.ones(1).pin_memory().to("cuda", non_blocking=True)
    gc.collect()
    assert source() is None and sink() is None
    events[-1].done = True
    waited = lt.ones(4).pin_memory()
    waited.cuda()
    assert len(events) == 3


@pytest.mark.parametrize("view", ["rows", "columns", "both", "permuted", "channels last", "dense", "one"])
def test_copies_between_devices_have_the_strides_of_pytorch(view: str) -> None:
    """Dense tensors keep theirs; one that repeats elements becomes a dense one of the same order."""
    x = lt.arange(48.0).reshape(6, 8)
    views = {
        "rows": (x[:1].expand(6, 8), (8, 1)), "columns": (x[:, :1].expand(6, 8), (8, 1)),
        "both": (x[0, 0].expand(6, 8), (8, 1)), "permuted": (x[:1].expand(6, 8).t(), (6, 1)),
        "channels last": (lt.arange(24.0).reshape(2, 3, 2, 2).to(memory_format=lt.channels_last), (12, 1, 6, 3)),
        "dense": (x.t(), (1, 8)), "one": (x[:1].expand(1, 8), (8, 1)),
    }  # fmt: skip
    value, strides = views[view]
    assert value.clone().stride() == strides
    for start in (value, value.cuda().new_tensor(0.0) + value.cuda()):
        for device in ("cuda:0", "cuda:1", "cpu"):
            moved = start.to(device, copy=True)
            assert moved.stride() == strides and moved.tolist() == value.tolist(), (str(start.device), device)
    expanded = x.cuda()[:1].expand(6, 8)
    assert expanded.to("cuda:1").stride() == expanded.cpu().stride() == (8, 1)
    assert expanded.to("cuda:1").tolist() == expanded.cpu().tolist() == [x[0].tolist()] * 6
