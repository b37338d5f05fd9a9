"""A few operators for tests: they infer specs, run on NumPy arrays and have effects."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec, int64


class Op:
    def __init__(self, id, infer, run, effect=None):
        self.id, self._infer, self._run, self.effect = id, infer, run, effect

    def infer(self, args, kwargs):
        return self._infer(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        return self._run(*args, **kwargs)


def _elementwise(*args, **kwargs):
    specs = [a for a in args if isinstance(a, TensorSpec)]
    shape = specs[0].shape
    for spec in specs[1:]:
        if len(spec.shape) != len(shape) or any(a is not b and a != b for a, b in zip(shape, spec.shape, strict=True)):
            raise RuntimeError(f"shapes {shape} and {spec.shape} differ")
    return TensorSpec(shape, specs[0].dtype)


def _reshape(x, shape):
    return TensorSpec(shape, x.dtype)


def _permute(x, dims):
    return TensorSpec([x.shape[d] for d in dims], x.dtype, [x.strides[d] for d in dims])


def _sum(x, dim=None):
    return TensorSpec(() if dim is None else x.shape[:dim] + x.shape[dim + 1 :], x.dtype)


def _sort(x):
    return TensorSpec(x.shape, x.dtype), TensorSpec(x.shape, int64)


def _write(x, value):
    x[...] = value


TABLE = {
    op.id: op
    for op in [
        *[Op(n, _elementwise, f) for n, f in {
            "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "exp": np.exp,
            "abs": np.abs, "maximum": np.maximum, "pow": np.power, "matmul": np.matmul, "eq": np.equal,
        }.items()],
        Op("reshape", _reshape, np.reshape),
        Op("permute", _permute, np.transpose),
        Op("full", lambda shape, value: TensorSpec(shape, int64), np.full),
        Op("sort", _sort, lambda x: (np.sort(x), np.argsort(x))),
        Op("sum", _sum, np.sum),
        Op("index", lambda x, i: TensorSpec(x.shape[1:], x.dtype), lambda x, i: x[i]),
        Op("copy_to", lambda x, value: None, _write, effect="write"),
        Op("print", lambda *a: None, lambda *a: None, effect="print"),
        Op("random", lambda shape: TensorSpec(shape, int64), lambda shape: np.zeros(shape), effect="random"),
    ]
}  # fmt: skip


def resolver(id: str) -> Any:
    if id not in TABLE:
        raise KeyError(f"no operator {id!r}")
    return TABLE[id]


class Methods:
    """A resolver that knows methods, overloads included."""

    names = {
        "sum": ("sum",),
        "__add__": ("add",),
        "__rsub__": ("sub",),
        "__getitem__": ("index",),
        "size": ("sum", "full"),
    }

    def __call__(self, id):
        return resolver(id)

    def method(self, name):
        return tuple(TABLE[n] for n in self.names.get(name, ()))

    def resolve(self, name, args, kwargs):
        assert name == "Tensor.size"
        return TABLE["sum"]
