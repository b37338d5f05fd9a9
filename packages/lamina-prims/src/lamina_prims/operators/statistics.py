"""Means, variances and soft maxima: composites with derivatives of their own."""

from __future__ import annotations

from typing import Any

from lamina_fx import DType, float32

from ..arrays import element_type
from ..dims import canonical_dim, canonical_dims, numel
from ..registry import both, composite, ops
from ..samples import call, calls, error, reduction, tensor
from ..types import Scalar, Shape, Tensor
from .reductions import keep_dims, reduced_shape, spread

__all__ = ["log_softmax", "logsumexp", "mean", "softmax", "std", "var"]


def _wide(input: Any) -> tuple[Any, DType]:
    """float16 and bfloat16 as float32 (in which they are accumulated), and the dtype to come back to."""
    dtype = element_type(input)
    return (
        (ops.convert_element_type(input, float32), dtype)
        if dtype.kind == "float" and dtype.itemsize == 2
        else (input, dtype)
    )


def _narrow(value: Any, dtype: DType) -> Any:
    return value if element_type(value) is dtype else ops.convert_element_type(value, dtype)


def _count(shape: Any, dims: tuple[int, ...]) -> Any:
    return numel([shape[d] for d in dims])


@composite(
    names=both("mean"),
    samples=reduction(),
    errors=[
        error(RuntimeError, "floating point or complex", tensor(3, dtype="int64")),
        error(IndexError, "out of range", tensor(3), 2),
    ],
)
def mean(input: Tensor, dim: int | Shape | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The arithmetic mean over ``dim`` (all dimensions when None)."""
    if dtype is not None:
        input = ops.convert_element_type(input, dtype)
    if element_type(input).kind in ("bool", "int"):
        raise RuntimeError(
            f"mean: the input dtype must be either a floating point or complex dtype, "
            f"got {element_type(input)}; give dtype="
        )
    wide, target = _wide(input)
    dims = canonical_dims("mean", dim, len(input.shape))
    return _narrow(ops.div(ops.sum(wide, dims or (), keepdim), _number(_count(input.shape, dims))), target)


def _number(count: Any) -> Any:
    """A count as a float where it is known."""
    return float(count) if type(count) is int else count


@mean.vjp
def _(ct, input_spec, dim):
    shape = input_spec.shape
    dims = canonical_dims("mean", dim, len(shape))
    return (spread(ops.div(ct, _number(_count(shape, dims))), shape, dims),)


@composite(
    names=both("nanmean"), samples=calls(call(tensor(12, kind="special"), gradient=False), call(tensor(2, 3), 1))
)
def nanmean(
    input: Tensor, dim: int | Shape | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean over ``dim`` of the elements that are not nan."""
    known = ops.sum(ops.logical_not(ops.isnan(input)), dim, keepdim)
    return ops.div(ops.nansum(input, dim, keepdim, dtype=dtype), known)


def _squares(input: Any, dims: tuple[int, ...], correction: Any) -> tuple[Any, Any]:
    """(variance, mean), both with the reduced dimensions kept: two passes, so that large means do no harm."""
    average = ops.mean(input, dims, True)
    centred = ops.sub(input, average)
    squares = ops.mul(centred, centred) if element_type(input).kind == "float" else ops.square(ops.abs(centred))
    count = _count(input.shape, dims)
    left = count - correction
    if type(left) in (int, float) and left < 0:
        left = 0
    return ops.div(ops.sum(squares, dims, True), _number(left)), average


def _variance(name: str, input: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    if element_type(input).kind not in ("float", "complex"):
        raise RuntimeError(f"{name}: only floating point and complex dtypes, got {element_type(input)}")
    wide, target = _wide(input)
    dims = canonical_dims(name, dim, len(input.shape))
    results = _squares(wide, dims, correction)
    if not keepdim:
        shape = reduced_shape(input.shape, dims, False)
        results = tuple(ops.reshape(r, shape) for r in results)
    return _narrow(results[0], target), _narrow(results[1], target)


_VARIANCE = {
    "samples": calls(
        call(tensor(2, 3)), call(tensor(2, 3, 4), (0, 2), correction=0), call(tensor(2, 3), 1, keepdim=True),
        call(tensor(2, 3, dtype="bfloat16"), 1, gradient=False),
        call(tensor(4, 3, kind="transposed"), -1, correction=2),
    ),
    "errors": [error(RuntimeError, "floating point", tensor(3, dtype="int64"))],
}  # fmt: skip


@composite(names=both("var"), **_VARIANCE)
def var(input: Tensor, dim: int | Shape | None = None, *, correction: Scalar = 1, keepdim: bool = False) -> Tensor:
    """The variance over ``dim``: the sum of squared distances from the mean by (count - correction)."""
    return _variance("var", input, dim, correction, keepdim)[0]


@var.vjp
def _(ct, input, dim, correction):
    shape = tuple(input.shape)
    dims = canonical_dims("var", dim, len(shape))
    factor = 2 / (_count(shape, dims) - correction) if _count(shape, dims) != correction else float("nan")
    centred = ops.sub(input, ops.mean(input, dims, True))
    return (ops.mul(ops.mul(keep_dims(ct, shape, dims), factor), centred),)


@composite(names=both("std"), **_VARIANCE)
def std(input: Tensor, dim: int | Shape | None = None, *, correction: Scalar = 1, keepdim: bool = False) -> Tensor:
    """The standard deviation over ``dim``: the square root of the variance."""
    return ops.sqrt(ops.var(input, dim, correction=correction, keepdim=keepdim))


def _spread_pair(name: str, of: Any) -> None:
    """var and std in PyTorch's older spelling, with ``unbiased``."""

    def unbiased_form(
        input: Tensor, dim: int | Shape | None = None, unbiased: bool = True, keepdim: bool = False
    ) -> Tensor:
        return of(input, dim, correction=int(unbiased), keepdim=keepdim)

    def whole_form(input: Tensor, unbiased: bool) -> Tensor:
        return of(input, None, correction=int(unbiased))

    def with_mean(
        input: Tensor, dim: int | Shape | None = None, *, correction: Scalar = 1, keepdim: bool = False
    ) -> tuple[Tensor, Tensor]:
        return of(input, dim, correction=correction, keepdim=keepdim), ops.mean(input, dim, keepdim)

    whole_form.__doc__ = f"``{name}`` of all elements; ``unbiased`` is correction=1."
    unbiased_form.__doc__ = f"``{name}`` with ``unbiased`` for correction=1."
    with_mean.__doc__ = f"({name}, mean) over ``dim``."
    composite(id=f"{name}.whole", names=both(name), samples=calls(call(tensor(2, 3), False)))(whole_form)
    composite(id=f"{name}.unbiased", names=both(name), samples=calls(call(tensor(2, 3), 1, unbiased=False)))(
        unbiased_form
    )
    composite(id=f"{name}_mean", names=(f"{name}_mean",), samples=calls(call(tensor(2, 3), 1)))(with_mean)


_spread_pair("var", var)
_spread_pair("std", std)


# -- soft maxima -----------------------------------------------------------------------------------------


def _shifted(input: Any, dims: tuple[int, ...]) -> tuple[Any, Any]:
    """(input - max, max) with the max kept; a max of -inf counts as 0, so that the difference is no nan."""
    top = ops.amax(input, dims, True)
    return ops.sub(input, top), top


def _prepared(name: str, input: Any, dim: Any, dtype: Any) -> tuple[Any, int, DType]:
    if dtype is not None and element_type(input) is not dtype:
        input = ops.convert_element_type(input, dtype)
    if element_type(input).kind != "float":
        raise RuntimeError(
            f"{name} is not defined for {element_type(input)}; convert it to a floating-point dtype (dtype=)"
        )
    wide, target = _wide(input)
    return wide, canonical_dim(name, dim, len(input.shape)), target


_SOFT = {
    "samples": calls(
        call(tensor(2, 3), -1), call(tensor(2, 3, 4), 1), call(tensor(5, low=-90.0, high=90.0), 0), call(tensor(), 0),
        call(tensor(2, 3, dtype="bfloat16"), 1, gradient=False),
        call(tensor(3, 4, kind="transposed"), 0), call(tensor(2, 0), 1, gradient=False),
    ),
    "errors": [
        error(IndexError, "out of range", tensor(2, 3), 2),
        error(RuntimeError, "not defined for int64", tensor(2, dtype="int64"), 0),
    ],
}  # fmt: skip


def _is_empty(input: Any) -> bool:
    return any(type(s) is int and s == 0 for s in input.shape)


@composite(names=(*both("softmax"), "special.softmax", "nn.functional.softmax"), **_SOFT)
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """exp(input) divided by its sum along ``dim``, computed from the distance to the largest element."""
    wide, place, target = _prepared("softmax", input, dim, dtype)
    if _is_empty(input) or not len(input.shape):
        return _narrow(ops.exp(ops.sub(wide, wide)), target)
    power = ops.exp(_shifted(wide, (place,))[0])
    return _narrow(ops.div(power, ops.sum(power, (place,), True)), target)


@softmax.vjp
def _(ct, out, dim):
    if not len(out.shape):
        return (ops.mul(ct, 0.0),)
    wide, _ = _wide(ops.mul(ct, out))
    total = _narrow(ops.sum(wide, dim, True), element_type(out))
    return (ops.mul(out, ops.sub(ct, total)),)


@composite(names=(*both("log_softmax"), "special.log_softmax", "nn.functional.log_softmax"), **_SOFT)
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """log(softmax(input)), exact also where the softmax is tiny."""
    wide, place, target = _prepared("log_softmax", input, dim, dtype)
    if _is_empty(input) or not len(input.shape):
        return _narrow(ops.sub(wide, wide), target)
    shifted, _ = _shifted(wide, (place,))
    return _narrow(ops.sub(shifted, ops.log(ops.sum(ops.exp(shifted), (place,), True))), target)


@log_softmax.vjp
def _(ct, out, dim):
    if not len(out.shape):
        return (ops.mul(ct, 0.0),)
    wide, _ = _wide(ct)
    total = _narrow(ops.sum(wide, dim, True), element_type(out))
    return (ops.sub(ct, ops.mul(ops.exp(out), total)),)


@composite(
    names=(*both("logsumexp"), "special.logsumexp"),
    samples=calls(call(tensor(2, 3), 1), call(tensor(2, 3, 4), (0, 2), True), call(tensor(5, low=-90.0, high=90.0), 0)),
)
def logsumexp(input: Tensor, dim: int | Shape, keepdim: bool = False) -> Tensor:
    """log(sum(exp(input))) over ``dim`` without overflow."""
    if element_type(input).kind != "float":
        input = ops.convert_element_type(input, float32)
    wide, target = _wide(input)
    dims = canonical_dims("logsumexp", dim, len(input.shape))
    if not dims or _is_empty(input):
        return _narrow(ops.log(ops.sum(ops.exp(wide), dims, keepdim)), target)
    top = ops.amax(wide, dims, True)
    top = ops.where(ops.lt(ops.abs(top), float("inf")), top, 0.0)
    value = ops.add(ops.log(ops.sum(ops.exp(ops.sub(wide, top)), dims, True)), top)
    return _narrow(value if keepdim else ops.reshape(value, reduced_shape(input.shape, dims, False)), target)


@logsumexp.vjp
def _(ct, out, input, dim):
    shape = tuple(input.shape)
    dims = canonical_dims("logsumexp", dim, len(shape))
    return (ops.mul(keep_dims(ct, shape, dims), ops.exp(ops.sub(input, keep_dims(out, shape, dims)))),)
