"""What front ends offer to look at a tensor in another shape: composites over the view primitives.

All of them show the memory of their input, except where the documentation says that they copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import spec_of
from ..dims import as_shape, broadcast_shapes, canonical_dim, canonical_dims, numel
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor
from ..strides import view_strides
from ..types import Shape, Size, Tensor
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
        elif have is not None and have is not want and not (type(have) is int and have == 1) and have != want and have != 1:
            raise RuntimeError(
                f"expand: the expanded size {want} must match the existing size {have} at dimension {d}: "
                f"{list(input.shape)} to {list(size)}"
            )
    return ops.broadcast_in_dim(input, tuple(target), tuple(range(lead, len(size))))


@composite(names=("Tensor.expand_as",), alias=True, samples=calls(call(tensor(3), tensor(2, 3))))
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.expand(other.size())``."""
    return expand(input, tuple(other.shape))


@composite(names=("broadcast_to", "Tensor.broadcast_to"), alias=True, variadic="size", samples=calls(call(tensor(3), (2, 3))))
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


@composite(names=both("t"), alias=True, samples=calls(call(tensor(2, 3)), call(tensor(3))), errors=[error(RuntimeError, "2", tensor(2, 3, 4))])
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
        call(tensor(2, 1, 3, 1)), call(tensor(2, 1, 3), 1), call(tensor(2, 1, 3), 0), call(tensor(1, 1, 3), (0, 1)), call(tensor(), 0)
    ),
    errors=[error(IndexError, "out of range", tensor(2, 3), 7)],
)
def squeeze(input: Tensor, dim: int | Shape | None = None) -> Tensor:
    """Without its dimensions of size 1 (those of them in ``dim``)."""
    ndim = _ndim(input)
    dims = range(ndim) if dim is None else canonical_dims("squeeze", dim, ndim) if dim != () else ()
    shape = tuple(s for d, s in enumerate(input.shape) if d not in dims or not (s == 1))
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

    def atleast(input: Tensor | Sequence[Tensor]) -> Tensor:
        return [widen(x) for x in input] if isinstance(input, (tuple, list)) else widen(input)

    atleast.__name__ = f"atleast_{n}d"
    atleast.__doc__ = f"``input`` (or each tensor of a list) with at least {n} dimensions."
    return composite(names=(f"atleast_{n}d",), samples=calls(call(tensor()), call(tensor(3)), call(tensor(2, 3))))(atleast)


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
    return ops.reshape(input, (*input.shape[:a], numel(input.shape[a : b + 1]), *input.shape[b + 1 :])) if a < b else input


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


# -- parts -----------------------------------------------------------------------------------------------


@composite(
    names=both("select"),
    alias=True,
    samples=calls(call(tensor(2, 3), 0, 1), call(tensor(2, 3), -1, -1)),
    errors=[
        error(IndexError, "index 5 is out of bounds for dimension 0 with size 2", tensor(2, 3), 0, 5),
        error(IndexError, "no dimensions", tensor(), 0, 0),
    ],
)
def select(input: Tensor, dim: int, index: Size) -> Tensor:
    """The slice ``index`` along ``dim``, without that dimension."""
    if not input.shape:
        raise IndexError("select: a tensor with no dimensions has nothing to select")
    place = canonical_dim("select", dim, _ndim(input))
    size = input.shape[place]
    if not -size <= index or not index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    start = index + size if index < 0 else index
    part = ops.slice(input, place, start, start + 1)
    return ops.reshape(part, (*input.shape[:place], *input.shape[place + 1 :]))


