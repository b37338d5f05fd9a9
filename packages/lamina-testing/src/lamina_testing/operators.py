"""Checks of one operator against its samples: what every operator of the registry must satisfy.

- ``check_meta``: the inferred spec is the reference's shape, dtype and layout;
- ``check_symbolic``: the same with symbolic sizes, and so can be decomposed;
- ``check_decomposition``: strict primitives, run by the interpreter, give the reference's values;
- ``check_gradient``: the derivative agrees with central differences in float64, along random directions;
- ``check_error``: an error sample raises its error while inferring;
- ``check_scatter``: writing through a view is NumPy's in-place write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from lamina_fx import Graph, GraphBuilder, Interpreter, Node, TensorSpec
from lamina_fx.symbolic import ShapeEnv
from lamina_prims import Operator, decompose, operator
from lamina_prims.arrays import array_dtype, spec_of
from lamina_prims.infer import infer_composite
from lamina_prims.samples import ErrorSample, Sample

from .compare import assert_same, flat_results
from .reverse import vjp

__all__ = [
    "check_decomposition", "check_error", "check_gradient", "check_meta", "check_scatter", "check_symbolic",
    "errors_of", "graph_of_call", "in_order", "samples_of", "specs",
]  # fmt: skip


def samples_of(op: Operator, seed: int = 0) -> Iterator[Sample]:
    """The operator's samples, the same for equal seeds."""
    if op.samples is None:
        return iter(())
    return iter(op.samples(np.random.default_rng(seed)))


def errors_of(op: Operator) -> list[ErrorSample]:
    """The operator's error samples."""
    return list(op.errors() if callable(op.errors) else op.errors)


def specs(value: Any) -> Any:
    """Arrays replaced by their specs in nested arguments."""
    if isinstance(value, (list, tuple)):
        return type(value)(specs(v) for v in value)
    if isinstance(value, dict):
        return {k: specs(v) for k, v in value.items()}
    return spec_of(value) if isinstance(value, np.ndarray) else value


def in_order(value: Any, order: Literal["C", "F"]) -> Any:
    """Arrays copied to row-major or column-major memory in nested arguments."""
    if isinstance(value, (list, tuple)):
        return type(value)(in_order(v, order) for v in value)
    if isinstance(value, dict):
        return {k: in_order(v, order) for k, v in value.items()}
    return np.array(value, order=order, copy=True) if isinstance(value, np.ndarray) else value


def check_meta(op: Operator, sample: Sample) -> None:
    """The inferred spec has the shape, dtype and strides of the result on arrays."""
    inferred = op.infer(specs(sample.args), specs(sample.kwargs))
    if not op.is_primitive and op.meta is not None:
        body = infer_composite(op, specs(sample.args), specs(sample.kwargs))
        assert _plain(inferred) == _plain(body), f"{op.id}: the meta says {inferred}, the body {body}"
    result = op(*sample.args, **sample.kwargs)
    _compare_specs(inferred, result, op.id)


def _plain(spec: Any) -> Any:
    return tuple(_plain(s) for s in spec) if isinstance(spec, (tuple, list)) else spec


def _compare_specs(inferred: Any, result: Any, where: str) -> None:
    if isinstance(result, (tuple, list)):
        assert isinstance(inferred, (tuple, list)), f"{where}: {inferred} for {len(result)} results"
        assert len(inferred) == len(result), f"{where}: {len(inferred)} specs for {len(result)} results"
        for k, (a, b) in enumerate(zip(inferred, result, strict=True)):
            _compare_specs(a, b, f"{where}[{k}]")
    elif isinstance(inferred, TensorSpec):
        assert tuple(inferred.shape) == result.shape, f"{where}: inferred {inferred}, got shape {result.shape}"
        have = array_dtype(result.dtype)
        assert inferred.dtype is have, f"{where}: inferred {inferred.dtype}, got {have}"
        if result.size:  # a compiled graph gives its outputs the inferred layout: eager must agree
            layout = [
                (want, got)
                for size, want, got in zip(result.shape, inferred.strides, spec_of(result).strides, strict=True)
                if size != 1
            ]
            assert all(want == got for want, got in layout), f"{where}: inferred {inferred}, got {spec_of(result)}"


