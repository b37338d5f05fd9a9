"""Comparisons, logic, bits and tests of one element."""

from __future__ import annotations

from typing import Any

from lamina_fx import bool_

from ..arrays import element_type
from ..dims import same_sizes
from ..elementwise import Elementwise
from ..registry import both, composite, ops, primitive
from ..samples import binary, call, calls, error, tensor, unary
from ..types import Scalar, Tensor

__all__ = ["bitwise_and", "bitwise_not", "eq", "ge", "gt", "le", "lt", "ne", "true_like"]


def _compare(id: str, reference: str, words: str, kinds: str, *aliases: str, dunder: str) -> Any:
    def compare(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor: ...

    compare.__name__ = id
    compare.__doc__ = f"Is input {words} other, elementwise; nan compares false (true for ne)."
    declared = primitive(
        names=(*both(id, *aliases), f"Tensor.{dunder}"),
        meta=Elementwise(id, "bool", kinds, rounds=True),
        reference=reference,
        samples=binary(),
        errors=[error(RuntimeError, "do not broadcast", tensor(2, 3), tensor(2, 4))],
    )(compare)
    declared.vjp(lambda: (None, None))
    return declared


_ALL, _ORDERED = "bool int float complex", "bool int float"
eq = _compare("eq", "equal", "equal to", _ALL, dunder="__eq__")
ne = _compare("ne", "not_equal", "different from", _ALL, "not_equal", dunder="__ne__")
lt = _compare("lt", "less", "less than", _ORDERED, "less", dunder="__lt__")
le = _compare("le", "less_equal", "at most", _ORDERED, "less_equal", dunder="__le__")
gt = _compare("gt", "greater", "greater than", _ORDERED, "greater", dunder="__gt__")
ge = _compare("ge", "greater_equal", "at least", _ORDERED, "greater_equal", dunder="__ge__")


# -- bits ------------------------------------------------------------------------------------------------


def _bits(id: str, reference: Any, words: str, kinds: str, dunder: str, reflected: str) -> Any:
    def combine(input: Tensor | Scalar, other: Tensor | Scalar) -> Tensor: ...

    combine.__name__ = id
    combine.__doc__ = f"{words} of integers{' and bools' if 'bool' in kinds else ''}, elementwise."
    shift = "shift" in id
    declared = primitive(
        names=(*both(id), f"Tensor.{dunder}"),
        meta=Elementwise(id, allowed=kinds),
        reference=reference,
        samples=binary(0, 6, dtypes=("int64", "int32", "uint8"), mixed=(("int32", "int64"),), scalars=(2,)),
        errors=[error(RuntimeError, "not defined for float32", tensor(2), tensor(2))],
    )(combine)
    declared.vjp(lambda: (None, None))

    def swapped(input: Tensor, other: Tensor | Scalar) -> Tensor:
        return declared(other, input)

    swapped.__name__ = f"r{id}"
    swapped.__doc__ = f"{id}(other, input)."
    composite(names=(f"Tensor.{reflected}",), samples=calls(call(tensor(3, dtype="int64", low=0, high=5), 2)))(swapped)
    assert shift == ("bool" not in kinds)
    return declared


def _shift(reference: str) -> Any:
    """Shifting by the width or more gives 0 (or the sign); C and NumPy leave that open."""

    def shift(xp: Any, a: Any, b: Any) -> Any:
        width = a.dtype.itemsize * 8
        inside = (b >= 0) & (b < width)
        moved = getattr(xp, reference)(a, xp.where(inside, b, 0))
        beyond = xp.where(a < 0, -1, 0) if reference == "right_shift" and a.dtype.kind == "i" else 0
        return xp.where(inside, moved, beyond).astype(a.dtype)

    return shift


bitwise_and = _bits("bitwise_and", "bitwise_and", "The and of the bits", "bool int", "__and__", "__rand__")
bitwise_or = _bits("bitwise_or", "bitwise_or", "The or of the bits", "bool int", "__or__", "__ror__")
bitwise_xor = _bits("bitwise_xor", "bitwise_xor", "The exclusive or of the bits", "bool int", "__xor__", "__rxor__")
bitwise_left_shift = _bits(
    "bitwise_left_shift", _shift("left_shift"), "input * 2**other", "int", "__lshift__", "__rlshift__"
)
bitwise_right_shift = _bits(
    "bitwise_right_shift", _shift("right_shift"), "floor(input / 2**other)", "int", "__rshift__", "__rrshift__"
)


@primitive(
    names=(*both("bitwise_not"), "Tensor.__invert__"),
    meta=Elementwise("bitwise_not", allowed="bool int", tensors=1),
    reference="invert",
    samples=unary(0, 9, dtypes=("int64", "uint8", "bool")),
    errors=[error(RuntimeError, "not defined for float32", tensor(2))],
)
def bitwise_not(input: Tensor) -> Tensor:
    """Every bit flipped; the negation of bools."""
    ...


@bitwise_not.vjp
def _():
    return (None,)


# -- logic -----------------------------------------------------------------------------------------------


def truth(x: Any) -> Any:
    """``x`` as bools: is it different from 0."""
    if not hasattr(x, "dtype"):
        return bool(x)
    return x if element_type(x) is bool_ else ops.ne(x, 0)


@composite(names=both("logical_not"), samples=unary())
def logical_not(input: Tensor) -> Tensor:
    """Is the element 0 (False)."""
    return ops.bitwise_not(truth(input))


@composite(names=both("logical_and"), samples=binary(-1, 2))
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Are both elements different from 0."""
    return ops.bitwise_and(truth(input), truth(other))


@composite(names=both("logical_or"), samples=binary(-1, 2))
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Is one of the elements different from 0."""
    return ops.bitwise_or(truth(input), truth(other))


@composite(names=both("logical_xor"), samples=binary(-1, 2))
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Is exactly one of the elements different from 0."""
    return ops.bitwise_xor(truth(input), truth(other))


# -- tests of one element --------------------------------------------------------------------------------


def true_like(input: Any, value: bool) -> Any:
    """Bools of ``input``'s shape, all ``value``."""
    return ops.full(tuple(input.shape), value, dtype=bool_, device=input.device)


def _real_parts(test: Any, input: Any) -> Any:
    return test(ops.real(input)), test(ops.imag(input))


@composite(names=both("isnan"), samples=unary())
def isnan(input: Tensor) -> Tensor:
    """Is the element not a number (for complex: one of its parts)."""
    return ops.ne(input, input)


@composite(names=both("isinf"), samples=unary())
def isinf(input: Tensor) -> Tensor:
    """Is the element an infinity (for complex: one of its parts)."""
    kind = element_type(input).kind
    if kind == "complex":
        return ops.bitwise_or(*_real_parts(isinf, input))
    return ops.eq(ops.abs(input), float("inf")) if kind == "float" else true_like(input, False)


@composite(names=both("isposinf"), samples=unary())
def isposinf(input: Tensor) -> Tensor:
    """Is the element +inf."""
    return ops.eq(input, float("inf")) if element_type(input).kind == "float" else true_like(input, False)


@composite(names=both("isneginf"), samples=unary())
def isneginf(input: Tensor) -> Tensor:
    """Is the element -inf."""
    return ops.eq(input, float("-inf")) if element_type(input).kind == "float" else true_like(input, False)


@composite(names=both("isfinite"), samples=unary())
def isfinite(input: Tensor) -> Tensor:
    """Is the element neither infinite nor nan."""
    kind = element_type(input).kind
    if kind == "complex":
        return ops.bitwise_and(*_real_parts(isfinite, input))
    return ops.lt(ops.abs(input), float("inf")) if kind == "float" else true_like(input, True)


@primitive(
    names=both("signbit"),
    meta=Elementwise("signbit", "bool", "bool int float", exact=True, tensors=1),
    reference=lambda xp, x: (
        xp.signbit(x) if x.dtype.kind not in "biu" else x < 0 if x.dtype.kind == "i" else xp.zeros(x.shape, bool)
    ),
    samples=unary(),
)
def signbit(input: Tensor) -> Tensor:
    """Is the sign bit set (true for -0.0)."""
    ...


@signbit.vjp
def _():
    return (None,)


@composite(
    names=both("isclose"),
    samples=calls(call(tensor(2, 3), tensor(3), rtol=0.5), call(tensor(3, dtype="int64"), tensor(3, dtype="int64"))),
)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Is abs(input - other) <= atol + rtol * abs(other); infinities must be equal."""
    same = ops.eq(input, other)
    if element_type(input).kind in ("bool",):
        return same
    gap = ops.abs(ops.sub(input, other))
    limit = ops.add(ops.mul(ops.abs(other), rtol), atol)
    close = ops.bitwise_or(same, ops.bitwise_and(ops.isfinite(gap), ops.le(gap, limit)))
    if equal_nan:
        close = ops.bitwise_or(close, ops.bitwise_and(ops.isnan(input), ops.isnan(other)))
    return close


@composite(samples=calls(call(tensor(2), tensor(2))))
def all_equal(input: Tensor, other: Tensor) -> Tensor:
    """Are shapes and all elements equal, as a tensor; ``equal`` of a front end turns it into a bool."""
    if not same_sizes(input.shape, other.shape):
        return ops.full((), False, dtype=bool_)
    return ops.all(ops.eq(input, other))
