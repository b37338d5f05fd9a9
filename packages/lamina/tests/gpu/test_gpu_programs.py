"""Compiled CUDA programs through the real launcher, on a stub of the driver: results, launches, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stub_device import StubDevice

import lamina
from lamina import nn
from lamina.nn import functional as F
from lamina_fx import Graph, GraphBuilder, TensorSpec, float32
from lamina_inductor.backends.triton import TritonBackend
from lamina_prims import decompose, ops


def check(fn: Callable[..., Any], *inputs: Any, tolerance: float = 1e-5) -> Any:
    """The compiled function on CUDA copies of the inputs gives what the function gives on the CPU."""
    wanted = fn(*inputs)
    got = lamina.compile(fn)(*[i.cuda() if isinstance(i, lamina.Tensor) else i for i in inputs])
    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, wanted)], strict=True):
        assert a.device.type == "cuda" and a.dtype == b.dtype and a.shape == b.shape
        assert a.stride() == b.stride() or not a.numel()
        np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)
    return got


X = lamina.arange(37 * 20).reshape(37, 20) / 100.0 - 3.0
Y = lamina.arange(20 * 37).reshape(20, 37) / 200.0 - 1.0
BATCH = lamina.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5) / 10.0

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "chain": (lambda x: x.sin() * 2 + 1, (X,)),
    "softmax": (lambda x: x.softmax(-1), (X,)),
    "sum of everything": (lambda x: x.sum(), (X,)),
    "columns": (lambda x: (x - x.mean(0)) / x.std(0), (X,)),
    "long columns": (lambda x: (x - x.mean(0)) / x.std(0), (X.reshape(-1, 4).repeat(12, 1),)),
    "several results": (lambda x: (x + 1, x.sum(1), x.argmax(1)), (X,)),
    "views": (lambda x: x.t()[3:7].exp(), (X,)),
    "transposed operand": (lambda x: x.repeat(3, 3)[:60] + x.repeat(3, 3)[:60].t(), (X,)),
    "two formats": (lambda x: x.repeat(2, 40).t() + x.repeat(2, 40).reshape(800, 74).sin(), (X,)),
    "images to channels last": (
        lambda x: x.repeat(1, 10, 3, 3).to(memory_format=lamina.channels_last) * 2, (BATCH,),
    ),
    "product": (lambda x, y: x @ y, (X, Y)),
    "product of transposed": (lambda x, y: (x.t() @ y.t()).relu(), (X, Y)),
    "batched product": (lambda x: x @ x.transpose(-1, -2), (BATCH,)),
    "product of permuted": (lambda x: x.permute(0, 2, 1, 3) @ x.permute(0, 2, 3, 1), (BATCH,)),
    "product of a broadcast row": (lambda x, y: x[:1].expand(6, 20) @ y, (X, Y)),
    "product with a vector": (lambda x, y: x @ y[:, 0], (X, Y)),
    "product of nothing": (lambda x, y: x[:, :0] @ y[:0] + 1.0, (X, Y)),
    "product of doubles": (lambda x, y: x.double() @ y.double(), (X, Y)),
    "product of integers": (lambda x, y: x.long() @ y.long(), (X, Y)),
    "product of complex numbers": (
        lambda x, y: lamina.view_as_real(lamina.complex(x, x) @ lamina.complex(y, y)), (X, Y),
    ),
    "factorisation": (lambda x: lamina.linalg.inv(x[:5, :5] + 10 * lamina.eye(5, device=x.device)), (X,)),
    "sort": (lambda x: x.sin().sort(1), (X,)),
    "largest": (lambda x: x.sin().topk(3), (X,)),
    "largest of long rows": (lambda x: x.repeat(1, 250).topk(4, largest=False), (X,)),
    "medians": (lambda x: (*x.median(1), *x.kthvalue(2, 0), *x.mode(1), x.median()), (X,)),
    "unique": (lambda x: (x * 3).round().unique(return_inverse=True, return_counts=True), (X,)),
    "cumulative sum": (lambda x: x.cumsum(0), (X,)),
    "convolution": (lambda x: F.conv2d(x, x[:2, :, :2, :2]), (BATCH,)),
    "complex copies": (lambda x: lamina.view_as_real(lamina.cat((lamina.complex(x, x), lamina.complex(x, -x)))), (X,)),
    "embedding": (lambda i, w: F.embedding(i, w), (lamina.tensor([[1, 5], [0, 36]]), X)),
    "scatter": (lambda x: x.index_add(0, lamina.tensor([1, 3, 1], device=x.device), x[:3]), (X,)),
    "creation": (lambda x: lamina.ones(37, 20, device=x.device) * x + lamina.arange(20, device=x.device), (X,)),
    "cross entropy": (lambda x: F.cross_entropy(x, lamina.arange(37, device=x.device) % 20), (X,)),
    "empty": (lambda x: x[:0] * 2, (X,)),
    "constant": (lambda x: x + lamina.tensor([0.5] * 20, device=x.device), (X,)),
    "constants of one element": (
        lambda x: (x * lamina.tensor([2.0], device=x.device), lamina.tensor(3, device=x.device) + x[0]), (X,),
    ),
    "rotation of halves": (
        lambda x: x * 0.5 + lamina.cat((-x[:, 10:], x[:, :10]), 1) * (x * x).mean(1, keepdim=True), (X,),
    ),
    "rotation by a part": (lambda x: (lamina.cat((x[:, 3:], -x[:, :3]), 1), lamina.cat((-x[6:], -x[:6]))), (X,)),
    "number": (lambda x, s: x * s, (X, 2.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(device: StubDevice, name: str) -> None:
    fn, inputs = PROGRAMS[name]
    check(fn, *inputs)


def test_cross_entropy_of_many_classes_in_training(device: StubDevice) -> None:
    """Few rows that no tile holds are made in stages: blocks, their combination, elements."""
    x = (lamina.arange(4 * 33000).reshape(4, 33000) / 7.0).sin()
    targets = lamina.tensor([5, 32999, -100, 8192])

    def run(x: Any) -> Any:
        x = x.detach().requires_grad_(True)
        loss = F.cross_entropy(x, targets.to(x.device))
        return loss.detach(), *lamina.autograd.grad(loss, (x,))

    check(run, x)
    stages = [launch for launch in device.launches if launch.name.startswith("k1_")]
    assert [launch.grid[0] for launch in stages] == [4 * 9, 1, 4 * 9]


def test_gradients_of_sorted_rows_go_back_to_their_places(device: StubDevice) -> None:
    def run(x: Any) -> Any:
        x = x.detach().requires_grad_(True)
        values, places = x.sort(1, descending=True)
        kept, _ = (x * 2).topk(4, 0)
        loss = (values * (places + 1)).sum() + (kept * kept).sum()
        return loss.detach(), *lamina.autograd.grad(loss, (x,))

    check(run, X)


def test_top_p_is_one_kernel(device: StubDevice) -> None:
    def run(x: Any) -> Any:
        values, places = lamina.softmax(x, -1).sort(-1, descending=True)
        return lamina.where(values.cumsum(-1) - values <= 0.7, values, 0.0), places

    device.launches.clear()
    check(run, X)
    assert len({launch.name for launch in device.launches}) == 1


def test_constants_lie_on_the_default_device(device: StubDevice) -> None:
    lamina.set_default_device("cuda")
    try:
        got = lamina.compile(lambda x: (x * lamina.tensor([2.0]), lamina.tensor([1.5])))(X.cuda())
    finally:
        lamina.set_default_device(None)
    assert [g.device.type for g in got] == ["cuda", "cuda"] and got[1].item() == 1.5
    np.testing.assert_array_equal(got[0].cpu().numpy(), 2 * X.numpy())


def test_a_chain_is_one_launch(device: StubDevice) -> None:
    check(lambda x: x.sin() * 2 + 1, X)
    (launch,) = device.launches
    assert launch.grid == (1, 1, 1) and launch.threads == 128 and launch.name.startswith("k0_sin")


def test_a_model_is_a_few_kernels_and_products(device: StubDevice) -> None:
    model = nn.Sequential(nn.Linear(20, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    wanted = model(X)
    got = lamina.compile(model.cuda())(X.cuda())
    np.testing.assert_allclose(got.detach().cpu().numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
    names = [launch.name.partition("_")[0] for launch in device.launches]
    assert len(names) == len(set(names)) and device.library.stub_products() >= 2


@pytest.mark.parametrize("dynamic", [False, True])
def test_training_steps_are_those_of_the_cpu(device: StubDevice, dynamic: bool) -> None:
    def losses(where: str, wrap: Callable[..., Any]) -> list[float]:
        lamina.manual_seed(3)
        model = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 4)).to(where)
        optimizer = lamina.optim.AdamW(model.parameters(), lr=1e-2)
        x, target = X.to(where), (lamina.arange(37) % 4).to(where)

        def step() -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = wrap(step)
        return [run().item() for _ in range(4)]

    got = losses("cuda", lambda f: lamina.compile(f, dynamic=dynamic))
    np.testing.assert_allclose(got, losses("cpu", lambda f: f), rtol=1e-4)


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_optimizer_step_is_a_handful_of_launches(device: StubDevice, dynamic: bool) -> None:
    sizes = [(64, 32)] * 20 + [(32,)] * 20 + [(3, 5)] * 9 + [(5000,)] * 2

    def steps(where: str, wrap: Callable[..., Any]) -> list[Any]:
        lamina.manual_seed(1)
        parameters = [nn.Parameter(lamina.randn(*size).to(where)) for size in sizes]
        optimizer = lamina.optim.AdamW(parameters, lr=1e-2)
        step = wrap(optimizer.step)
        for _ in range(3):
            for p in parameters:
                p.grad = p.detach() * 0.5
            device.clear()
            step()
        return [p.detach().cpu() for p in parameters]

    wanted, got = steps("cpu", lambda f: f), steps("cuda", lambda f: lamina.compile(f, dynamic=dynamic))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
    assert 0 < len(device.launches) <= 8, [launch.name for launch in device.launches]


def test_many_tensors_of_symbolic_sizes_are_a_handful_of_launches(device: StubDevice) -> None:
    def update(tensors: list[Any], velocities: list[Any]) -> None:
        for tensor, velocity in zip(tensors, velocities, strict=True):
            velocity.mul_(0.9).add_(tensor)
            tensor.sub_(velocity * 0.1)

    run = lamina.compile(update, dynamic=True)
    for scale in (1, 2):
        sizes = [(64 * scale, 32)] * 6 + [(3, 5 * scale)] * 6 + [(5000,)] * 2
        tensors = [lamina.randn(*size) for size in sizes]
        wanted = [(t.clone(), lamina.ones_like(t)) for t in tensors]
        got = [(t.cuda(), v.cuda()) for t, v in wanted]
        update(*map(list, zip(*wanted, strict=True)))
        device.clear()
        run(*map(list, zip(*got, strict=True)))
        for a, b in zip(got, wanted, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x.cpu().numpy(), y.numpy(), rtol=1e-5, atol=1e-6)
        assert [launch.name.rpartition("_symbolic_")[2] for launch in device.launches] == ["odd_table"]


def test_inputs_are_written_in_place_and_versions_go_up(device: StubDevice) -> None:
    x = X.cuda()
    version = x._version
    lamina.compile(lambda x: x.mul_(2).add_(1))(x)
    np.testing.assert_allclose(x.cpu().numpy(), X.numpy() * 2 + 1, rtol=1e-6)
    assert x._version > version


@pytest.mark.parametrize("start", [1, 3, 4])
def test_memory_that_begins_anywhere(device: StubDevice, start: int) -> None:
    """Kernels are compiled for addresses that are multiples of 16; others are copied, and copied back."""
    flat = lamina.arange(100).float().cuda()
    part = flat[start : start + 40]
    got = lamina.compile(lambda x: x.mul_(3).sum())(part)
    wanted = np.arange(100, dtype=np.float32)
    wanted[start : start + 40] *= 3
    assert got.item() == wanted[start : start + 40].sum()
    np.testing.assert_array_equal(flat.cpu().numpy(), wanted)


def test_workspaces_are_given_back_with_the_cache(device: StubDevice) -> None:
    run, x = lamina.compile(lambda x: ((x @ x.t()).softmax(-1) @ x).sum(0)), X.cuda()
    wanted = run(x).cpu().numpy()
    before = lamina.cuda.memory_allocated()
    lamina.cuda.empty_cache()
    assert lamina.cuda.memory_allocated() < before
    np.testing.assert_array_equal(run(x).cpu().numpy(), wanted)


def test_steps_are_timed(device: StubDevice) -> None:
    graph = Graph()
    x = GraphBuilder(graph).proxy(
        graph.placeholder("x", spec=TensorSpec((37, 20), float32, device=lamina.device("cuda")))
    )
    graph.output((ops.exp(ops.matmul(x, ops.permute(x, (1, 0)))).node,))
    artifact = TritonBackend().compile(decompose(graph, level="prims"), name="timed")
    times = artifact.time_steps(X.cuda())
    assert [name for name, _ in times] == ["product", "k0_exp"] and [s for _, s in times] == [0.25e-3, 0.25e-3]


def test_sizes_that_change_need_no_new_program(device: StubDevice) -> None:
    count = len(device.programs)
    run = lamina.compile(lambda x, y: ((x @ y).softmax(-1).sum(0), x.sum()), dynamic=True)
    for n in (5, 9, 700):
        x, y = lamina.randn(n, 12), lamina.randn(12, 2 * n)
        got = run(x.cuda(), y.cuda())
        want = ((x @ y).softmax(-1).sum(0), x.sum())
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-3, atol=1e-4)
    assert len(device.programs) == count + 1


def test_an_index_may_be_divided_by_a_size_that_changes(device: StubDevice) -> None:
    run = lamina.compile(lambda x: x.t().reshape(x.shape).sum(0), dynamic=True)
    for shape in ((5, 9), (700, 33)):
        x = lamina.randn(*shape)
        np.testing.assert_allclose(
            run(x.cuda()).cpu().numpy(), x.t().reshape(shape).sum(0).numpy(), rtol=1e-3, atol=1e-3
        )


def test_a_bad_index_is_raised_when_the_device_is_waited_for(device: StubDevice) -> None:
    table = X.cuda()
    run = lamina.compile(lambda i, w: F.embedding(i, w) * 2)
    run(lamina.tensor([1, 2]).cuda(), table)
    words = r"index 99 is out of bounds for dimension 0 with size 37 .*test_gpu_programs.py:\d+"
    with pytest.raises(IndexError, match=words):
        run(lamina.tensor([1, 99]).cuda(), table)
        lamina.cuda.synchronize()
    assert run(lamina.tensor([1, 2]).cuda(), table).shape == (2, 20)


def test_a_bad_index_is_raised_by_the_next_call(device: StubDevice) -> None:
    table, bad = X.cuda(), lamina.tensor([1, 99]).cuda()
    run = lamina.compile(lambda i, w: F.embedding(i, w) * 2)
    run(bad, table)
    with pytest.raises(IndexError, match="index 99 is out of bounds for dimension 0 with size 37"):
        run(bad, table)
    run(lamina.tensor([1, 2]).cuda(), table)


def test_tensors_on_the_cpu_take_part(device: StubDevice) -> None:
    run = lamina.compile(lambda x, s: (x * s, (x.sum() * s).cpu()))
    got, on_cpu = run(X.cuda(), lamina.tensor(2.0))
    np.testing.assert_allclose(got.cpu().numpy(), X.numpy() * 2)
    assert on_cpu.device.type == "cpu" and abs(on_cpu.item() - 2 * X.sum().item()) < 1e-2


def test_random_numbers_are_those_of_eager(device: StubDevice) -> None:
    x = X.cuda()
    lamina.manual_seed(5)
    eager = F.dropout(x, 0.4), lamina.randn(3, 4, device="cuda")
    lamina.manual_seed(5)
    compiled = lamina.compile(lambda x: (F.dropout(x, 0.4), lamina.randn(3, 4, device="cuda")))(x)
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), rtol=1e-5, atol=1e-6)


def test_reduced_overhead_replays_a_graph_with_results_of_their_own(device: StubDevice) -> None:
    run = lamina.compile(lambda x, w: ((x * w).sin(), x.sum()), mode="reduce-overhead")
    w, results = X.cuda(), []
    inputs = [lamina.randn(37, 20) for _ in range(5)]
    for x in inputs:
        results.append(run(x.cuda(), w))
    for x, (a, b) in zip(inputs, results, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), (x * X).sin().numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(b.item(), x.sum().item(), rtol=1e-4)


def test_graphs_of_several_sizes_do_not_disturb_each_other(device: StubDevice) -> None:
    """The tables that name a program's tensors are each graph's own."""

    def step(x: Any, *weights: Any) -> Any:
        total = x.sin().sum(1)  # a kernel of its own, whose result lies in the workspace
        for w in weights:
            w.mul_(0.5).add_(total[:4])
        return total.sum()

    run = lamina.compile(step, mode="reduce-overhead", dynamic=True)
    wanted, got = ([lamina.ones(4) * k for k in range(9)] for _ in range(2))
    got = [w.cuda() for w in got]
    xs = {n: X[:n].cuda() for n in (37, 11)}
    for n in (37, 37, 37, 11, 11, 37, 11, 11, 37, 37):
        device.clear()
        run(xs[n], *got)
        step(X[:n], *wanted)
    assert any(launch.name.endswith("_table") for launch in device.launches)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("views", "share"), [((slice(0, None, 2), slice(1, None, 2)), False), ((slice(0, 12), slice(8, None)), True)]
)
def test_writes_where_inputs_lie_in_each_others_memory(device: StubDevice, views: Any, share: bool) -> None:
    def step(a: Any, b: Any) -> Any:
        total = a.sum() + b.sum()
        a.mul_(2)
        return total, b + 1

    want, got = X.clone(), X.cuda()
    run = lamina.compile(step, fullgraph=not share)
    for _ in range(2):
        wanted = step(*(want[:, v] for v in views))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results = run(*(got[:, v] for v in views))
        for a, b in zip((*results, got), (*wanted, want), strict=True):
            np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-4, atol=1e-4)
    assert device.launches


@pytest.mark.parametrize("wrap", [lambda f: f, lamina.compile], ids=["eager", "compiled"])
def test_two_devices_in_one_operator_are_an_error_at_the_users_line(
    device: StubDevice, wrap: Callable[..., Any]
) -> None:
    def fn(x: Any, y: Any) -> Any:
        x = x * 2
        return x + y

    words = "add: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    with pytest.raises(RuntimeError, match=words) as caught:
        wrap(fn)(X.cuda(), X)
    lines = [(entry.name, entry.lineno - fn.__code__.co_firstlineno) for entry in caught.traceback]
    assert ("fn", 1) in lines  # pytest counts lines from 0
