"""``mode="reduce-overhead"``: CUDA graphs through the real launcher, on a stub of the driver."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stub_device import StubDevice

import lamina
from lamina.nn import functional as F
from lamina.records import records

X = lamina.arange(37 * 20).reshape(37, 20) / 100.0 - 3.0
W = lamina.arange(20 * 20).reshape(20, 20) / 200.0 - 1.0


def captured(fn: Callable[..., Any], **options: Any) -> Any:
    return lamina.compile(fn, mode="reduce-overhead", **options)


def graphs() -> int:
    """How many CUDA graphs the program that was compiled last keeps."""
    return next(iter(records()[-1].artifacts.values())).function.graphs


def same(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got.detach().cpu().numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_results_stay_and_only_the_kernels_that_name_what_moved_are_changed(device: StubDevice) -> None:
    def fn(x: Any, w: Any) -> Any:
        return (x.sum(0) + w.sum(0)).softmax(-1), x.sum(1)

    run, w, results = captured(fn), W.cuda(), []
    inputs = [lamina.randn(37, 20) for _ in range(5)]
    on_device = [x.cuda() for x in inputs]
    for x in on_device:
        results.append(run(x, w))
    assert graphs() == 1
    for x, (a, b) in zip(inputs, results, strict=True):
        same(a, fn(x, W)[0])
        same(b, fn(x, W)[1])
    before, launches = device.library.stub_patched(), len(device.launches)
    kept = run(on_device[0], w)
    changed = device.library.stub_patched() - before
    assert 0 < changed <= len(device.launches) - launches
    same(kept[1], fn(inputs[0], W)[1])


def test_nothing_is_changed_where_addresses_stay(device: StubDevice) -> None:
    run, x = captured(lambda x: x.mul_(0.5).add_(1)), X.cuda()
    wanted = X.numpy().copy()
    before = device.library.stub_patched()
    for _ in range(4):
        run(x)
        wanted = wanted * 0.5 + 1
    assert device.library.stub_patched() == before and graphs() == 1
    np.testing.assert_allclose(x.cpu().numpy(), wanted, rtol=1e-6)


def test_products_read_and_write_memory_of_the_graph_where_addresses_move(device: StubDevice) -> None:
    def fn(x: Any, w: Any) -> Any:
        return x.exp() @ w, x @ w.sin()

    run, w = captured(fn), W.cuda()
    inputs = [lamina.randn(37, 20) for _ in range(5)]
    results = [run(x.cuda(), w) for x in inputs]
    assert graphs() == 1
    for x, (a, b) in zip(inputs, results, strict=True):
        same(a, fn(x, W)[0])
        same(b, fn(x, W)[1])


def test_a_weight_that_is_replaced(device: StubDevice) -> None:
    run, x = captured(lambda x, w: x @ w), X.cuda()
    for k in (1.0, 1.0, 2.0, 3.0, 3.0):
        same(run(x, (W * k).cuda()), X @ (W * k))
    assert graphs() == 1


def test_inputs_that_are_written_are_written_where_they_lie(device: StubDevice) -> None:
    """Through a product, whose copy of a moving input goes back."""
    run = captured(lambda x, w: x.copy_((x @ w).sin()))
    for k in range(5):
        x = X.cuda() + k
        version = x._version
        run(x, W.cuda())
        same(x, ((X + k) @ W).sin())
        assert x._version == version + 1


def test_random_numbers_advance(device: StubDevice) -> None:
    x = X.cuda()
    lamina.manual_seed(5)
    eager = [F.dropout(x, 0.4).cpu().numpy() for _ in range(5)]
    lamina.manual_seed(5)
    run = captured(lambda x: F.dropout(x, 0.4))
    compiled = [run(x).cpu().numpy() for _ in range(5)]
    np.testing.assert_allclose(eager, compiled, rtol=1e-5)
    assert len({c.tobytes() for c in compiled}) == 5 and graphs() == 1


def test_numbers_on_the_host_may_change(device: StubDevice) -> None:
    run, x = captured(lambda x, s: x * s + s), X.cuda()
    for s in (0.5, 0.25, 0.125, 3.0, 7.0):
        same(run(x, s), X * s + s)
    on_cpu = captured(lambda x, s: (x * s, x.sum().cpu()))
    for s in (0.5, 0.25, 0.125):
        got, total = on_cpu(x, lamina.tensor(s))
        same(got, X * s)
        assert total.device.type == "cpu" and abs(total.item() - X.sum().item()) < 1e-2
    assert graphs() == 1


def test_memory_that_begins_anywhere(device: StubDevice) -> None:
    flat = lamina.arange(100).float()
    run, moved = captured(lambda x: x.mul_(3).sum()), flat.cuda()
    for start in (1, 1, 1, 3, 4):
        part = flat[start : start + 40]
        part.mul_(3)
        same(run(moved[start : start + 40]), part.sum())
    same(moved, flat)


def test_a_graph_for_each_size_then_one_warning(device: StubDevice) -> None:
    def fn(x: Any) -> Any:
        return x.softmax(-1).sum(0)

    run = captured(fn, dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (*range(2, 10), *range(2, 10)):
            same(run(X[:n].cuda()), fn(X[:n]))
    assert graphs() in (7, 8)  # the first call only loads
    with pytest.warns(RuntimeWarning, match="8 CUDA graphs are kept") as found:
        for n in (15, 16, 17, 3, 15):
            same(run(X[:n].cuda()), fn(X[:n]))
    assert graphs() == 8 and len(found) == 1


def test_graphs_share_the_workspace_of_their_stream(device: StubDevice) -> None:
    def fn(x: Any) -> Any:
        return ((x @ x.t()).softmax(-1) @ x).sum(0)

    x = X.cuda()
    first, second = captured(fn), captured(lambda x: fn(x) + 1)
    first(x), second(x)
    before = lamina.cuda.memory_allocated()
    for _ in range(3):
        same(first(x), fn(X))
        same(second(x), fn(X) + 1)
    assert lamina.cuda.memory_allocated() - before < 4096
    lamina.cuda.empty_cache()
    assert lamina.cuda.memory_allocated() < before
    same(first(x), fn(X))
    same(second(x), fn(X) + 1)


def test_another_stream_has_a_graph_of_its_own(device: StubDevice) -> None:
    run, x, side = captured(lambda x: x.sin().sum(0)), X.cuda(), lamina.cuda.Stream()
    for _ in range(3):
        run(x)
    with lamina.cuda.stream(side):
        for _ in range(2):
            same(run(x), X.sin().sum(0))
    same(run(x), X.sin().sum(0))
    assert graphs() == 2


def test_eager_work_between_calls(device: StubDevice) -> None:
    run, x = captured(lambda x: x * 2 + 1), X.cuda()
    wanted = X
    for _ in range(5):
        x = run(x).add_(1) * 0.5
        wanted = (wanted * 2 + 2) * 0.5
    same(x, wanted)


def test_a_bad_index_in_a_graph(device: StubDevice) -> None:
    run, table = captured(lambda i, w: F.embedding(i, w) * 2), X.cuda()
    for _ in range(3):
        run(lamina.tensor([1, 2]).cuda(), table)
    with pytest.raises(
        IndexError, match=r"index 99 is out of bounds for dimension 0 with size 37.*test_gpu_graphs.py:\d+"
    ):
        run(lamina.tensor([1, 99]).cuda(), table)
        lamina.cuda.synchronize()
    same(run(lamina.tensor([1, 2]).cuda(), table), X[1:3] * 2)
    assert graphs() == 1


def test_an_error_while_capturing_names_the_program_and_the_kernel(device: StubDevice) -> None:
    run, x = captured(lambda x: x.sin() * 3), X.cuda()
    run(x)
    device.library.stub_fail_launch(719)
    with pytest.raises(RuntimeError, match=r".*: launching kernel k0_sin\w* failed: CUDA_ERROR_STUB"):
        run(x)
    same(run(x), X.sin() * 3)
    same(run(x), X.sin() * 3)
    assert graphs() == 1


def test_training_in_graphs(device: StubDevice) -> None:
    """The weights' gradients are products, their memory is new at each step, the optimizer writes in place."""

    def losses(where: str, wrap: Callable[..., Any]) -> tuple[list[float], Any]:
        lamina.manual_seed(3)
        model = lamina.nn.Sequential(
            lamina.nn.Linear(20, 16), lamina.nn.Dropout(0.2), lamina.nn.Tanh(), lamina.nn.Linear(16, 4)
        ).to(where)
        optimizer = lamina.optim.AdamW(model.parameters(), lr=1e-2)

        def step(x: Any, target: Any) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = wrap(step)
        batches = [(X * (1 + k / 10), (lamina.arange(37) + k) % 4) for k in range(6)]
        return [run(x.to(where), t.to(where)).item() for x, t in batches], run

    (eager, _), (got, _run) = losses("cuda", lambda f: f), losses("cuda", captured)
    np.testing.assert_allclose(got, eager, rtol=1e-4)
    assert graphs() >= 1


