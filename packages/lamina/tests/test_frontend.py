"""Capture of lamina_tensor programs: the captured graph, run node by node, does what the eager program does."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lamina_tensor as lt
import lamina_tensor.nn.functional as F
from lamina.frontend import LaminaFrontend
from lamina_dynamo.backends import CountingBackend
from lamina_dynamo.capture import reset
from lamina_dynamo.eval import optimize
from lamina_tensor import nn, optim
from lamina_tensor.utils.checkpoint import checkpoint

FRONTEND = LaminaFrontend()
CASES = []
x = lt.randn(4, 8)
w = lt.randn(8, requires_grad=True)


def case(graphs=1, module=None, arguments=(x,)):
    def register(function):
        CASES.append((function, graphs, module, arguments))
        return function

    return register


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def same(expected, got):
    for a, b in zip(leaves(expected), leaves(got), strict=True):
        assert type(a) is type(b)
        if isinstance(a, lt.Tensor):
            assert a.requires_grad == b.requires_grad
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        else:
            assert a == b


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 10),
        )

    def forward(self, input):
        return self.net(input)


class Block(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, input):
        batch, length, width = input.shape
        parts = self.qkv(self.norm(input)).split(width, dim=2)
        q, k, v = [t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in parts]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return input + self.drop(self.proj(y.transpose(1, 2).contiguous().view(batch, length, width)))


class Language(nn.Module):
    def __init__(self, words=11, width=16, length=6):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(2)])
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, index, targets):
        y = self.words(index) + self.places(lt.arange(index.shape[1]))
        for block in self.blocks:
            y = block(y)
        logits = self.head(y)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


convnet, block, language, cell = ConvNet(), Block(), Language(), nn.LSTMCell(8, 16)
image, tokens = lt.randn(2, 1, 8, 8), lt.randint(0, 11, (2, 6))


@case(module=convnet, arguments=(image,))
def convolution(input):
    return convnet(input)


@case(module=convnet, arguments=(image,), graphs=2)
def gradients(input):
    loss = F.cross_entropy(convnet(input), lt.tensor([1, 2]))
    loss.backward()
    return loss


@case(module=cell)
def recurrent(input):
    h, c = lt.zeros(4, 16), lt.zeros(4, 16)
    outputs = []
    for _ in range(3):
        h, c = cell(input, (h, c))
        outputs.append(h)
    return lt.stack(outputs).sum(), h


@case(module=language, arguments=(tokens, tokens))
def transformer(index, targets):
    return language(index, targets)


@case(module=block, arguments=(lt.randn(2, 6, 16, requires_grad=True),))
def checkpointed(input):
    return checkpoint(block, input, use_reentrant=False).sum()


@case()
def modes(input):
    y = input * w
    with lt.no_grad():
        z = y + 1
    d = y.detach() * 2
    return y, z, d, y + d, lt.is_grad_enabled()


@case()
def functional_gradient(input):
    (g,) = lt.autograd.grad((input * w).sum(), [w])
    return g


@case()
def in_place(input):
    y = input.clone()
    y[0] = 1.0
    y[:, 1:3] += 2
    y.mul_(2).add_(1)
    y[y > 0] = 0.5
    return y


@case(graphs=0)
def facts(input):
    return input.view(-1, 2).shape, input.size(0), input.numel(), input.t().is_contiguous(), input.dtype, len(input)


@case()
def many_operators(input):
    doubled = lt.cat([input, input], dim=1)
    a, b = doubled.chunk(2, dim=1)
    best = input.max(dim=1)
    values, indices = input.topk(2)
    return (
        a + b, best.values, best[1], values, indices, lt.where(input > 0, input, 0.0), input[..., None].squeeze(-1),
        input[:, [0, 2]], input.to(lt.float64).float(), lt.einsum("ij,kj->ik", input, input), 2 - input, 1 / (input +
        9),
    )  # fmt: skip


@case()
def creation(input):
    return lt.zeros(2, 3), lt.arange(5), lt.tensor([1.0, 2.0]), lt.tensor(3), lt.ones_like(input), input.new_zeros(3)


@case()
def randomness(input):
    return lt.rand(3), lt.randn(2, 2), F.dropout(input, 0.5), lt.randint(0, 5, (3,))


@case()
def eager_error(input):
    try:
        return input @ input
    except RuntimeError as error:
        return input + 1, str(error)


@case(graphs=1)
def number_of_tensor(input):
    return input * 2 + input.sum().item()


@case(graphs=2)
def branch(input):
    if input.sum() > -1000:
        return input + 1
    return input - 1


@pytest.mark.parametrize("entry", CASES, ids=lambda e: e[0].__name__)
def test_captured_is_eager(entry):
    function, graphs, module, arguments = entry
    reset()
    backend = CountingBackend()
    compiled = optimize(backend, FRONTEND, strict=True)(function)
    before = copy.deepcopy(module.state_dict()) if module is not None else None

    def run(f):
        lt.manual_seed(3)
        if module is not None:
            module.load_state_dict(before)
            module.zero_grad()
        results = [f(*arguments) for _ in range(3)]
        return results, [p.grad for p in module.parameters()] if module is not None else []

    expected, got = run(function), run(compiled)
    same(expected, got)
    assert len(backend.graphs) == graphs


@pytest.mark.parametrize("make", [
    lambda p: optim.AdamW(p, lr=0.01),
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: optim.Adam(p, lr=0.01, amsgrad=True),
], ids=["AdamW", "SGD", "Adam"])  # fmt: skip
def test_training_step_is_one_graph(make):
    before = copy.deepcopy(language.state_dict())

    def run(wrap):
        reset()
        lt.manual_seed(1)
        language.load_state_dict(before)
        optimizer = make(language.parameters())

        def step(index, targets):
            loss = language(index, targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        step = wrap(step)
        losses = []
        for _ in range(5):
            losses.append(step(tokens, tokens).item())
            optimizer.param_groups[0]["lr"] *= 0.9
        return losses

    backend = CountingBackend()
    expected = run(lambda step: step)
    got = run(optimize(backend, FRONTEND, strict=True, fullgraph=True))
    assert got == expected
    assert len(backend.graphs) == 2  # with fresh optimizer state; and then, with the learning rate symbolic


def test_symbolic_batch():
    reset()
    backend = CountingBackend()
    linear = nn.Linear(8, 3)

    def f(input):
        return F.softmax(linear(input), dim=-1).view(input.shape[0], -1) * input.size(0)

    compiled = optimize(backend, FRONTEND, strict=True)(f)
    for n in (4, 5, 6, 7, 9):
        batch = lt.randn(n, 8)
        same(f(batch), compiled(batch))
    assert len(backend.graphs) == 2


def test_gradient_that_is_replaced():
    reset()
    p = lt.randn(3, requires_grad=True)

    def f(input):
        old = p.grad
        p.grad = None
        (p * input).sum().backward()
        return old, p.grad

    compiled = optimize(CountingBackend(), FRONTEND, strict=True)(f)
    p.grad = None
    expected = [f(lt.ones(3) * k) for k in (1, 2, 3)]
    p.grad = None
    same(expected, [compiled(lt.ones(3) * k) for k in (1, 2, 3)])
