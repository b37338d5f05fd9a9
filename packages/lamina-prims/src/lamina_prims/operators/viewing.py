"""What front ends offer to look at a tensor in another shape: composites over the view primitives.

All of them show the memory of their input, except where the documentation says that they copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina_fx import DType, TensorSpec, dtype_of

from ..arrays import element_type, numpy_dtype, spec_of
from ..dims import as_shape, broadcast_shapes, canonical_dim, canonical_dims, numel
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..strides import view_strides
from ..types import Shape, Tensor
from .views import whole_shape

__all__: list[str] = []


def _ndim(x: Any) -> int:
    return len(x.shape)


@composite(
    names=("Tensor.view",),
    alias=True,
    variadic="size",
    samples=calls(call(tensor(2, 3), (3, 2)), call(tensor(2, 3), (-1,))),
    errors=[
        error(RuntimeError, "invalid for input of size 6", tensor(2, 3), (4,)),
        error(RuntimeError, "view size is not compatible", tensor(2, 3, kind="transposed"), (6,)),
    ],
)
def view(input: Tensor, size: Shape) -> Tensor:
    """The same memory in another shape; one size may be -1. Fails where ``reshape`` would copy."""
    shape = whole_shape("view", size, input.shape)
    spec = spec_of(input)
    if view_strides(spec.shape, spec.strides, shape) is None:
        raise RuntimeError(
            f"view size is not compatible with input tensor's size {list(spec.shape)} and stride {list(spec.strides)}: "
            f"{list(shape)} spans memory that is not contiguous. Use .reshape(...) instead."
        )
    return ops.reshape(input, shape)


@composite(names=("Tensor.view_as",), alias=True, samples=calls(call(tensor(2, 3), tensor(6))))
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.view(other.size())``."""
    return view(input, tuple(other.shape))


@composite(names=("Tensor.reshape_as",), alias=True, samples=calls(call(tensor(2, 3), tensor(6))))
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.reshape(other.size())``."""
    return ops.reshape(input, tuple(other.shape))


@composite(
    names=("Tensor.expand",),
    alias=True,
    variadic="size",
    samples=calls(call(tensor(3), (2, 3)), call(tensor(2, 1), (4, -1, 5)), call(tensor(), (2,))),
    errors=[
        error(RuntimeError, "must match the existing size", tensor(2, 3), (3, 3)),
        error(RuntimeError, "number of sizes", tensor(2, 3), (3,)),
    ],
)
def expand(input: Tensor, size: Shape, *, implicit: bool = False) -> Tensor:
    """Dimensions of size 1, and new ones in front, repeat without a copy; -1 keeps a size."""
    size = as_shape("expand", size)
    lead = len(size) - _ndim(input)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes {list(size)} must be at least the number of dimensions of {list(input.shape)}"
        )
    target = list(size)
    for d, want in enumerate(size):
        have = input.shape[d - lead] if d >= lead else None
        if type(want) is int and want == -1:
            if have is None:
                raise RuntimeError(f"expand: -1 is not allowed in a new leading dimension: {list(size)}")
            target[d] = have
        elif (
            have is not None
            and have is not want
            and not (type(have) is int and have == 1)
            and have != want
            and have != 1
        ):
            raise RuntimeError(
                f"expand: the expanded size {want} must match the existing size {have} at dimension {d}: "
                f"{list(input.shape)} to {list(size)}"
            )
    return ops.broadcast_in_dim(input, tuple(target), tuple(range(lead, len(size))))


@composite(names=("Tensor.expand_as",), alias=True, samples=calls(call(tensor(3), tensor(2, 3))))
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.expand(other.size())``."""
    return expand(input, tuple(other.shape))


@composite(
    names=("broadcast_to", "Tensor.broadcast_to"), alias=True, variadic="size", samples=calls(call(tensor(3), (2, 3)))
)
def broadcast_to(input: Tensor, size: Shape) -> Tensor:
    """``input.expand(size)``."""
    return expand(input, size)