@composite(
    names=both("narrow"),
    alias=True,
    samples=calls(call(tensor(5, 3), 0, 1, 3), call(tensor(5, 3), 1, -2, 2)),
    errors=[error(RuntimeError, r"start \(1\) \+ length \(5\) exceeds dimension size \(2\)", tensor(2, 3), 0, 1, 5)],
)
def narrow(input: Tensor, dim: int, start: Size, length: Size) -> Tensor:
    """``length`` slices along ``dim``, from ``start`` on."""
    size = input.shape[canonical_dim("narrow", dim, _ndim(input))]
    if length < 0:
        raise RuntimeError(f"narrow: length must be non-negative, not {length}")
    begin = start + size if start < 0 else start
    if begin < 0 or begin + length > size:
        raise RuntimeError(f"narrow: start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return ops.slice(input, dim, begin, begin + length)


def _cut(input: Any, dim: int, sizes: Sequence[Any]) -> tuple[Any, ...]:
    parts, start = [], 0
    for size in sizes:
        parts.append(ops.slice(input, dim, start, start + size))
        start = start + size
    return tuple(parts)


@composite(
    names=both("split"),
    alias=True,
    samples=calls(call(tensor(5, 2), 2), call(tensor(5, 2), [1, 4]), call(tensor(2, 6), 3, -1), call(tensor(4), 4)),
    errors=[error(RuntimeError, "sum exactly to 5", tensor(5), [2, 2])],
)
def split(tensor: Tensor, split_size_or_sections: int | Shape, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of this size along ``dim`` (the last may be smaller), or parts of these sizes."""
    place = canonical_dim("split", dim, _ndim(tensor))
    size = tensor.shape[place]
    if isinstance(split_size_or_sections, (tuple, list)):
        if sum(split_size_or_sections) != size:
            raise RuntimeError(
                f"split: the sizes {list(split_size_or_sections)} must sum exactly to {size} (the size of dimension {dim})"
            )
        return _cut(tensor, place, split_size_or_sections)
    step = split_size_or_sections
    if step <= 0 and not (step == 0 and size == 0):
        raise RuntimeError(f"split: the size of a part must be positive, not {step}")
    whole = int(size)
    starts = range(0, whole, step) if whole else (0,)
    return _cut(tensor, place, [min(step, whole - s) for s in starts])


@composite(names=("split_with_sizes", "Tensor.split_with_sizes"), alias=True, samples=calls(call(tensor(5, 2), [1, 4])))
def split_with_sizes(input: Tensor, split_sizes: Shape, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of these sizes along ``dim``."""
    return split(input, list(split_sizes), dim)


@composite(
    names=both("chunk"),
    alias=True,
    samples=calls(call(tensor(5, 2), 2), call(tensor(2, 6), 3, -1), call(tensor(3), 5)),
    errors=[error(RuntimeError, "greater than 0", tensor(3), 0)],
)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` parts of equal size along ``dim`` (the last may be smaller)."""
    if chunks <= 0:
        raise RuntimeError(f"chunk: the number of chunks must be greater than 0, not {chunks}")
    size = int(input.shape[canonical_dim("chunk", dim, _ndim(input))])
    return split(input, max(-(-size // chunks), 1), dim) if size else tuple(split(input, [0] * chunks, dim))


def _even(size: int, sections: int) -> list[int]:
    base, extra = divmod(size, sections)
    return [base + (k < extra) for k in range(sections)]


@composite(
    names=both("tensor_split"),
    alias=True,
    samples=calls(call(tensor(7, 2), 3), call(tensor(7), [2, 5]), call(tensor(2, 7), 3, 1)),
)
def tensor_split(input: Tensor, indices_or_sections: int | Shape, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts that differ in size by at most 1, or parts cut before these indices."""
    place = canonical_dim("tensor_split", dim, _ndim(input))
    size = int(input.shape[place])
    if isinstance(indices_or_sections, int):
        return _cut(input, place, _even(size, indices_or_sections))
    cuts = [0, *indices_or_sections, size]
    return tuple(ops.slice(input, place, a, b) for a, b in zip(cuts, cuts[1:], strict=False))


def _split_along(name: str, dim: int, minimum: int) -> None:
    def along(input: Tensor, indices_or_sections: int | Shape) -> tuple[Tensor, ...]:
        if _ndim(input) < minimum:
            raise RuntimeError(f"{name}: at least {minimum} dimensions are wanted, the shape is {list(input.shape)}")
        return tensor_split(input, indices_or_sections, 0 if _ndim(input) == 1 else dim)

    along.__name__ = name
    along.__doc__ = f"``tensor_split`` along dimension {dim}."
    shape = (4, 4, 4)[:minimum]
    composite(names=both(name), alias=True, samples=calls(call(tensor(*shape), 2)))(along)


_split_along("hsplit", 1, 1)
_split_along("vsplit", 0, 2)
_split_along("dsplit", 2, 3)


@composite(names=both("unbind"), alias=True, samples=calls(call(tensor(3, 2)), call(tensor(2, 3), -1)))
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along ``dim``, without that dimension."""
    place = canonical_dim("unbind", dim, _ndim(input))
    return tuple(select(input, place, k) for k in range(int(input.shape[place])))


@composite(
    names=both("diagonal"),
    alias=True,
    samples=calls(call(tensor(3, 4)), call(tensor(3, 4), 1), call(tensor(2, 3, 4), -1, 1, 2)),
    errors=[error(RuntimeError, "cannot be identical", tensor(2, 3), 0, 1, 1)],
)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions as a new last dimension."""
    spec = spec_of(input)
    ndim = len(spec.shape)
    a, b = canonical_dim("diagonal", dim1, ndim), canonical_dim("diagonal", dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal: the dimensions cannot be identical: {dim1}, {dim2}")
    rows, columns = spec.shape[a], spec.shape[b]
    down, right = max(-offset, 0), max(offset, 0)
    height, width = rows - down, columns - right
    length = max(height if height <= width else width, 0)
    rest = [d for d in range(ndim) if d not in (a, b)]
    start = 0 if type(length) is int and length == 0 else down * spec.strides[a] + right * spec.strides[b]
    size = (*(spec.shape[d] for d in rest), length)
    stride = (*(spec.strides[d] for d in rest), spec.strides[a] + spec.strides[b])
    return ops.as_strided(input, size, stride, start)


@diagonal.vjp
def _(ct, input_spec, offset, dim1, dim2):
    zeros = ops.zeros(input_spec.shape, dtype=ct.dtype, device=ct.device)
    return (ops.diagonal_scatter(zeros, ct, offset, dim1, dim2),)


@composite(
    id="unfold.dimension",
    names=("Tensor.unfold",),
    alias=True,
    samples=calls(call(tensor(7), 0, 3, 2), call(tensor(2, 6), 1, 2, 2)),
    errors=[error(RuntimeError, "at most", tensor(3), 0, 4, 1)],
)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of ``size`` elements along ``dimension``, ``step`` apart; the window is a new last dimension."""
    spec = spec_of(input)
    place = canonical_dim("unfold", dimension, len(spec.shape))
    if size > spec.shape[place] or step <= 0:
        raise RuntimeError(f"unfold: size {size} must be at most {spec.shape[place]} and step {step} greater than 0")
    shape, strides = list(spec.shape), list(spec.strides)
    shape[place] = (shape[place] - size) // step + 1
    inner = strides[place]
    strides[place] = inner * step
    return ops.as_strided(input, (*shape, size), (*strides, inner), 0)


