"""Run a program eager and compiled from the same state, and compare results, gradients and side effects."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import lamina

__all__ = ["Outcome", "compare_function", "compare_model"]


@dataclass(frozen=True)
class Outcome:
    """What compiling made of a program."""

    graphs: int
    breaks: int
    kernels: int


def outcome() -> Outcome:
    """Counts since the last reset."""
    told = lamina.compiler.summary()
    return Outcome(told.graphs, told.breaks, told.kernels)


def assert_same(eager: Any, compiled: Any, tolerance: float, path: str = "result") -> None:
    """Compare nested results; tensors within a tolerance, all else exactly."""
    if isinstance(eager, lamina.Tensor):
        assert isinstance(compiled, lamina.Tensor), f"{path}: {type(compiled)}"
        assert eager.dtype is compiled.dtype, f"{path}: {eager.dtype} and {compiled.dtype}"
        assert tuple(eager.shape) == tuple(compiled.shape), f"{path}: {eager.shape} and {compiled.shape}"
        assert eager.stride() == compiled.stride(), f"{path}: strides {eager.stride()} and {compiled.stride()}"
        assert eager.requires_grad == compiled.requires_grad, f"{path}: requires_grad"
        have, want = compiled.detach().numpy(), eager.detach().numpy()
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance, err_msg=path)
    elif isinstance(eager, dict):
        assert list(eager) == list(compiled), path
        for key in eager:
            assert_same(eager[key], compiled[key], tolerance, f"{path}[{key!r}]")
    elif isinstance(eager, tuple | list):
        assert type(eager) is type(compiled) and len(eager) == len(compiled), path
        for k, (a, b) in enumerate(zip(eager, compiled, strict=True)):
            assert_same(a, b, tolerance, f"{path}[{k}]")
    else:
        assert eager == compiled, path


def compare_function(
    fn: Callable[..., Any],
    make_args: Callable[[], tuple[Any, ...]],
    *,
    calls: int = 2,
    tolerance: float = 1e-5,
    **options: Any,
) -> Outcome:
    """Call ``fn`` plain and compiled on equal arguments several times; arguments may be changed by it."""
    lamina.manual_seed(1)
    plain = [(fn(*args), args) for args in (make_args() for _ in range(calls))]
    lamina.manual_seed(1)
    compiled_fn = lamina.compile(fn, **options)
    for eager_result, eager_args in plain:
        args = make_args()
        result = compiled_fn(*args)
        assert_same(eager_result, result, tolerance)
        assert_same(eager_args, args, tolerance, "arguments")
    return outcome()


def compare_model(
    model: Any, *inputs: Any, steps: int = 2, tolerance: float = 2e-5, loss: Callable[[Any], Any] | None = None
) -> Outcome:
    """Forward, backward and an SGD step, plain and compiled, from equal parameters."""
    total = loss or (lambda out: (out * out).mean())
    twin = copy.deepcopy(model)
    lamina.manual_seed(1)
    expected = [_step(model, model, inputs, total) for _ in range(steps)]
    lamina.manual_seed(1)
    compiled = lamina.compile(twin.forward)
    for eager_out, eager_grads in expected:
        out, grads = _step(twin, compiled, inputs, total)
        assert_same(eager_out, out, tolerance)
        assert_same(eager_grads, grads, tolerance, "gradients")
    assert_same(dict(model.named_buffers()), dict(twin.named_buffers()), tolerance, "buffers")
    return outcome()


def _step(
    model: Any, call: Callable[..., Any], inputs: tuple[Any, ...], total: Callable[[Any], Any]
) -> tuple[Any, Any]:
    out = call(*inputs)
    total(out).backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    with lamina.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad * 0.1)
                parameter.grad = None
    return (out.detach() if isinstance(out, lamina.Tensor) else out), grads