@composite(names=("broadcast_tensors",), variadic="tensors", samples=calls(call([tensor(3), tensor(2, 1)])))
def broadcast_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors expanded to their common shape."""
    shape = broadcast_shapes("broadcast_tensors", [t.shape for t in tensors])
    return [expand(t, shape) for t in tensors]


# -- order of dimensions ---------------------------------------------------------------------------------


def _swapped(input: Any, a: int, b: int) -> Any:
    order = list(range(_ndim(input)))
    order[a], order[b] = order[b], order[a]
    return ops.permute(input, tuple(order))


@composite(
    names=both("transpose", "swapaxes", "swapdims"),
    alias=True,
    samples=calls(call(tensor(2, 3), 0, 1), call(tensor(2, 3, 4), -1, -2), call(tensor(), 0, -1)),
    errors=[error(IndexError, "out of range", tensor(2, 3), 0, 3)],
)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    a, b = (canonical_dim("transpose", d, _ndim(input)) for d in (dim0, dim1))
    return input if not input.shape else _swapped(input, a, b)


@composite(
    names=both("t"),
    alias=True,
    samples=calls(call(tensor(2, 3)), call(tensor(3))),
    errors=[error(RuntimeError, "2", tensor(2, 3, 4))],
)
def t(input: Tensor) -> Tensor:
    """The transposed matrix; tensors of fewer dimensions as they are."""
    if _ndim(input) > 2:
        raise RuntimeError(f"t: expects a tensor with <= 2 dimensions, but self is {_ndim(input)}D")
    return _swapped(input, 0, 1) if _ndim(input) == 2 else input


@composite(id="T", names=("Tensor.T",), alias=True, tags=frozenset({"property"}), samples=calls(call(tensor(2, 3, 4))))
def T(input: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    return ops.permute(input, tuple(reversed(range(_ndim(input)))))


@composite(
    id="mT", names=("Tensor.mT",), alias=True, tags=frozenset({"property"}), samples=calls(call(tensor(2, 3, 4))),
    errors=[error(RuntimeError, "2 dimensions", tensor(3))],
)  # fmt: skip
def mT(input: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    if _ndim(input) < 2:
        raise RuntimeError(f"mT: at least 2 dimensions are wanted, the shape is {list(input.shape)}")
    return _swapped(input, -1, -2)


@composite(names=("adjoint", "Tensor.adjoint", "Tensor.mH"), samples=calls(call(tensor(2, 3))))
def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the matrix transposed in the last two dimensions."""
    return ops.conj_physical(mT(input)) if spec_of(input).dtype.kind == "complex" else mT(input)


@composite(
    names=both("movedim", "moveaxis"),
    alias=True,
    samples=calls(call(tensor(2, 3, 4), 0, -1), call(tensor(2, 3, 4), (0, 1), (2, 0))),
)
def movedim(input: Tensor, source: int | Shape, destination: int | Shape) -> Tensor:
    """The dimensions ``source`` moved to the places ``destination``; the others keep their order."""
    ndim = _ndim(input)
    a = [canonical_dim("movedim", d, ndim) for d in as_shape("movedim", source)]
    b = [canonical_dim("movedim", d, ndim) for d in as_shape("movedim", destination)]
    if len(a) != len(b) or len(set(a)) != len(a) or len(set(b)) != len(b):
        raise RuntimeError(f"movedim: source {source} and destination {destination} must pair distinct dimensions")
    rest = iter([d for d in range(ndim) if d not in a])
    places = dict(zip(b, a, strict=True))
    return ops.permute(input, tuple(places[d] if d in places else next(rest) for d in range(ndim)))


# -- dimensions of size 1 --------------------------------------------------------------------------------


@composite(
    names=both("squeeze"),
    alias=True,
    samples=calls(
        call(tensor(2, 1, 3, 1)),
        call(tensor(2, 1, 3), 1),
        call(tensor(2, 1, 3), 0),
        call(tensor(1, 1, 3), (0, 1)),
        call(tensor(), 0),
    ),
    errors=[error(IndexError, "out of range", tensor(2, 3), 7)],
)
def squeeze(input: Tensor, dim: int | Shape | None = None) -> Tensor:
    """Without its dimensions of size 1 (those of them in ``dim``)."""
    ndim = _ndim(input)
    dims = range(ndim) if dim is None else canonical_dims("squeeze", dim, ndim) if dim != () else ()
    shape = tuple(s for d, s in enumerate(input.shape) if d not in dims or s != 1)
    return ops.reshape(input, shape) if len(shape) != ndim else input


