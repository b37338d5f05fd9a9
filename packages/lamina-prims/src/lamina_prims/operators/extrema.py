"""argmax and argmin, and what front ends call max and min."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import TensorSpec, int64

from ..arrays import array_dtype, array_namespace, plain_float
from ..dims import canonical_dim, numel
from ..ordering import ordered
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, reduction, tensor
from ..types import Tensor
from .reductions import reduced_shape

__all__: list[str] = []


# -- positions -------------------------------------------------------------------------------------------


def _place(name: str) -> dict[str, Any]:
    def meta(input: Any, dim: int | None = None, keepdim: bool = False) -> TensorSpec:
        ordered(name, input.dtype)
        ndim = len(input.shape)
        dims = tuple(range(ndim)) if dim is None else (canonical_dim(name, dim, ndim),) if ndim else ()
        if any(type(input.shape[d]) is int and input.shape[d] == 0 for d in dims):
            raise IndexError(f"{name}: expected the reduced dimensions of {list(input.shape)} to have non-zero size")
        return TensorSpec(reduced_shape(input.shape, dims, keepdim), int64, None, input.device)

    def run(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        xp = array_namespace(input)
        shape = meta(TensorSpec(input.shape, array_dtype(input.dtype)), dim, keepdim).shape
        wide = plain_float(input)
        flat = wide.reshape(-1) if dim is None or not input.ndim else wide
        axis = 0 if dim is None or not input.ndim else canonical_dim(name, dim, input.ndim)
        return xp.asarray(getattr(xp, name)(flat, axis=axis), dtype=np.int64).reshape(shape)

    samples = reduction(kind="distinct", empty=False, dims=(None, 0, -1), dtypes=("float32", "int64"))
    return {
        "meta": meta,
        "reference": run,
        "samples": samples,
        "errors": [
            error(IndexError, "out of range", tensor(2), 2),
            error(RuntimeError, "have no order", tensor(3, dtype="complex64")),
        ],
    }


@primitive(names=both("argmax"), **_place("argmax"))
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands: the first of equals; nan counts as the largest. None: in the flat tensor."""
    ...


@primitive(names=both("argmin"), **_place("argmin"))
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands: the first of equals; nan counts as the smallest. None: in the flat tensor."""
    ...


argmax.vjp(lambda: (None,))
argmin.vjp(lambda: (None,))


def _strict_place(op: Any, input: Any, dim: int | None, keepdim: bool) -> Any:
    ndim = len(input.shape)
    if dim is None or ndim == 0:
        value = op(ops.reshape(input, (numel(input.shape),)), 0)
        return ops.reshape(value, (1,) * ndim) if keepdim and ndim else value
    place = canonical_dim(op.id, dim, ndim)
    if place == dim and not keepdim:
        return NotImplemented
    value = op(input, place)
    return ops.reshape(value, reduced_shape(input.shape, (place,), True)) if keepdim else value


@argmax.normalize
def _(input, dim=None, keepdim=False):
    return _strict_place(ops.argmax, input, dim, keepdim)


@argmin.normalize
def _(input, dim=None, keepdim=False):
    return _strict_place(ops.argmin, input, dim, keepdim)


# -- max and min as front ends have them -----------------------------------------------------------------


def _extremum(name: str, amax: str, argmax: str, pairwise: str) -> None:
    def whole(input: Tensor) -> Tensor:
        if any(type(s) is int and s == 0 for s in input.shape):
            raise RuntimeError(f"{name}: an empty tensor has no {name}imum; give a dim that is not empty")
        return getattr(ops, amax)(input)

    whole.__doc__ = f"The {name}imum of all elements; nan when there is one."
    composite(id=name, names=both(name), samples=calls(call(tensor(2, 3, kind="distinct")), call(tensor())))(whole)

    def along(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        place = getattr(ops, argmax)(input, dim, True)
        values = ops.gather(input, dim, place) if len(input.shape) else ops.reshape(input, ())
        if not keepdim and len(input.shape):
            place, values = ops.squeeze(place, dim), ops.squeeze(values, dim)
        return values, place

    def along_meta(input: Any, dim: int, keepdim: bool = False) -> tuple[TensorSpec, TensorSpec]:
        places = getattr(ops, argmax).infer((input, dim, keepdim), {})
        return places.replace(dtype=input.dtype), places

    def along_reference(input: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
        place = getattr(ops, argmax).reference(input, dim, True)
        values = array_namespace(input).take_along_axis(input, place, dim) if input.ndim else input.copy()
        if keepdim or not input.ndim:
            return values, place
        return values.squeeze(dim), place.squeeze(dim)

    along.__doc__ = f"(values, indices) of the {name}imum along ``dim``: the first of equals; nan wins."
    declared = composite(
        id=f"{name}.dim",
        names=both(name),
        meta=along_meta,
        reference=along_reference,
        result_names=("values", "indices"),
        samples=calls(
            call(tensor(2, 3, kind="distinct"), 1),
            call(tensor(2, 3, kind="distinct"), dim=0, keepdim=True),
            call(tensor(4, 3, kind="transposed"), -2),
            call(tensor(), 0),
        ),
        errors=[error(IndexError, "out of range", tensor(2), 2)],
    )(along)
    declared.vjp(_back_along)

    def other(input: Tensor, other: Tensor) -> Tensor:
        return getattr(ops, pairwise)(input, other)

    other.__doc__ = f"The {name}imum of two tensors, elementwise."
    composite(id=f"{name}.other", names=both(name), samples=calls(call(tensor(2, 3), tensor(3))))(other)


def _back_along(ct: Any, out: Any, input_spec: Any, dim: int, keepdim: bool) -> tuple[Any]:
    """The cotangent of the values, at the places they came from."""
    value, place = ct[0], out[1]
    if value is None:
        return (None,)
    if not input_spec.shape:
        return (ops.reshape(value, ()),)
    if not keepdim:
        value, place = ops.unsqueeze(value, dim), ops.unsqueeze(place, dim)
    zeros = ops.zeros(input_spec.shape, dtype=value.dtype, device=value.device)
    return (ops.scatter(zeros, dim, place, value),)


_extremum("max", "amax", "argmax", "maximum")
_extremum("min", "amin", "argmin", "minimum")


@composite(
    names=both("aminmax"),
    result_names=("min", "max"),
    samples=calls(call(tensor(2, 3, kind="distinct")), call(tensor(2, 3, kind="distinct"), dim=1)),
)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(smallest, largest) element over ``dim`` (all when None)."""
    return ops.amin(input, dim, keepdim), ops.amax(input, dim, keepdim)
