"""How a call finds what does it: modes, handlers, specs, the creator, arrays; overloads; keyword arguments."""

from __future__ import annotations

import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest

import lamina_prims as prims
from lamina_fx import Graph, GraphBuilder, TensorSpec, float32, int64
from lamina_prims import MODES, Mode, creating, ops
from lamina_prims.registry import by_name, composite, method, operator, register, resolve

X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
SPEC = TensorSpec((2, 2), float32)


def test_arrays_run_the_reference() -> None:
    np.testing.assert_array_equal(ops.add(X, 1), X + 1)
    np.testing.assert_array_equal(ops.add(other=X, input=X), X + X)


def test_specs_infer() -> None:
    assert ops.add(SPEC, 1) == SPEC
    assert ops.matmul(SPEC, TensorSpec((2, 5), float32)) == TensorSpec((2, 5), float32)
    assert ops.max(SPEC) == TensorSpec((), float32)


def test_a_proxy_writes_a_node() -> None:
    builder = GraphBuilder(Graph(), resolver=operator)
    x = builder.input("x", SPEC)
    y = ops.softmax(x, dim=-1) + 1
    assert [n.target for n in builder.graph.nodes] == ["x", "softmax", "add"]
    assert y.spec == SPEC
    assert x.sum((0,)).spec == TensorSpec((2,), float32)


class Tagged:
    __lamina_priority__ = 5

    def __init__(self, name: str) -> None:
        self.name = name

    def __lamina_operator__(self, op: Any, args: Any, kwargs: Any) -> str:
        return f"{self.name}:{op.id}"


class Higher(Tagged):
    __lamina_priority__ = 9


def test_the_highest_priority_handles_also_inside_lists() -> None:
    assert ops.add(Tagged("a"), X) == "a:add"
    assert ops.cat([X, Tagged("a"), Higher("b")]) == "b:cat"
    assert ops.where(X > 0, input=X, other=Tagged("k")) == "k:where"


def test_modes_see_calls_first_innermost_first() -> None:
    seen: list[str] = []

    class Note(Mode):
        def __init__(self, name: str) -> None:
            self.name = name

        def handle(self, op: Any, args: Any, kwargs: Any) -> Any:
            seen.append(f"{self.name}:{op.id}")
            return op(*args, **kwargs)

    with Note("outer"), Note("inner"):
        ops.neg(X)
    ops.neg(X)
    assert seen == ["inner:neg", "outer:neg"]
    assert not MODES.stack


def test_the_creator_makes_tensors_from_nothing_but_not_from_arrays() -> None:
    made: list[str] = []

    def create(op: Any, args: Any, kwargs: Any) -> str:
        made.append(op.id)
        return "made"

    with creating(create):
        assert ops.full((2,), 1.0) == "made"
        assert isinstance(ops.tril(X), np.ndarray), "the body of a composite on arrays makes arrays"
    assert made == ["full"]
    assert isinstance(ops.full((2,), 1.0), np.ndarray)


def test_separate_arguments_are_gathered() -> None:
    assert ops.reshape(X, 4).shape == ops.reshape(X, (4,)).shape == (4,)
    assert ops.permute(X, 1, 0).shape == (2, 2)
    assert ops.zeros(2, 3).shape == (2, 3)
    assert ops.expand(SPEC, 3, -1, -1) == TensorSpec((3, 2, 2), float32, (0, 2, 1))


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "want"),
    [
        ("max", (X,), {}, "max"),
        ("max", (X, 1), {}, "max.dim"),
        ("max", (X,), {"dim": 0, "keepdim": True}, "max.dim"),
        ("max", (X, X), {}, "max.other"),
        ("add", (X, 1), {}, "add"),
        ("add", (X, 1), {"alpha": 2}, "add.alpha"),
        ("arange", (3,), {}, "arange"),
        ("arange", (1, 3), {}, "arange.start"),
        ("arange", (), {"start": 1, "end": 3}, "arange.start"),
        ("Tensor.to", (X, int64), {}, "to.dtype"),
        ("Tensor.to", (X, "cpu"), {}, "to.device"),
        ("Tensor.to", (X, X), {}, "to.other"),
        ("div", (X, 2), {"rounding_mode": "floor"}, "div.rounding"),
        ("var", (X, 1), {}, "var"),
        ("var", (X, 1), {"unbiased": False}, "var.unbiased"),
        ("var", (X, False), {}, "var.whole"),
        ("Tensor.view", (X, 2, 2), {}, "view"),
        ("Tensor.view", (X, int64), {}, "bitcast"),
        ("scatter", (X, 0, X, 1.0), {}, "scatter.value"),
        ("scatter", (X, 0, X, X), {}, "scatter"),
        ("nonzero", (X,), {"as_tuple": True}, "nonzero.tuple"),
    ],
)
def test_overloads(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], want: str) -> None:
    assert resolve(name, args, kwargs).id == want


