"""Features of training: modules, optimizers, mixed precision, random numbers, gradients, layers, graphs."""

from __future__ import annotations

import copy
from typing import Any

from feature_list import close, feature, needs, raises


def _network(lt: Any) -> Any:
    nn = lt.nn
    lt.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 16),
        nn.LayerNorm(16),
        nn.GELU(),
        nn.Linear(16, 5),
    )


@feature
def modules() -> None:
    """Module.to, cuda, cpu, buffers, state dicts across devices, half."""
    import lamina_tensor as lt

    model = _network(lt)
    x = lt.rand(3, 1, 8, 8)
    want = model.eval()(x)
    model.to("cuda")
    assert all(p.is_cuda for p in model.parameters()) and all(b.is_cuda for b in model.buffers())
    close(model(x.cuda()), want)
    state = model.state_dict()
    fresh = _network(lt)
    fresh.load_state_dict(state)
    assert not fresh[0].weight.is_cuda
    close(fresh.cuda().eval()(x.cuda()), want)
    assert model.to(lt.bfloat16)(x.cuda().bfloat16()).dtype is lt.bfloat16
    assert not model.cpu()[0].weight.is_cuda
    raises(RuntimeError, "Expected all tensors to be on the same device", lambda: fresh(x))


@feature
def optimizers() -> str:
    """Every optimizer with a state: the CPU's parameters after five steps; state dicts back and forth."""
    import lamina_tensor as lt
    from lamina_tensor import optim

    names = [
        n
        for n in (
            "SGD",
            "Adam",
            "AdamW",
            "Adagrad",
            "Adadelta",
            "Adamax",
            "NAdam",
            "RAdam",
            "RMSprop",
            "Rprop",
            "ASGD",
            "LBFGS",
        )
        if hasattr(optim, n)
    ]
    for name in names:
        ends = []
        for device in ("cpu", "cuda"):
            lt.manual_seed(1)
            weight = lt.nn.Parameter(lt.randn(6, 4).to(device))
            x = lt.randn(8, 4).to(device)
            options = {"momentum": 0.9} if name == "SGD" else {}
            made = getattr(optim, name)([weight], lr=0.01, **options)

            def closure(weight: Any = weight, x: Any = x, made: Any = made) -> Any:
                made.zero_grad()
                loss = ((x @ weight.t()) ** 2).mean()
                loss.backward()
                return loss

            for _ in range(5):
                made.step(closure)
            made.load_state_dict(copy.deepcopy(made.state_dict()))
            made.step(closure)
            ends.append(weight.detach())
        close(ends[1], ends[0])
    return " ".join(names)


@feature
def mixed_precision() -> None:
    """autocast('cuda') in float16 and bfloat16, GradScaler, clip_grad_norm_."""
    import lamina_tensor as lt

    losses = {}
    for device in ("cpu", "cuda"):
        model = _network(lt).to(device)
        sgd = lt.optim.SGD(model.parameters(), lr=0.1)
        scaler = lt.amp.GradScaler(device, init_scale=1024.0)
        lt.manual_seed(2)
        x, y = lt.rand(8, 1, 8, 8).to(device), (lt.arange(8) % 5).to(device)
        losses[device] = []
        for _ in range(4):
            sgd.zero_grad()
            with lt.autocast(device, dtype=lt.bfloat16):
                out = model(x)
                loss = lt.nn.functional.cross_entropy(out.float(), y)
            assert out.dtype is lt.bfloat16
            scaler.scale(loss).backward()
            scaler.unscale_(sgd)
            lt.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(sgd)
            scaler.update()
            losses[device].append(loss.item())
    assert max(abs(a - b) for a, b in zip(losses["cpu"], losses["cuda"], strict=True)) < 0.05, losses
    a = lt.ones(2, 2, device="cuda")
    with lt.autocast("cuda"):
        assert (a @ a).dtype is lt.float16 and a.exp().dtype is lt.float32


