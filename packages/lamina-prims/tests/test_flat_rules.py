"""Gradients of what is flat wherever it is differentiable are zeros, not None: the rules, without a front end."""

from __future__ import annotations

import numpy as np
import pytest

from lamina_prims import operator

CT = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "sign"])
def test_one_operand(name: str) -> None:
    [gradient] = operator(name).vjp_rule(CT)
    assert gradient.shape == (2, 3) and gradient.dtype == np.float32 and not gradient.any()


@pytest.mark.parametrize("name", ["floor_divide", "trunc_divide"])
def test_two_operands(name: str) -> None:
    left, right = operator(name).vjp_rule(CT, (True, False))
    assert not left.any() and right is None