# -- without being asked ------------------------------------------------------------------------------------------


def test_programs_become_graphs_by_themselves(device: StubDevice) -> None:
    run, w = lamina.compile(lambda x, w: ((x.sum(0) + w.sum(0)).softmax(-1), x.sum(1))), W.cuda()
    inputs = [lamina.randn(37, 20) for _ in range(5)]
    results = [run(x.cuda(), w) for x in inputs]
    assert graphs() == 1
    for x, (a, b) in zip(inputs, results, strict=True):
        same(a, (x.sum(0) + W.sum(0)).softmax(-1))
        same(b, x.sum(1))


def test_programs_stay_launches_where_a_graph_would_copy_much_or_is_not_wanted(device: StubDevice) -> None:
    run, wide = lamina.compile(lambda x, w: (x * 2) @ w), lamina.randn(20, 100_000)  # the result is a library's product
    w = wide.cuda()
    for k in range(4):
        got, want = run((X + k).cuda(), w), ((X + k) * 2) @ wide
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-3, atol=1e-3)
    assert graphs() == 0
    unwanted = lamina.compile(lambda x: x * 2, options={"cuda_graphs": False})
    for _ in range(4):
        same(unwanted(X.cuda()), X * 2)
    assert graphs() == 0


def test_what_a_product_reads_is_copied_once_it_moves(device: StubDevice) -> None:
    run, w = lamina.compile(lambda x, w: (x @ w).softmax(-1).sum(0)), W.cuda()
    x = X.cuda()
    for _ in range(3):
        same(run(x, w), (X @ W).softmax(-1).sum(0))
    before = device.library.stub_redirected()
    inputs = [(X + k).cuda() for k in range(3)]
    for k in range(3):
        same(run(inputs[k], w), ((X + k) @ W).softmax(-1).sum(0))
    assert graphs() == 1 and device.library.stub_redirected() - before == 2  # the graph is made anew for the first
    same(run(x, w), (X @ W).softmax(-1).sum(0))
    assert graphs() == 1