@feature
def random_numbers() -> None:
    """Generators, seeds and states: the CPU's numbers."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    lt.manual_seed(3)
    want = lt.rand(100)
    lt.manual_seed(3)
    close(lt.rand(100, device="cuda"), want, 1e-6)
    cuda.manual_seed(3)
    close(lt.rand(100, device="cuda"), want, 1e-6)
    cuda.manual_seed_all(3)
    state = cuda.get_rng_state()
    first = lt.randn(7, device="cuda").tolist()
    cuda.set_rng_state(state)
    assert lt.randn(7, device="cuda").tolist() == first and cuda.initial_seed() == 3
    assert state.device.type == "cpu" and len(cuda.get_rng_state_all()) == cuda.device_count()
    cuda.set_rng_state_all(cuda.get_rng_state_all())
    g = lt.Generator(device="cuda").manual_seed(3)
    close(lt.rand(100, device="cuda", generator=g), want, 1e-6)
    assert lt.randperm(5, device="cuda", generator=g).is_cuda and g.initial_seed() == 3
    x = lt.empty(50, device="cuda").normal_(generator=g).uniform_(-1, 1)
    assert x.abs().max().item() <= 1 and lt.bernoulli(x.abs()).is_cuda and lt.multinomial(x.abs(), 3).shape == (3,)
    raises(
        RuntimeError,
        "Expected a 'cuda' device type for generator",
        lambda: lt.rand(2, device="cuda", generator=lt.Generator()),
    )


@feature
def autograd() -> None:
    """Gradients, hooks, double backward, checkpoint, functions, gradients across devices."""
    import lamina_tensor as lt

    x = lt.tensor([1.0, 2.0, 3.0], device="cuda", requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.is_cuda))
    (first,) = lt.autograd.grad((x**3).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [6, 12, 18] and seen and all(seen)

    class Double(lt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (a,) = ctx.saved_tensors
            return g * 2 + 0 * a

    y = lt.ones(2, device="cuda", requires_grad=True)
    lt.utils.checkpoint.checkpoint(lambda v: Double.apply(v).exp(), y, use_reentrant=False).sum().backward()
    close(y.grad, 2 * lt.tensor([2.0, 2.0]).exp())
    z = lt.ones(2, requires_grad=True)
    (z.cuda() * 3).sum().backward()
    assert z.grad.tolist() == [3, 3] and not z.grad.is_cuda
    with lt.no_grad():
        assert not (x * 2).requires_grad
    with lt.inference_mode():
        assert (x * 2).is_inference()


@feature
def functional() -> None:
    """Layers and losses a model uses."""
    import lamina_tensor as lt

    F = lt.nn.functional
    lt.manual_seed(0)
    x, im, seq = lt.randn(4, 8), lt.randn(2, 3, 12, 12), lt.randn(2, 2, 6, 8)
    w, k, t = lt.randn(5, 8), lt.randn(4, 3, 3, 3), lt.tensor([1, 0, 3, 2])
    for f in (
        lambda x, im, q, w, k, t: F.linear(x, w),
        lambda x, im, q, w, k, t: F.conv2d(im, k, padding=1, stride=2),
        lambda x, im, q, w, k, t: F.conv_transpose2d(F.conv2d(im, k), k),
        lambda x, im, q, w, k, t: F.avg_pool2d(im, 2),
        lambda x, im, q, w, k, t: F.max_pool2d(im, 3, 2),
        lambda x, im, q, w, k, t: F.adaptive_avg_pool2d(im, 4),
        lambda x, im, q, w, k, t: F.interpolate(im, scale_factor=2, mode="bilinear"),
        lambda x, im, q, w, k, t: F.group_norm(im, 3),
        lambda x, im, q, w, k, t: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        lambda x, im, q, w, k, t: F.softmax(x, 1),
        lambda x, im, q, w, k, t: F.cross_entropy(x, t),
        lambda x, im, q, w, k, t: F.embedding(t, w),
        lambda x, im, q, w, k, t: F.gelu(x),
        lambda x, im, q, w, k, t: F.one_hot(t, 5),
        lambda x, im, q, w, k, t: F.pad(im, (1, 2), mode="reflect"),
        lambda x, im, q, w, k, t: F.binary_cross_entropy_with_logits(x, x.sigmoid()),
        lambda x, im, q, w, k, t: F.cosine_similarity(x, x),
        lambda x, im, q, w, k, t: F.grid_sample(im, im[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False),
    ):
        close(f(*[a.cuda() for a in (x, im, seq, w, k, t)]), f(x, im, seq, w, k, t))
    for make in (
        lambda: lt.nn.LSTM(8, 6, 2),
        lambda: lt.nn.GRU(8, 6),
        lambda: lt.nn.TransformerEncoderLayer(8, 2, 16, 0.0),
    ):
        lt.manual_seed(1)
        module = make().eval()
        first = lambda out: out[0] if isinstance(out, tuple) else out  # noqa: E731
        want = first(module(seq[0]))
        close(first(module.cuda()(seq[0].cuda())), want)


@feature
def captured_graphs() -> None:
    """CUDAGraph, graph pools, make_graphed_callables."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    x = lt.ones(64, 64, device="cuda")
    _ = (x @ x).relu() + 1
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        assert cuda.is_current_stream_capturing()
        y = (x @ x).relu() + 1
    x.fill_(2)
    graph.replay()
    assert y[0, 0].item() == 257 and not cuda.is_current_stream_capturing()
    step = cuda.make_graphed_callables(lambda a: (a * 2).sum(0), (lt.ones(4, 4, device="cuda"),))
    assert step(lt.eye(4, device="cuda")).tolist() == [2, 2, 2, 2]


@feature
def steps_of_symbolic_sizes() -> str:
    """A GPT's step whose sizes are all symbolic, then of a marked batch that changes: one program, the CPU's losses."""
    import gpt

    needs("triton")
    import lamina

    def losses(device: str, wrap: Any, batches: tuple[int, ...]) -> list[float]:
        run = wrap(gpt.training(lamina, gpt.SMALL, gpt.make(lamina, gpt.SMALL, device), device))
        data = gpt.data(lamina, gpt.SMALL, device)
        found = []
        for batch in batches:
            part = [d[:batch].contiguous() for d in data]
            for tensor in part:
                lamina.compiler.mark_dynamic(tensor, 0)
            found.append(float(run(*part).item()))
        return found

    worst = 0.0
    for dynamic, batches in ((True, (4, 4, 4)), (None, (4, 3, 2))):
        before = len(lamina.compiler.records())
        got = losses("cuda", lambda f, d=dynamic: lamina.compile(f, dynamic=d, fullgraph=True), batches)
        assert len(lamina.compiler.records()) == before + 1
        want = losses("cpu", lambda f: f, batches)
        worst = max(worst, *(abs(a - b) / abs(b) for a, b in zip(got, want, strict=True)))
    assert worst < 2e-3, worst
    return f"losses within {worst:.0e}"
