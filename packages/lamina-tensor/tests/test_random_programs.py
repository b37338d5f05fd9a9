"""Random programs of views, writes and operators: the traced graph, interpreted, does what eager does.

Values, gradients, versions and ``requires_grad`` of everything a program makes are compared; where eager raises,
tracing raises the same kind of error.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_fx import Graph, Interpreter
from lamina_prims import operator
from lamina_tensor.creator import creating_tensors

VIEWS = [
    "{a}[0]", "{a}[1:]", "{a}.t() if {a}.ndim == 2 else {a}[...]", "{a}.reshape(-1)", "{a}.unsqueeze(0)", "{a}[..., 0]",
    "{a}[..., ::2]", "{a}.detach()", "{a}.transpose(0, -1)", "{a}.squeeze()", "{a}.expand(2, *{a}.shape)",
    "{a}.narrow(0, 0, 1)", "{a}.flatten()", "{a}.chunk(2, 0)[0]", "{a}.select(0, 0)",
    "{a}.diagonal() if {a}.ndim == 2 else {a}",
]  # fmt: skip
WRITES = [
    "{a}.mul_(2)", "{a}.add_(1)", "{a}.mul_(w[0, 1])", "{a}.add_(w.sum())", "{a}.neg_()", "{a}.tanh_()",
    "{a}.copy_(w[0, 0])",
    "{a}.sub_({b}.sum())", "{a}.mul_({b}.mean())", "{a}.clamp_(-1, 1)", "{a}.add_({a})", "{a}.pow_(2)", "{a}.relu_()",
    "{a}.masked_fill_({a} > 0.5, 0.25)",
    "{a}[0] = w[0, 0]", "{a}[..., 0] = 2", "{a}[-1] *= w[1, 1]", "{a}[{a} > 0.3] = 0.5",
    "{a}[lt.tensor([0])] = w[0, 0]",
]  # fmt: skip
VALUES = [
    "{a} * 2 + 1", "{a}.exp()", "({a} * w[0, 1]).sin()", "{a}.sum()", "{a} * {b}.sum()", "{a}.softmax(-1)",
    "{a}.clone()",
    "lt.cat([{a}, {a}])", "{a}.max(0)[0]", "{a}[lt.tensor([0, 0])]", "{a}.cumsum(0)",
]  # fmt: skip


def make_program(seed: int) -> tuple[str, list[str]]:
    """Source over the tensors x, w and c, and the names it makes."""
    rng = random.Random(seed)
    names, lines = ["a", "c"], ["a = x * 1"]
    for _ in range(rng.randint(3, 9)):
        kind = rng.random()
        source = rng.choice(names)
        choices = VIEWS if kind < 0.35 else WRITES if kind < 0.85 else VALUES
        text = rng.choice(choices).format(a=source, b=rng.choice(names))
        if choices is not WRITES:
            names.append(f"v{len(names)}")
            text = f"{names[-1]} = {text}"
        lines.append(text)
    lines += [f"loss = sum((z * 1.5).sum() for z in [{', '.join(names)}])", "loss.backward()"]
    return "\n".join(lines), names


def run(source: str, names: list[str], inputs: list[Any]) -> tuple[list[Any], list[Any]]:
    """What the program makes, and the gradients of x and w."""
    scope = {"lt": lt, **dict(zip("xwc", inputs, strict=True))}
    exec(source, scope)
    return [scope[n] for n in names], [inputs[0].grad, inputs[1].grad]


def make_inputs() -> list[Any]:
    grid = lt.arange(12.0).reshape(3, 4)
    return [((grid + 1) / 4).requires_grad_(), (grid * 0.1 - 0.5).requires_grad_(), grid * 0.3]


def trace(source: str, names: list[str]) -> tuple[Graph, list[Any]]:
    graph = Graph()
    nodes = [graph.placeholder("xwc"[i], spec=t.spec) for i, t in enumerate(make_inputs())]
    with lt.trace(graph) as tracer:
        inputs = [tracer.input(n, t.requires_grad) for n, t in zip(nodes, make_inputs(), strict=True)]
        made, grads = run(source, names, inputs)
        graph.output(tuple(None if t is None else tracer.value(t) for t in (*made, *grads)))
    return graph, made


@pytest.mark.parametrize("block", range(8))
def test_traced_equals_eager(block: int) -> None:
    compared = 0
    for seed in range(block * 25, block * 25 + 25):
        source, names = make_program(seed)
        try:
            made, grads = run(source, names, make_inputs())
        except (RuntimeError, IndexError) as error:
            with pytest.raises(type(error)):
                trace(source, names)
            continue
        graph, traced = trace(source, names)
        with creating_tensors():
            values = Interpreter(graph, operator).run(*[t.detach() for t in make_inputs()])
        for want, got in zip((*made, *grads), values, strict=True):
            assert (want is None) == (got is None), source
            if want is not None:
                np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), 1e-4, 1e-4, err_msg=source)
        for want, got in zip(made, traced, strict=True):
            assert (want.requires_grad, want._version) == (got.requires_grad, got._version), source
        compared += 1
    assert compared > 10
