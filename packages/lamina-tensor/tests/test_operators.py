"""Operators on tensors: the generated surface, in-place and ``out=`` forms, dtypes, and every operator's samples."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_fx import Graph, Interpreter
from lamina_prims import operator
from lamina_prims.registry import operators
from lamina_tensor.creator import creating_tensors
from lamina_testing.suites import EagerSuite

SAMPLED = [id for id, op in operators().items() if op.samples is not None]


def map_arrays(value: Any, fn: Any) -> Any:
    if isinstance(value, np.ndarray):
        return fn(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map_arrays(v, fn) for v in value)
    return {k: map_arrays(v, fn) for k, v in value.items()} if isinstance(value, dict) else value


def flat(value: Any) -> list[Any]:
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def as_array(value: Any) -> Any:
    array = value.detach().numpy() if isinstance(value, lt.Tensor) else np.asarray(value)
    return array.astype(np.float32) if array.dtype.num >= 256 else array


def compare(got: Any, want: Any, tolerance: float) -> None:
    if want is not None:
        got, want = as_array(got), as_array(want)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("id", SAMPLED)
def test_eager_and_traced_equal_the_reference(id: str) -> None:
    op = operator(id)
    if op.effect or id.startswith(("empty", "new_empty")):
        pytest.skip("no value to compare")
    if "dynamic" in op.tags:
        pytest.skip("the shape of the result depends on values: it cannot be traced without its size")
    for sample in list(op.samples(np.random.default_rng(0)))[:3]:
        expected = flat(op.run_arrays(sample.args, sample.kwargs))
        with creating_tensors():
            eager = flat(op(*map_arrays(sample.args, lt.from_numpy), **map_arrays(sample.kwargs, lt.from_numpy)))
        graph, inputs = Graph(), []
        with lt.trace(graph) as tracer:

            def put(array: Any, tracer: Any = tracer, graph: Any = graph, inputs: Any = inputs) -> Any:
                inputs.append(lt.from_numpy(array.copy()))
                return tracer.input(graph.placeholder(f"x{len(inputs)}", spec=inputs[-1].spec))

            made = flat(op(*map_arrays(sample.args, put), **map_arrays(sample.kwargs, put)))
            graph.output(tuple(tracer.value(m) if isinstance(m, lt.Tensor) else m for m in made))
        with creating_tensors():
            traced = Interpreter(graph, operator).run(*inputs)
        assert len(eager) == len(traced) == len(expected)
        for a, b, want in zip(eager, traced, expected, strict=True):
            assert want is None or isinstance(a, lt.Tensor) or not isinstance(want, np.ndarray)
            compare(a, want, 1e-5)
            compare(b, want, 1e-4)


def test_functions_and_methods_come_from_the_registry() -> None:
    x = lt.tensor([0.5, 1.5])
    assert lt.exp(x).tolist() == x.exp().tolist()
    assert lt.function("nn.functional.relu")(x - 1).tolist() == [0, 0.5]
    assert "softmax" in lt.namespace_names() and "gelu" in lt.namespace_names("nn.functional")
    with pytest.raises(AttributeError, match="no attribute 'no_such_operator'"):
        _ = lt.no_such_operator


def test_functions_can_be_copied_pickled_and_asked_for_their_parameters() -> None:
    gelu = lt.function("nn.functional.gelu")
    assert copy.deepcopy(gelu) is gelu and pickle.loads(pickle.dumps(gelu)) is gelu
    assert pickle.loads(pickle.dumps(lt.exp)) is lt.exp
    assert list(inspect.signature(gelu).parameters) == ["input", "approximate"]
    assert gelu.__name__ == "gelu" and gelu.__doc__ == operator("gelu").__doc__


def test_operator_of() -> None:
    assert lt.operator_of(lt.exp) == "exp"
    assert lt.operator_of(lt.Tensor.exp) == "exp"
    assert lt.operator_of(lt.ones(1).exp) == "exp"
    assert lt.operator_of(lt.Tensor.__add__) == "add"
    assert lt.operator_of(lt.Tensor.add_) == lt.operator_of(lt.Tensor.__iadd__) == "add_"
    assert lt.operator_of(lt.function("nn.functional.gelu")) == "gelu"
    assert lt.operator_of(lt.zeros) == "zeros"
    assert lt.operator_of(print) is None and lt.operator_of([]) is None


PROMOTION = [
    (lt.float32, lt.float64, lt.float64), (lt.int32, lt.float32, lt.float32), (lt.uint8, lt.int8, lt.int16),
    (lt.float16, lt.bfloat16, lt.float32), (lt.bool, lt.int8, lt.int8), (lt.float64, lt.complex64, lt.complex128),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "expected"), PROMOTION)
def test_promotion(left, right, expected) -> None:
    a, b = lt.ones(2, dtype=left), lt.ones(2, dtype=right)
    assert (a + b).dtype == (b + a).dtype == lt.promote_types(left, right) == expected


def test_numbers_and_0d_tensors_do_not_promote_within_a_kind() -> None:
    half = lt.ones(2, dtype=lt.float16)
    assert (half * 2.5).dtype == (half + lt.tensor(1.0, dtype=lt.float64)).dtype == lt.float16
    assert (lt.ones(2, dtype=lt.int32) * 1.5).dtype == lt.float32
    assert (lt.ones(2, dtype=lt.uint8) + 300).dtype == lt.uint8
    assert (lt.ones(2, dtype=lt.int64) / 2).dtype == lt.float32


def test_in_place_operators_keep_the_tensor() -> None:
    x = lt.tensor([1.0, 4.0])
    same = x
    x += 1
    x *= lt.tensor([2.0, 3.0])
    x -= 1
    x /= 2
    assert x is same and x.tolist() == [1.5, 7.0] and x._version == 4
    x //= 1
    x **= 2
    assert x is same and x.tolist() == [1, 49]
    assert x.clamp_(max=10).masked_fill_(x == 1, -1).sqrt_() is x
    ints = lt.tensor([1, 2])
    ints += 1
    ints.mul_(lt.tensor([2, 3], dtype=lt.int32))
    assert ints.tolist() == [4, 9] and ints.dtype == lt.int64


def test_out() -> None:
    out = lt.empty(2)
    assert lt.add(lt.ones(2), 1, out=out) is out and out.tolist() == [2, 2]
    grown = lt.empty(0)
    assert lt.exp(lt.zeros(3), out=grown).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        lt.exp(lt.ones(2, requires_grad=True), out=out)


def test_named_results() -> None:
    result = lt.tensor([[1.0, 3.0], [5.0, 2.0]]).max(1)
    assert result.values.tolist() == [3, 5] and result.indices.tolist() == [1, 0]
    values, _ = lt.tensor([3.0, 1.0]).sort()
    assert values.tolist() == [1, 3]


def test_comparison_with_what_is_no_tensor() -> None:
    x = lt.ones(2)
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        x + None


def test_modes_see_every_call() -> None:
    from lamina_prims.modes import Mode

    class Log(Mode):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def handle(self, operator, args, kwargs):
            self.seen.append(operator.id)
            return operator(*args, **kwargs)

    x = lt.ones(2)
    with Log() as log:
        x.exp().add_(1)
        x + 1
        x.view(2, 1)
        lt.zeros(2)
    assert log.seen == ["exp", "add", "add", "view", "zeros"]


class TestLayouts(EagerSuite):
    """Results lie in memory as inferred: compiled ones do."""

    def wrap(self, array: Any, requires_grad: bool) -> Any:
        return lt.from_numpy(array).requires_grad_(requires_grad)

    def unwrap(self, tensor: Any) -> Any:
        return tensor.detach().numpy() if isinstance(tensor, lt.Tensor) else tensor

    def strides(self, tensor: Any) -> tuple[int, ...] | None:
        return tensor.stride() if isinstance(tensor, lt.Tensor) else None  # what is made from nothing is an array


@pytest.mark.parametrize("dtype", [lt.float16, lt.float32, lt.float64], ids=str)
def test_a_power_of_less_half_is_one_over_the_root(dtype: Any) -> None:
    found = lt.tensor([-0.0, 0.0, -float("inf"), float("inf"), 4.0], dtype=dtype) ** -0.5
    np.testing.assert_array_equal(found.numpy(), [-np.inf, np.inf, np.nan, 0.0, 0.5])
