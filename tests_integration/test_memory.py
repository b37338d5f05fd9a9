"""Memory and gradients of compiled functions against eager: results that share memory, writes, overlapping inputs,
derivatives of derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compare import assert_same, compare_function

import lamina


def waves(*shape: int) -> Any:
    """A tensor of different numbers."""
    count = int(np.prod(shape))
    return (lamina.arange(float(count)).reshape(*shape) * 0.37).sin() + 0.1


def leaf(*shape: int) -> Any:
    """The same, to be differentiated by."""
    return waves(*shape).requires_grad_()


def tensors(value: Any) -> Iterator[Any]:
    """Every tensor in nested values."""
    if isinstance(value, lamina.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors(item)


def sharing(values: Any) -> list[tuple[bool, bool]]:
    """For each pair of tensors: the same object, memory in common."""
    found = list(tensors(values))
    arrays = [t.detach().numpy() for t in found]
    return [
        (a is b, np.shares_memory(arrays[i], arrays[i + 1 + j]))
        for i, a in enumerate(found)
        for j, b in enumerate(found[i + 1 :])
    ]


def detached_write(a: Any) -> Any:
    b = a * 2
    c = b.detach()
    c.add_(1)
    return b, c


def value_and_views(a: Any) -> Any:
    b = a * 2
    return b, b[0], b.t(), b.view(-1)


def views_only(a: Any) -> Any:
    b = a * 2
    return b[0], b.t()


def pieces(a: Any) -> Any:
    return (a * 2).chunk(2)


def overwritten_in_other_order(a: Any) -> Any:
    b = a.t() * 2
    b.copy_(lamina.ones(2))
    return b


OUTPUTS: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
    (value_and_views, lambda: (waves(2, 4),)),
    (value_and_views, lambda: (leaf(2, 4),)),
    (views_only, lambda: (leaf(2, 4),)),
    (pieces, lambda: (leaf(2, 4),)),
    (detached_write, lambda: (waves(3),)),
    (lambda a: (a.detach(), a * 2), lambda: (leaf(3),)),
    (lambda a: (a[1:], a * 2), lambda: (leaf(3),)),
    (lambda a: (a[1:], a * 2), lambda: (waves(6)[2:],)),
    (lambda a: (a[1:], a), lambda: (leaf(3) * 2,)),
    (lambda a: (a[1:], a.t()), lambda: (waves(8, 6)[::2, ::2],)),
    (lambda a: (a[0].add_(1), a), lambda: (waves(4, 3).t(),)),
    (lambda a: (a * 2).expand(5, 3), lambda: (leaf(3),)),
    (lambda a: a.expand(5, 3), lambda: (leaf(3),)),
    (lambda a: (a + 1).t(), lambda: (waves(3, 4),)),
    (lambda a: a + 1, lambda: (waves(3, 4).t(),)),
    (lambda a: (a, a), lambda: (leaf(3),)),
    (overwritten_in_other_order, lambda: (waves(2, 3),)),
]


@pytest.mark.parametrize("backend", ["reference", "cpp"])
@pytest.mark.parametrize(("function", "make"), OUTPUTS)
def test_results_share_memory_as_in_eager(function: Any, make: Any, backend: str) -> None:
    compare_function(function, make, backend=backend)
    args, again = make(), make()
    eager, compiled = function(*args), lamina.compile(function, backend=backend)(*again)
    assert sharing([eager, args]) == sharing([compiled, again])
    if any(t.requires_grad for t in tensors(eager)):
        for value in (eager, compiled):
            sum((t * t * (k + 1)).sum() for k, t in enumerate(tensors(value)) if t.requires_grad).backward()
        for a, b in zip(args, again, strict=True):
            if a.is_leaf:
                assert_same(a.grad, b.grad, 1e-5, "gradient")


def write_one(a: Any, b: Any) -> Any:
    a.add_(1)
    return a + b


def write_both(a: Any, b: Any) -> Any:
    a.add_(1)
    b.mul_(2)
    return a + b


def write_inside(a: Any, b: Any) -> Any:
    return write_one(a * 1, b) + write_one(a, b)


def write_an_item(a: Any, b: Any) -> Any:
    a[0] = 5.0
    return (a * b).sum()


def shifted() -> Any:
    z = waves(4)
    return z[:3], z[1:]


def turned() -> Any:
    z = waves(3, 3)
    return z, z.t()


def reshaped() -> Any:
    z = waves(4)
    return z, z.view(2, 2).view(4)


def apart() -> Any:
    return waves(3), waves(3) + 1


def interleaved() -> Any:
    z = waves(3, 4)
    return z[:, :2], z[:, 2:]


@pytest.mark.parametrize("backend", ["reference", "cpp"])
@pytest.mark.parametrize("function", [write_one, write_both, write_inside, write_an_item])
@pytest.mark.parametrize("make", [shifted, turned, reshaped])
def test_a_write_to_overlapping_inputs_ends_the_graph(function: Any, make: Any, backend: str) -> None:
    made = compare_function(function, make, backend=backend)
    assert made.breaks >= 1
    reasons = [str(r) for e in lamina.compiler.events() for r in e.breaks]
    assert "share" in reasons[0] and "test_memory.py" in reasons[0]


def test_inputs_that_come_to_overlap_are_noticed() -> None:
    compiled = lamina.compile(write_one, backend="reference")
    for make in (apart, shifted, apart, reshaped, shifted):
        args, again = make(), make()
        assert_same(write_one(*args), compiled(*again), 1e-6)
        assert_same(args, again, 1e-6)


def test_interleaved_inputs_stay_one_graph() -> None:
    made = compare_function(write_both, interleaved)
    assert (made.graphs, made.breaks) == (1, 0)


# -- derivatives ---------------------------------------------------------------------------------------


def hidden(x: Any) -> Any:
    return x.detach() * x * x


def hidden_by_mode(x: Any) -> Any:
    with lamina.no_grad():
        scale = x.sum()
    return scale * x * x


def leaf_overwritten(x: Any, w: Any) -> Any:
    with lamina.no_grad():
        x.mul_(2)
    return (x * w).sin()


def written_inside(x: Any, w: Any) -> Any:
    y = x * 1
    y.mul_(w)
    y[0] = w.sum()
    return y.sin()


def dropped(x: Any) -> Any:
    return lamina.nn.functional.dropout(x * x, 0.5) * x


THREE_TIMES: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
    (lambda x: x.sin() * x, lambda: (leaf(3),)),
    (lambda x, w: (x @ w).tanh(), lambda: (leaf(2, 3), leaf(3, 2))),
    (lambda x: lamina.softmax(x * x, -1).exp(), lambda: (leaf(2, 3),)),
    (lambda x, w, b: lamina.nn.functional.layer_norm(x, (4,), w, b).sin(), lambda: (leaf(3, 4), leaf(4), leaf(4))),
    (lambda x: (x * x)[0].sin(), lambda: (leaf(2, 3),)),
    (lambda x: (x * x).t(), lambda: (leaf(2, 3),)),
    (hidden, lambda: (leaf(3),)),
    (hidden_by_mode, lambda: (leaf(3),)),
    (leaf_overwritten, lambda: (leaf(3), leaf(3))),
    (written_inside, lambda: (leaf(3), leaf(3))),
    (dropped, lambda: (leaf(3, 7),)),
]


def three_derivatives(function: Any, args: tuple[Any, ...]) -> list[Any]:
    """First, second and third derivatives of a sum of the function."""
    lamina.manual_seed(3)
    total, found = function(*args).sum(), []
    for _ in range(3):
        grads = [g for g in lamina.autograd.grad(total, args, create_graph=True, allow_unused=True) if g is not None]
        found += [g.detach() for g in grads]
        total = sum((g * g).sum() for g in grads)
    return found


@pytest.mark.parametrize(("function", "make"), THREE_TIMES)
def test_derivatives_of_derivatives(function: Any, make: Any) -> None:
    eager = three_derivatives(function, make())
    compiled = three_derivatives(lamina.compile(function, backend="reference"), make())
    assert_same(eager, compiled, 2e-4)


def test_a_written_input_is_kept_for_the_backward() -> None:
    def f(x: Any, w: Any) -> Any:
        x.mul_(w)
        return x.sum()

    for backend in ("reference", "cpp"):
        results = []
        for call in (f, lamina.compile(f, backend=backend)):
            x, w = waves(8, 6)[::2, ::2], leaf(3)
            call(x, w).backward()
            results.append((x.detach(), w.grad))
        assert_same(*results, 1e-5)


@pytest.mark.parametrize("create_graph", [False, True])
def test_an_input_written_before_the_backward_is_an_error(create_graph: bool) -> None:
    @lamina.compile(backend="reference")
    def f(x: Any, w: Any) -> Any:
        return (x * w).sin()

    x, w = leaf(3), leaf(3)
    y = f(x, w)
    with lamina.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lamina.autograd.grad(y.sum(), [x], create_graph=create_graph)