def check_symbolic(op: Operator, sample: Sample) -> Graph:
    """Inferred from symbolic sizes, the result's sizes come to those of the arrays.

    Returns the graph decomposed to strict primitives with these sizes.
    """
    env = ShapeEnv()

    def sizes(array: Any) -> TensorSpec:
        shape = tuple(env.create_symbol(n, f"size {n}") if n > 1 else n for n in array.shape)
        return TensorSpec(shape, array_dtype(array.dtype))

    graph, _ = graph_of_call(op, sample.args, sample.kwargs, sizes)
    result = op(*sample.args, **sample.kwargs)
    _compare_sizes(env, graph.output_node.args[0], result, op.id)
    return decompose(graph, level="prims")


def _compare_sizes(env: ShapeEnv, node: Any, result: Any, where: str) -> None:
    if isinstance(result, (tuple, list)):
        for k, (a, b) in enumerate(zip(node, result, strict=True)):
            _compare_sizes(env, a, b, f"{where}[{k}]")
    elif isinstance(node, Node):
        assert isinstance(node.spec, TensorSpec), f"{where}: nothing is known of the result"
        shape = tuple(n if type(n) is int else env.hint(n) for n in node.spec.shape)
        assert shape == result.shape, f"{where}: {node.spec} comes to {shape}, but the arrays give {result.shape}"


