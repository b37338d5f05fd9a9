"""Every operator of the registry against its own samples.

``LAMINA_SWEEP=1`` runs them with several seeds.
"""

from __future__ import annotations

import os

import pytest

from lamina_prims import operator, operators
from lamina_testing.operators import (
    check_decomposition,
    check_error,
    check_gradient,
    check_meta,
    check_scatter,
    check_symbolic,
    errors_of,
    samples_of,
)

# results whose size or values are not determined by specs, and effects, have tests of their own (test_dynamic.py)
_OTHERS = frozenset({"dynamic", "nondeterministic"})
IDS = sorted(id for id, op in operators().items() if not op.tags & _OTHERS and op.effect is None)
SEEDS = range(5) if os.environ.get("LAMINA_SWEEP") else range(1)


@pytest.mark.parametrize("id", IDS)
def test_has_samples_and_words(id: str) -> None:
    op = operator(id)
    assert op.__doc__, f"{id} has no docstring"
    assert next(samples_of(op), None) is not None, f"{id} has no samples"


@pytest.mark.parametrize("id", IDS)
def test_meta(id: str) -> None:
    for seed in SEEDS:
        for sample in samples_of(operator(id), seed):
            check_meta(operator(id), sample)


@pytest.mark.parametrize("id", IDS)
def test_symbolic_sizes(id: str) -> None:
    for sample in samples_of(operator(id)):
        check_symbolic(operator(id), sample)


@pytest.mark.parametrize("id", IDS)
def test_decomposition(id: str) -> None:
    for seed in SEEDS:
        for sample in samples_of(operator(id), seed):
            check_decomposition(operator(id), sample)


@pytest.mark.parametrize("id", IDS)
def test_gradient(id: str) -> None:
    for seed in SEEDS:
        for sample in samples_of(operator(id), seed):
            check_gradient(operator(id), sample, seed)


@pytest.mark.parametrize("id", [i for i in IDS if errors_of(operator(i))])
def test_errors(id: str) -> None:
    for sample in errors_of(operator(id)):
        check_error(operator(id), sample)


@pytest.mark.parametrize("id", [i for i in IDS if operator(i).scatter_rule is not None])
def test_scatter(id: str) -> None:
    checked = [check_scatter(operator(id), sample) for sample in samples_of(operator(id))]
    assert any(checked), f"no sample of {id} is a view in NumPy"
