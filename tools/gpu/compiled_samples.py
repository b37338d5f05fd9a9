"""Every operator's samples compiled for the GPU, from row-major and column-major arguments, against the references.

All samples of an operator are one graph: one program with many kernels. Where that program fails, its graphs are
compiled one by one, so that each failure is named.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from factorisations import FACTORISATIONS, certain

import lamina
from lamina.gpu import join_gpu
from lamina_fx import Device, Graph, TensorSpec
from lamina_inductor.backends.triton import TritonBackend
from lamina_prims import decompose, operator, operators
from lamina_prims.arrays import spec_of
from lamina_testing.compare import assert_layout, assert_same, tolerance
from lamina_testing.joining import join, result_nodes
from lamina_testing.operators import graph_of_call, in_order, samples_of

__all__ = ["check_operator", "names"]

_PLACE = Device("cuda", 0)


@dataclass(frozen=True, slots=True)
class Case:
    """A call: its graph in strict primitives, its inputs, and the reference's results."""

    name: str
    graph: Graph
    inputs: list[Any]
    wanted: list[Any]


def names() -> list[str]:
    """The operators whose samples have results that the arguments determine."""
    return sorted(
        id
        for id, op in operators().items()
        if op.effect is None and op.samples is not None and not op.tags & {"dynamic", "nondeterministic"}
    )


def check_operator(id: str) -> tuple[int, list[str]]:
    """How many graphs there are, and what is wrong with their results."""
    join_gpu()
    cases = _cases(id)
    if not cases:
        return 0, []
    try:
        _check(id, cases)
    except Exception:  # noqa: BLE001 - asked again, one by one
        return len(cases), [text for case in cases if (text := _failure(id, case))] or ["only all together fail"]
    return len(cases), []


def _failure(id: str, case: Case) -> str | None:
    try:
        _check(id, [case])
    except Exception as error:  # noqa: BLE001 - listed
        return f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def _cases(id: str) -> list[Case]:
    op, found = operator(id), []
    for (number, sample), order in itertools.product(enumerate(samples_of(op)), ("C", "F")):
        args, kwargs = in_order(sample.args, order), in_order(sample.kwargs, order)
        try:
            graph, arrays = graph_of_call(op, args, kwargs, _on_device)
        except RuntimeError:
            if order == "C":
                raise
            continue  # a view that needs another layout
        lowered = decompose(graph, level="prims", keep=TritonBackend.keep)
        found.append(Case(f"sample {number} {order}", lowered, arrays, _arrays(op(*args, **kwargs))))
    return found


def _on_device(array: Any) -> TensorSpec:
    spec = spec_of(array)
    return TensorSpec(spec.shape, spec.dtype, spec.strides, _PLACE)


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in _arrays(part)]
    return [value] if hasattr(value, "dtype") else []


def _check(id: str, cases: list[Case]) -> None:
    inputs = [lamina.from_numpy(np.array(x)).cuda() for case in cases for x in case.inputs]
    kept = [x.clone() for x in inputs]
    results = list(TritonBackend().compile(join([case.graph for case in cases]), name=id)(*inputs))
    lamina.cuda.synchronize()
    for case in cases:
        mine, results = results[: len(case.wanted)], results[len(case.wanted) :]
        got = [t.cpu().numpy() for t in mine]
        if id in FACTORISATIONS:
            _check_factors(id, got, case)
        for have, tensor, want, node in zip(got, mine, case.wanted, result_nodes(case.graph), strict=True):
            if id not in FACTORISATIONS:
                assert_same(have, want, case.name)
            assert (have.shape, have.dtype) == (want.shape, want.dtype), f"{have.dtype}{have.shape}"
            assert_layout(tensor.stride(), node.spec, case.name)
    assert not results, "more results than there should be"
    for before, after in zip(kept, inputs, strict=True):
        assert lamina.equal(before.nan_to_num(), after.nan_to_num()) or before.dtype.itemsize == 1, (
            "an input has changed"
        )


def _check_factors(id: str, got: list[Any], case: Case) -> None:
    allowed = 5 * max(tolerance(a.dtype) for a in case.wanted)
    for have, want in zip(certain(id, got), certain(id, case.wanted), strict=True):
        scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
        np.testing.assert_allclose(have, want, rtol=allowed, atol=allowed * scale, err_msg=case.name)