def test_no_overload_fits() -> None:
    with pytest.raises(TypeError, match=r"max\(Tensor, str\) fits none of: max\(input: Tensor\)"):
        resolve("max", (X, "a"), {})
    with pytest.raises(KeyError, match="no operator is called 'nothing_like_it'"):
        resolve("nothing_like_it", (), {})


def test_names() -> None:
    assert [o.id for o in by_name("max")] == ["max", "max.dim", "max.other"]
    assert method("__radd__")[0] is ops.add
    assert by_name("no such name") == () == method("no_such_method")
    assert prims.names()["nn.functional.softmax"][0] is ops.softmax


def test_unknown_operators_name_the_nearest() -> None:
    with pytest.raises(KeyError, match=r"no operator 'sofmax' \(softmax"):
        operator("sofmax")
    with pytest.raises(AttributeError, match="no operator 'sofmax'"):
        _ = ops.sofmax


def test_an_id_is_taken_once() -> None:
    with pytest.raises(ValueError, match="id 'add' exists already"):
        register(operator("add"))


def test_operators_pickle_by_id() -> None:
    assert pickle.loads(pickle.dumps(ops.add)) is ops.add


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.sum.schema.bind((), {}), r"sum\(\) misses the argument 'input': sum\(input: Tensor"),
        (lambda: ops.sum.schema.bind((X, 0, True, 3), {}), r"sum\(\) takes 3 positional arguments, got 4"),
        (lambda: ops.sum.schema.bind((X,), {"axes": 0}), r"sum\(\) has no parameter 'axes'"),
        (lambda: ops.sum.schema.bind((X,), {"input": X}), r"sum\(\) got 'input' twice"),
    ],
)
def test_binding_errors_show_the_schema(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_results_have_names() -> None:
    assert by_name("max")[1].result_names == ("values", "indices")


def test_in_place_forms() -> None:
    assert ops.add.in_place and ops.clamp.in_place and ops.masked_fill.in_place
    assert not ops.sum.in_place and not ops.where.in_place and not ops.matmul.in_place


def test_a_composite_gets_meta_and_reference_from_its_body() -> None:
    from lamina_prims import registry

    @composite(id="test_only_double_sum")
    def double_sum(input: Any) -> Any:
        """Twice the sum, plus a ramp that is made from nothing."""
        return ops.add(ops.mul(ops.sum(input), 2), ops.iota(3))

    try:
        np.testing.assert_array_equal(double_sum(X), [12, 13, 14])
        assert double_sum.infer((SPEC,), {}) == TensorSpec((3,), float32)
    finally:
        del registry._OPERATORS["test_only_double_sum"]


def test_code_that_interrupts_a_thread_finds_its_modes_whole() -> None:
    """Whatever runs between two instructions (here a tracer) may call operators, also in a thread that never did."""
    errors: list[Exception] = []

    def interrupt(*event: object) -> object:
        sys.settrace(None)
        try:
            ops.add(np.ones(2), 1.0)
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)
        sys.settrace(interrupt)
        return interrupt

    def work() -> None:
        sys.settrace(interrupt)
        with creating(None):
            pass
        assert not MODES.stack
        sys.settrace(None)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors
