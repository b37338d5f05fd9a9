"""Suites to subclass: they prove a backend or an array library against every operator's samples.

    class TestMyBackend(BackendSuite):
        keep = frozenset({"softmax"})
        unsupported = frozenset({"svd"})

        def run(self, graph, inputs):
            return my_compile(graph)(*inputs)

pytest collects one test for each operator. A test that is skipped says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lamina_fx import Graph
from lamina_prims import Operator, decompose, operator, operators

from .compare import assert_layout, assert_same
from .operators import graph_of_call, in_order, samples_of, specs
from .reverse import vjp

__all__ = ["BackendSuite", "EagerSuite", "GradientSuite", "testable"]


def testable(op: Operator) -> bool:
    """Has the operator samples whose results are values determined by the arguments."""
    return op.effect is None and not op.tags & {"dynamic", "nondeterministic"} and op.samples is not None


_IDS = sorted(id for id, op in operators().items() if testable(op))


class BackendSuite:
    """For what runs graphs of strict primitives.

    Attributes:
        keep: ids that the backend takes as they are.
        unsupported: ids (of primitives) that it cannot run; operators that need them are skipped.
        factor: how many times the usual tolerance its results may be off.
    """

    keep: frozenset[str] = frozenset()
    unsupported: frozenset[str] = frozenset()
    factor: float = 1.0

    def run(self, graph: Graph, inputs: list[Any]) -> Any:
        """Compile ``graph`` and run it on NumPy arrays; returns what the graph returns, as arrays."""
        raise NotImplementedError("a subclass says how to run a graph")

    @pytest.mark.parametrize("id", _IDS)
    def test_samples(self, id: str) -> None:
        """Every sample gives the reference's values."""
        op = operator(id)
        for sample in samples_of(op):
            graph, inputs = graph_of_call(op, sample.args, sample.kwargs)
            lowered = decompose(graph, level="prims", keep=self.keep)
            missing = sorted({n.target for n in lowered.nodes if n.op == "call_function"} & self.unsupported)
            if missing:
                pytest.skip(f"needs {', '.join(missing)}, which this backend does not run")
            assert_same(self.run(lowered, inputs), op(*sample.args, **sample.kwargs), id, self.factor)


class EagerSuite:
    """For array libraries on which operators are called directly.

    Attributes:
        unsupported: ids that it cannot run.
    """

    unsupported: frozenset[str] = frozenset()

    def wrap(self, array: Any, requires_grad: bool) -> Any:
        """The library's tensor of this NumPy array's values."""
        raise NotImplementedError("a subclass says how to make a tensor")

    def unwrap(self, tensor: Any) -> Any:
        """The tensor's values as a NumPy array."""
        raise NotImplementedError("a subclass says how to read a tensor")

    def lift(self, value: Any, made: list[Any], requires_grad: bool = False) -> Any:
        """``wrap`` the arrays in nested arguments; appends each tensor to ``made``."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.lift(v, made, requires_grad) for v in value)
        if isinstance(value, dict):
            return {k: self.lift(v, made, requires_grad) for k, v in value.items()}
        if isinstance(value, np.ndarray):
            made.append(self.wrap(value, requires_grad and value.dtype.kind not in "biu"))
            return made[-1]
        return value

    def lower(self, value: Any) -> Any:
        """``unwrap`` the tensors in nested results."""
        if isinstance(value, (list, tuple)):
            return tuple(self.lower(v) for v in value)
        return self.unwrap(value) if hasattr(value, "dtype") else value

    @pytest.mark.parametrize("id", _IDS)
    def test_samples(self, id: str) -> None:
        """Every sample gives the reference's values."""
        if id in self.unsupported:
            pytest.skip("this library does not run it")
        op = operator(id)
        for sample in samples_of(op):
            made: list[Any] = []
            result = op(*self.lift(sample.args, made), **self.lift(sample.kwargs, made))
            assert_same(self.lower(result), _as_tuple(op(*sample.args, **sample.kwargs)), id)

    def strides(self, tensor: Any) -> tuple[int, ...] | None:
        """Strides of a tensor in elements; None: the library does not say how its results lie in memory."""
        return None

    @pytest.mark.parametrize("id", _IDS)
    def test_layouts(self, id: str) -> None:
        """Results lie in memory as inferred, from row-major and from column-major arguments: compiled ones do, too."""
        op = operator(id)
        if id in self.unsupported:
            pytest.skip("this library does not run it")
        for sample in samples_of(op):
            for order in ("C", "F"):
                args, kwargs = in_order(sample.args, order), in_order(sample.kwargs, order)
                try:
                    inferred = op.infer(specs(args), specs(kwargs))
                except RuntimeError:
                    if order == "C":
                        raise
                    continue  # a view that needs another layout
                result = op(*self.lift(args, []), **self.lift(kwargs, []))
                for tensor, spec in zip(_tensors(result), _tensors(inferred), strict=True):
                    assert_layout(self.strides(tensor), spec, f"{id} ({order})")


class GradientSuite(EagerSuite):
    """For array libraries that differentiate: also compares their gradients."""

    def gradients(self, outputs: list[Any], cotangents: list[Any], inputs: list[Any]) -> list[Any]:
        """Vector-Jacobian products (NumPy arrays or None) of the outputs for the inputs."""
        raise NotImplementedError("a subclass says how to differentiate")

    @pytest.mark.parametrize("id", _IDS)
    def test_gradients(self, id: str) -> None:
        """The library's gradients are those of the operators' own rules."""
        if id in self.unsupported:
            pytest.skip("this library does not run it")
        op = operator(id)
        for sample in samples_of(op):
            if sample.gradient:
                self._check_gradient(op, sample.args, sample.kwargs)

    def _check_gradient(self, op: Operator, args: Any, kwargs: Any) -> None:
        made: list[Any] = []
        outputs = [r for r in _tensors(op(*self.lift(args, made, True), **self.lift(kwargs, made, True)))]
        values = [self.unwrap(r) for r in outputs]
        rng = np.random.default_rng(0)
        weights = [rng.standard_normal(v.shape).astype(v.dtype) if v.dtype.kind not in "biu" else None for v in values]
        graph, inputs = graph_of_call(op, args, kwargs)
        _, expected = vjp(decompose(graph, level="core"), inputs, lambda result: _nest(result, iter(weights)))
        moving = [k for k, x in enumerate(inputs) if x.dtype.kind not in "biu"]
        pairs = [(o, w) for o, w in zip(outputs, weights, strict=True) if w is not None]
        if not moving or not pairs:
            return
        found = self.gradients([o for o, _ in pairs], [w for _, w in pairs], [made[k] for k in moving])
        for k, gradient in zip(moving, found, strict=True):
            want = np.zeros_like(inputs[k]) if expected[k] is None else expected[k]
            got = np.zeros_like(inputs[k]) if gradient is None else gradient
            assert_same(got, want, f"{op.id}, gradient {k}", 4.0)


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in _tensors(part)]
    return [value] if hasattr(value, "dtype") else []


def _nest(result: Any, weights: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [_nest(part, weights) for part in result]
    return next(weights)


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(v) for v in value) if isinstance(value, (list, tuple)) else value