@composite(
    names=both("unsqueeze"),
    alias=True,
    samples=calls(call(tensor(2, 3), 0), call(tensor(2, 3), -1), call(tensor(), 0)),
    errors=[error(IndexError, "out of range", tensor(2, 3), 3)],
)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A dimension of size 1 at ``dim``."""
    place = canonical_dim("unsqueeze", dim, _ndim(input) + 1)
    return ops.reshape(input, (*input.shape[:place], 1, *input.shape[place:]))


def _at_least(n: int) -> Any:
    def widen(x: Any) -> Any:
        have = _ndim(x)
        if have >= n:
            return x
        shape = (1,) * (n - have) + tuple(x.shape)
        if n == 3:
            shape = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}[have]
        return ops.reshape(x, shape)

    def atleast(input: Tensor | Sequence[Tensor]) -> Any:
        return [widen(x) for x in input] if isinstance(input, (tuple, list)) else widen(input)

    atleast.__name__ = f"atleast_{n}d"
    atleast.__doc__ = f"``input`` (or each tensor of a list) with at least {n} dimensions."
    return composite(names=(f"atleast_{n}d",), samples=calls(call(tensor()), call(tensor(3)), call(tensor(2, 3))))(
        atleast
    )


for _n in (1, 2, 3):
    _at_least(_n)


# -- joining and splitting dimensions --------------------------------------------------------------------


@composite(
    names=both("flatten"),
    alias=True,
    samples=calls(call(tensor(2, 3, 4)), call(tensor(2, 3, 4), 1), call(tensor(2, 3, 4), 0, 1), call(tensor())),
    errors=[error(RuntimeError, "start_dim", tensor(2, 3), 1, 0)],
)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions ``start_dim`` to ``end_dim`` joined into one (a copy where the strides do not allow a view)."""
    ndim = _ndim(input)
    if not ndim:
        return ops.reshape(input, (1,))
    a, b = canonical_dim("flatten", start_dim, ndim), canonical_dim("flatten", end_dim, ndim)
    if a > b:
        raise RuntimeError(f"flatten: start_dim {start_dim} cannot come after end_dim {end_dim}")
    return (
        ops.reshape(input, (*input.shape[:a], numel(input.shape[a : b + 1]), *input.shape[b + 1 :])) if a < b else input
    )


@composite(names=both("ravel"), alias=True, samples=calls(call(tensor(2, 3))))
def ravel(input: Tensor) -> Tensor:
    """All dimensions joined into one."""
    return ops.reshape(input, (numel(input.shape),))


@composite(
    names=both("unflatten"),
    alias=True,
    variadic="sizes",
    samples=calls(call(tensor(2, 6), 1, (2, 3)), call(tensor(6, 2), 0, (-1, 2))),
    errors=[error(RuntimeError, "invalid", tensor(2, 3), 1, (2, 2))],
)
def unflatten(input: Tensor, dim: int, sizes: Shape) -> Tensor:
    """Dimension ``dim`` split into several; one size may be -1."""
    place = canonical_dim("unflatten", dim, _ndim(input))
    parts = whole_shape("unflatten", sizes, (input.shape[place],))
    return ops.reshape(input, (*input.shape[:place], *parts, *input.shape[place + 1 :]))


# -- the same bits ---------------------------------------------------------------------------------------


def _bitcast_meta(input: Any, dtype: DType) -> TensorSpec:
    if input.dtype.itemsize != dtype.itemsize:
        raise RuntimeError(
            f"view: {input.dtype} has {input.dtype.itemsize} bytes and {dtype} {dtype.itemsize}: "
            "only dtypes of one size can be seen as one another"
        )
    return TensorSpec(input.shape, dtype, input.strides, input.device)


def _bitcast(input: Any, dtype: DType) -> Any:
    _bitcast_meta(spec_of(input), dtype)
    return input.view(numpy_dtype(dtype))


@primitive(
    id="bitcast",
    names=("Tensor.view",),
    meta=_bitcast_meta,
    reference=_bitcast,
    alias=True,
    samples=calls(
        call(tensor(2, 3), dtype_of("int32"), gradient=False),
        call(tensor(3, 2, kind="transposed"), dtype_of("uint32"), gradient=False),
    ),
    errors=[error(RuntimeError, "only dtypes of one size", tensor(2), dtype_of("int64"))],
)
def bitcast(input: Tensor, dtype: DType) -> Tensor:
    """The same memory as elements of another dtype of the same size."""
    ...


@bitcast.vjp
def _():
    return (None,)


@bitcast.normalize
def _(input, dtype):
    return input if element_type(input) is dtype else NotImplemented


@bitcast.scatter
def _(base, value, dtype):
    return bitcast(value, element_type(base))
