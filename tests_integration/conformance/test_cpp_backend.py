"""The C++ backend proves itself against every operator's samples.

All samples of an operator are one graph, so that they are one library: compiling is what takes the time. The default
run takes every ninth operator; ``--all-samples`` takes all.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph
from lamina_inductor import CppBackend
from lamina_prims import decompose, operator
from lamina_testing.compare import assert_layout, assert_same
from lamina_testing.joining import join, result_nodes
from lamina_testing.operators import graph_of_call, in_order, samples_of
from lamina_testing.suites import BackendSuite


def _flat_arrays(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in _flat_arrays(part)]
    return [value] if hasattr(value, "dtype") else []


class TestCpp(BackendSuite):
    """Every sample of an operator, in one library."""

    @pytest.mark.parametrize("id", BackendSuite.test_samples.pytestmark[0].args[1])
    def test_samples(self, id: str) -> None:
        """The compiled samples give the reference's values."""
        op = operator(id)
        graphs: list[Graph] = []
        inputs: list[Any] = []
        wanted: list[Any] = []
        specs: list[Any] = []
        for sample, order in itertools.product(samples_of(op), ("C", "F")):
            args, kwargs = in_order(sample.args, order), in_order(sample.kwargs, order)
            try:
                graph, arrays = graph_of_call(op, args, kwargs)
            except RuntimeError:
                if order == "C":
                    raise
                continue  # a view that needs another layout
            graphs.append(decompose(graph, level="prims"))
            inputs += arrays
            wanted.append(_flat_arrays(op(*args, **kwargs)))
            specs.append([node.spec for node in result_nodes(graph)])
        kept = [np.array(x) for x in inputs]
        results = list(CppBackend().compile(join(graphs), name=id)(*inputs))
        for number, want in enumerate(wanted):
            got, results = results[: len(want)], results[len(want) :]
            for have, expected, spec in zip(got, want, specs[number], strict=True):
                array, name = np.asarray(have), f"{id}, sample {number // 2} {'CF'[number % 2]}"
                assert_same(array, expected, name, self.factor)
                assert_layout([s // array.itemsize for s in array.strides], spec, name)
        assert not results
        for before, after in zip(kept, inputs, strict=True):
            np.testing.assert_array_equal(before, after, err_msg=f"{id}: an input has changed")