def graph_of_call(
    op: Operator, args: Any, kwargs: Any, spec: Callable[[Any], TensorSpec] = spec_of
) -> tuple[Graph, list[Any]]:
    """A graph that calls ``op`` once, with a placeholder for each array among the arguments; and those arrays."""
    graph = Graph()
    builder = GraphBuilder(graph)
    inputs: list[Any] = []

    def lift(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(lift(v) for v in value)
        if isinstance(value, dict):
            return {k: lift(v) for k, v in value.items()}
        if isinstance(value, np.ndarray):
            inputs.append(value)
            return builder.proxy(graph.placeholder(f"x{len(inputs)}", spec=spec(value)))
        return value

    result = builder.call(op, lift(args), lift(kwargs))
    graph.output(_nodes(result))
    return graph, inputs


def _nodes(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_nodes(v) for v in value)
    return value.node if hasattr(value, "node") else value


def check_decomposition(op: Operator, sample: Sample) -> Graph:
    """Decomposed to strict primitives, the call gives the same values. Returns the decomposed graph."""
    expected = op(*sample.args, **sample.kwargs)
    graph, inputs = graph_of_call(op, sample.args, sample.kwargs)
    lowered = decompose(graph, level="prims")
    for node in lowered.nodes:
        if node.op == "call_function" and node.target != "getitem":
            assert operator(node.target).is_primitive, f"{op.id}: {node.target} is left, which is no primitive"
            _strict(node)
    result = Interpreter(lowered, operator).run(*inputs)
    assert_same(result, expected, op.id)
    return lowered


def _strict(node: Node) -> None:
    rule = operator(node.target).elementwise
    if rule is None:
        return
    args = tuple(a.spec if isinstance(a, Node) else a for a in node.args)
    assert not node.kwargs and rule.is_strict(args), f"{node.target} is not strict: {args}"


def check_gradient(op: Operator, sample: Sample, seed: int = 0, step: float = 1e-6) -> bool:
    """The derivative against central differences. False when there is nothing to check."""
    if not sample.gradient:
        return False
    args, kwargs = _double(sample.args), _double(sample.kwargs)
    graph, inputs = graph_of_call(op, args, kwargs)
    fixed = {
        id(a)
        for p, a in zip(op.schema.parameters, op.schema.bind(args, kwargs), strict=True)
        if f"fixed:{p.name}" in op.tags
    }
    moving = [k for k, x in enumerate(inputs) if x.dtype.kind in "fc" and x.size and id(x) not in fixed]
    if not moving or not all(np.isfinite(inputs[k]).all() for k in moving):
        return False
    rng = np.random.default_rng(seed)
    results = [r for r in flat_results(op(*args, **kwargs)) if r.dtype.kind in "fc"]
    if any(
        r.dtype not in (np.float64, np.complex128) for r in results
    ):  # rounded on the way: differences would show that
        return False
    if not results or not all(np.isfinite(r).all() for r in results):
        return False
    weights = [_noise(rng, r) for r in results]
    core = decompose(graph, level="core")
    _, gradients = vjp(core, inputs, lambda result: _weigh(result, weights))
    # without a single gradient the operator is constant as far as its rules say: then the differences must be 0 too
    directions = [_direction(rng, x, sample.symmetric) if k in moving else None for k, x in enumerate(inputs)]

    def loss(scale: float) -> float:
        moved = [x if d is None else x + scale * d for x, d in zip(inputs, directions, strict=True)]
        out = [r for r in flat_results(Interpreter(graph, operator).run(*moved)) if r.dtype.kind in "fc"]
        return sum(_inner(w, r) for w, r in zip(weights, out, strict=True))

    expected = (loss(step) - loss(-step)) / (2 * step)
    pairs = zip(gradients, directions, strict=True)
    got = sum(_inner(g, d) for g, d in pairs if g is not None and d is not None)
    scale = max(1.0, abs(expected), sum(float(np.abs(w).sum()) for w in weights) * 0.1)
    assert abs(got - expected) <= 1e-5 * scale, f"{op.id}: derivative {got}, central difference {expected}"
    return True


def _double(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_double(v) for v in value)
    if isinstance(value, dict):
        return {k: _double(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        kind = array_dtype(value.dtype).kind
        return (
            value.astype({"float": np.float64, "complex": np.complex128}[kind])
            if kind in ("float", "complex")
            else value
        )
    return value


def _noise(rng: np.random.Generator, like: Any) -> Any:
    value = rng.standard_normal(like.shape)
    return value + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else value


def _direction(rng: np.random.Generator, x: Any, symmetric: bool) -> Any:
    value = _noise(rng, x)
    return (value + np.swapaxes(value, -1, -2).conj()) / 2 if symmetric and x.ndim >= 2 else value


def _inner(a: Any, b: Any) -> float:
    return float(np.real(np.vdot(a, b)))


def _weigh(result: Any, weights: list[Any]) -> Any:
    left = iter(weights)

    def walk(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [walk(v) for v in value]
        return next(left) if value.dtype.kind in "fc" else None

    return walk(result)


def check_error(op: Operator, sample: ErrorSample) -> None:
    """The call raises the error with its message: while inferring, or on arrays where their values are to blame."""
    try:
        op.infer(specs(sample.args), specs(sample.kwargs))
        op(*sample.args, **sample.kwargs)
    except sample.error as raised:
        assert re.search(sample.match, str(raised)), f"{op.id}: {sample.match!r} is not in the message {str(raised)!r}"
        return
    raise AssertionError(f"{op.id} did not raise {sample.error.__name__} ({sample.match})")


def check_scatter(op: Operator, sample: Sample) -> bool:
    """``scatter_rule`` does what NumPy does when the view is written in place. False when it is no view in NumPy."""
    if op.scatter_rule is None or not isinstance(sample.args[0], np.ndarray):
        return False
    base = np.arange(sample.args[0].size).reshape(sample.args[0].shape).astype(sample.args[0].dtype)
    rest, kwargs = sample.args[1:], sample.kwargs
    view = op(base, *rest, **kwargs)
    if not isinstance(view, np.ndarray) or not np.shares_memory(view, base) or _overlaps(view):
        return False
    value = (np.arange(view.size).reshape(view.shape) + 100).astype(view.dtype)
    changed = op.scatter_rule(base.copy(), value, *rest, **kwargs)
    if view.flags.writeable:
        view[...] = value
    else:  # each element of base is its own number, so the view says which elements it shows
        base.reshape(-1)[view.astype(np.int64).reshape(-1)] = value.reshape(-1)
    np.testing.assert_array_equal(changed, base, err_msg=op.id)
    return True


def _overlaps(view: Any) -> bool:
    return any(s == 0 and n > 1 for s, n in zip(view.strides, view.shape, strict=True))