def test_sizes_that_are_new_at_each_call_make_no_graphs(device: StubDevice) -> None:
    run = lamina.compile(lambda x: x.softmax(-1).sum(0), dynamic=True)
    for n in (*range(2, 30), 4, 4, 5, 6, 6):
        same(run(X[:n].cuda()), X[:n].softmax(-1).sum(0))
    assert graphs() == 2


def training(device: str, wrap: Callable[[Any], Any], batches: list[int]) -> tuple[list[float], list[int], int]:
    """Losses, the device's memory behind each step, and how many graphs there are then."""
    lamina.manual_seed(2)
    model = lamina.nn.Sequential(lamina.nn.Linear(20, 16), lamina.nn.GELU(), lamina.nn.Linear(16, 4)).to(device)
    optimizer = lamina.optim.AdamW(model.parameters(), lr=1e-2)
    inputs, targets = X.to(device), (lamina.arange(37) % 4).to(device)

    def step(x: Any, target: Any) -> Any:
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    run, losses, memory = wrap(step), [], []
    for batch in batches:
        losses.append(float(run(inputs[:batch], targets[:batch]).item()))
        memory.append(lamina.cuda.memory_allocated())
    return losses, memory, graphs() if device == "cuda" else 0


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_a_training_loop_over_several_batch_sizes_replays_graphs(device: StubDevice, mode: str | None) -> None:
    batches = [32, 16, 24, 8] * 5
    before, programs = device.library.stub_graph_launches(), len(records())
    got, memory, kept = training("cuda", lambda f: lamina.compile(f, dynamic=True, mode=mode), batches)
    np.testing.assert_allclose(got, training("cpu", lambda f: f, batches)[0], rtol=1e-4)
    assert len(records()) == programs + 1 and kept == 4
    assert device.library.stub_graph_launches() - before >= len(batches) - 9
    assert memory[-1] == memory[-5] == memory[-9]


def test_a_graph_that_is_not_used_any_more_makes_room(device: StubDevice) -> None:
    run = captured(lambda x: x.sin().sum(0), dynamic=True)
    for n in (*range(2, 10), *range(2, 10)):
        run(X[:n].cuda())
    assert graphs() == 8
    x = X[:20].cuda()
    before = device.library.stub_graph_launches()
    with device.blind(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that eight are kept
        for _ in range(300):
            run(x)
    assert graphs() == 8 and 0 < device.library.stub_graph_launches() - before < 60
    same(run(x), X[:20].sin().sum(0))


# -- inside of graphs that others capture -------------------------------------------------------------------------


def test_a_table_in_somebodys_graph_stays_as_it_was_captured(device: StubDevice) -> None:
    def step(x: Any, *weights: Any) -> None:
        for w in weights:
            w.mul_(0.5).add_(x)

    run, x, side = lamina.compile(step), lamina.ones(6).cuda(), lamina.cuda.Stream()
    first, second = ([(lamina.ones(6) * k).cuda() for k in range(5)] for _ in range(2))
    run(x, *first)
    library, stream = device.library, ctypes.c_void_p(side.cuda_stream)
    graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
    library.cuStreamBeginCapture_v2(stream, 2)
    with lamina.cuda.stream(side):
        run(x, *second)
    library.cuStreamEndCapture(stream, ctypes.byref(graph))
    library.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
    for _ in range(3):  # with a graph of our own from the second call on
        run(x, *first)
    assert any(launch.name.endswith("_table") for launch in device.launches)
    for w, k in zip(second, range(5), strict=True):
        same(w, lamina.ones(6) * k)  # only noted so far
    library.cuGraphLaunch(ready, stream)
    for w, v, k in zip(first, second, range(5), strict=True):
        same(v, lamina.ones(6) * (k * 0.5 + 1))
        same(w, lamina.ones(6) * (k / 16 + 1.875))
