"""Gradients against finite differences.

>>> from lamina_tensor import float64, tensor
>>> gradcheck(lambda x: x * x, (tensor([1.0, 2.0], dtype=float64, requires_grad=True),))
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina_prims import operator
from lamina_prims.arrays import numpy_dtype

from .._C import TensorBase, wrap
from ..autograd.engine import grad
from ..autograd.grad_mode import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """The gradient differs from finite differences, or cannot be checked."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare the gradients of ``func`` with central differences, for each input that requires one.

    The inputs should be float64 or complex128. Returns True; False or, by default, GradcheckError where they differ.
    """
    given = (inputs,) if isinstance(inputs, TensorBase) else tuple(inputs)
    try:
        _check(func, given, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _outputs(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    found = func(*inputs)
    found = found if isinstance(found, (tuple, list)) else (found,)
    return [o for o in found if isinstance(o, TensorBase) and o.dtype.kind in ("float", "complex")]


def _check(func: Callable[..., Any], inputs: tuple[Any, ...], eps: float, atol: float, rtol: float) -> None:
    checked = [i for i, t in enumerate(inputs) if isinstance(t, TensorBase) and t._requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    outputs = _outputs(func, inputs)
    generator = np.random.default_rng(0)
    for index, output in enumerate(outputs):
        weight = _random_like(output, generator)
        if not output._requires_grad:
            gradients: Sequence[Any] = [None] * len(checked)
        else:
            wanted = [inputs[i] for i in checked]
            gradients = grad(output, wanted, weight, retain_graph=True, allow_unused=True)
        for position, gradient in zip(checked, gradients):
            numeric = _numeric(func, inputs, position, index, weight, eps)
            analytic = np.zeros_like(numeric) if gradient is None else gradient.detach().cpu().numpy()
            if analytic.shape != numeric.shape or not np.allclose(analytic, numeric, rtol, atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {index} with respect to input {position},\n"
                    f"numerical:{numeric}\nanalytical:{analytic}"
                )


def _random_like(tensor: Any, generator: Any) -> Any:
    values = generator.uniform(0.5, 1.5, tensor._sizes)
    if tensor.dtype.kind == "complex":
        values = values + 1j * generator.uniform(0.5, 1.5, tensor._sizes)
    return wrap(np.asarray(values).astype(numpy_dtype(tensor.dtype))).to(tensor.device)


def _numeric(
    func: Callable[..., Any], inputs: tuple[Any, ...], position: int, index: int, weight: Any, eps: float
) -> np.ndarray[Any, Any]:
    """Vector-Jacobian product with ``weight`` by central differences."""
    base = inputs[position].detach().cpu().numpy().copy()
    result = np.zeros_like(base)
    where = inputs[position].device
    steps = (1.0, 1j) if base.dtype.kind == "c" else (1.0,)

    def value(moved: np.ndarray[Any, Any]) -> Any:
        with no_grad():
            changed = (*inputs[:position], wrap(moved).to(where), *inputs[position + 1 :])
            out = _outputs(func, changed)[index]
            return float(np.sum((np.conj(weight.cpu().numpy()) * out.detach().cpu().numpy()).real))

    for place in np.ndindex(*base.shape):
        for step in steps:
            high, low = base.copy(), base.copy()
            high[place] += step * eps
            low[place] -= step * eps
            result[place] += step * (value(high) - value(low)) / (2 * eps)
    return result


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """``gradcheck`` of the gradients of ``func``: second derivatives."""
    given = (inputs,) if isinstance(inputs, TensorBase) else tuple(inputs)
    outputs = _outputs(func, given)
    generator = np.random.default_rng(1)
    if grad_outputs is None:
        weights = [_random_like(o, generator).requires_grad_() for o in outputs]
    else:
        weights = list(grad_outputs)
    checked = [i for i, t in enumerate(given) if isinstance(t, TensorBase) and t._requires_grad]

    def first(*arguments: Any) -> tuple[Any, ...]:
        values, cotangents = arguments[: len(given)], arguments[len(given) :]
        with enable_grad():
            fresh = [operator("clone")(_asking(v)) if i in checked else v for i, v in enumerate(values)]
            made = _outputs(func, fresh)
            return grad(made, [fresh[i] for i in checked], list(cotangents), create_graph=True, materialize_grads=True)

    return gradcheck(first, (*given, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def _asking(tensor: Any) -> Any:
    return tensor if tensor._requires_grad else tensor.detach().requires_grad_()
