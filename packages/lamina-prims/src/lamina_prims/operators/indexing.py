"""Reading at computed positions: gather, index, nonzero, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina_fx import TensorSpec, bool_, int32, int64

from ..arrays import array_namespace, element_type
from ..dims import broadcast_shapes, canonical_dim, numel, surely_same
from ..index_errors import index_error
from ..modes import MODES, NO_SIZES
from ..registry import both, composite, ops, primitive
from ..samples import call, calls, error, tensor
from ..types import Size, Tensor

__all__ = ["gather", "index", "index_shape", "nonzero"]


def _index_dtype(name: str, index: Any) -> None:
    if element_type(index) not in (int32, int64):
        raise RuntimeError(f"{name}: expected dtype int32/int64 for index, got {element_type(index)}")


# -- gather ----------------------------------------------------------------------------------------------


def check_gather(name: str, input: Any, dim: int, index: Any) -> int:
    """The canonical dim; raises when ``index`` does not fit ``input`` as gather and scatter want it."""
    _index_dtype(name, index)
    ndim = len(input.shape)
    dim = canonical_dim(name, dim, ndim)
    if len(index.shape) != ndim:
        raise RuntimeError(
            f"{name}: index must have the same number of dimensions as input: {list(index.shape)} "
            f"and {list(input.shape)}"
        )
    for d in range(ndim):
        if d != dim and index.shape[d] is not input.shape[d] and index.shape[d] > input.shape[d]:
            raise RuntimeError(
                f"{name}: size of index {list(index.shape)} must not be larger than that of input {list(input.shape)} "
                f"apart from dimension {dim}"
            )
    return dim


def check_bounds(
    name: str, index: Any, size: Any, dim: int, *, negative: bool = False, error: type[Exception] = RuntimeError
) -> None:
    """Raises an error that names an index outside ``size`` (reference only: there the values are known)."""
    if not index.size:
        return
    on_device = getattr(array_namespace(index), "extremes", None)
    low, high = on_device(index) if on_device is not None else (int(index.min()), int(index.max()))
    if high >= size or low < (-size if negative else 0):
        bad = high if high >= size else low
        raise index_error(name, bad, size, dim, error)


def never_negative(index: Tensor, size: Any) -> Tensor:
    """The index with negative numbers, which would count back from the end, out of range instead."""
    return ops.where(ops.lt(index, 0), size, index) if element_type(index).is_signed else index


def _gather_meta(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> TensorSpec:
    check_gather("gather", input, dim, index)
    return TensorSpec(index.shape, input.dtype, None, input.device)


def open_grid(xp: Any, shape: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """Positions of every element of ``index``: itself along ``dim``, ramps along the other dimensions."""
    grid = list(xp.ix_(*(xp.arange(n) for n in shape)))
    grid[dim] = index
    return tuple(grid)


def _gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    dim = check_gather("gather", input, dim, index)
    if not input.ndim:
        check_bounds("gather", index, 1, 0)
        return input.copy()
    check_bounds("gather", index, input.shape[dim], dim)
    xp = array_namespace(input, index)
    return xp.ascontiguousarray(input[open_grid(xp, index.shape, dim, index)])


_INDEX = {"dtype": "int64", "low": 0, "high": 2}


@primitive(
    names=both("gather"),
    meta=_gather_meta,
    reference=_gather,
    samples=calls(
        call(tensor(2, 3), 0, tensor(2, 3, **_INDEX)), call(tensor(2, 3), -1, tensor(2, 5, **_INDEX)),
        call(tensor(3, 4), 1, tensor(2, 2, **_INDEX)),
    ),
    errors=[
        error(RuntimeError, "int32/int64", tensor(2, 3), 0, tensor(2, 3)),
        error(RuntimeError, "same number of dimensions", tensor(2, 3), 0, tensor(2, dtype="int64")),
        error(RuntimeError, "out of bounds", tensor(2, 3), 0, tensor(1, 1, dtype="int64", low=5, high=6)),
    ],
)  # fmt: skip
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """result[i][j] = input[index[i][j]][j] for dim 0, and so on; the shape is that of ``index``."""
    ...


@gather.vjp
def _(ct, input_spec, dim, index):
    zeros = ops.zeros(input_spec.shape, dtype=ct.dtype, device=ct.device)
    return ops.scatter_add(zeros, dim, index, ct), None


@gather.normalize
def _(input, dim, index, *, sparse_grad=False):
    place = canonical_dim("gather", dim, len(input.shape))
    return NotImplemented if place == dim and not sparse_grad else ops.gather(input, place, index)


# -- index -----------------------------------------------------------------------------------------------


def index_shape(name: str, shape: Any, indices: Any) -> tuple[tuple[Size, ...], int, tuple[Size, ...]]:
    """(shape of the result, where the indexed dimensions stand in it, their common shape).

    Tensors next to each other replace their dimensions in place; otherwise the common shape comes first.
    """
    if len(indices) > len(shape):
        raise IndexError(f"{name}: too many indices ({len(indices)}) for a tensor of {len(shape)} dimensions")
    given = [d for d, i in enumerate(indices) if i is not None]
    if not given:
        return tuple(shape), 0, ()
    for d in given:
        _index_dtype(name, indices[d])
    try:
        common = broadcast_shapes(name, [indices[d].shape for d in given])
    except RuntimeError as problem:
        raise IndexError(f"{name}: the indices do not broadcast together ({problem})") from None
    rest = [s for d, s in enumerate(shape) if d not in given]
    place = given[0] if given[-1] - given[0] == len(given) - 1 else 0
    return (*rest[:place], *common, *rest[place:]), place, common


def _index_meta(input: Any, indices: Any) -> TensorSpec:
    shape, _, _ = index_shape("index", input.shape, indices)
    return TensorSpec(shape, input.dtype, None, input.device)


def numpy_index(name: str, input: Any, indices: Any) -> tuple[Any, ...]:
    """The index tuple for NumPy; bounds are checked, so that messages are ours."""
    for d, i in enumerate(indices):
        if i is not None:
            check_bounds(name, i, input.shape[d], d, negative=True, error=IndexError)
    return tuple(slice(None) if i is None else i for i in indices)


def _index(input: Any, indices: Any) -> Any:
    index_shape("index", input.shape, indices)
    return array_namespace(input).asarray(input[numpy_index("index", input, indices)], order="C")


@primitive(
    meta=_index_meta,
    reference=_index,
    samples=calls(
        call(tensor(4, 3), [tensor(2, dtype="int64", low=0, high=4)]),
        call(tensor(4, 3), [None, tensor(2, 2, dtype="int64", low=-3, high=3)]),
        call(tensor(4, 3, 5), [np.array([3, 1]), None, tensor(3, 1, dtype="int64", low=0, high=5)]),
        call(tensor(4, 3, 5), [tensor(2, dtype="int64", low=0, high=4), tensor(dtype="int64", low=0, high=3)]),
    ),
    errors=[
        error(IndexError, "out of bounds", tensor(2, 3), [tensor(1, dtype="int64", low=5, high=6)]),
        error(IndexError, "too many", tensor(2), [None, tensor(1, dtype="int64")]),
        error(RuntimeError, "int32/int64", tensor(2), [tensor(1)]),
    ],
)  # fmt: skip
def index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """``input[indices]``: integer tensors that broadcast together, None for whole dimensions; negatives count back."""
    ...


@index.vjp
def _(ct, input_spec, indices):
    zeros = ops.zeros(input_spec.shape, dtype=ct.dtype, device=ct.device)
    return ops.index_put(zeros, indices, ct, True), [None] * len(indices)


def strict_indices(input: Any, indices: Any) -> Any:
    """Indices as a tuple of int64 tensors of one shape, none negative; None when they may be so already."""
    given = [i for i in indices if i is not None]
    shape = broadcast_shapes("index", [i.shape for i in given])
    changed = type(indices) is not tuple
    result: list[Any] = []
    for i in indices:
        if i is None:
            result.append(None)
            continue
        wide = i
        if element_type(wide) is not int64:
            wide = ops.convert_element_type(wide, int64)
        if not surely_same(wide.shape, shape):
            wide = ops.broadcast_in_dim(wide, shape, tuple(range(len(shape) - len(wide.shape), len(shape))))
        changed = changed or wide is not i
        result.append(wide)
    return tuple(result) if changed else None


def non_negative(input: Any, indices: Any) -> tuple[Any, ...]:
    """Negative indices counted from the end."""
    return tuple(
        None if i is None else ops.where(ops.lt(i, 0), ops.add(i, input.shape[d]), i) for d, i in enumerate(indices)
    )


@index.normalize
def _(input, indices):
    if not any(i is not None for i in indices):
        return input
    strict = strict_indices(input, indices)
    return NotImplemented if strict is None else ops.index(input, strict)


# -- nonzero ---------------------------------------------------------------------------------------------


def unbacked_size(name: str, upper: Any) -> Any:
    """A new symbolic size in [0, upper], made by the active ``sizing`` or the env of ``upper``.

    Raises:
        NeedsValues: there is neither.
    """
    env = MODES.shape_env if MODES.shape_env is not None else getattr(upper, "env", None)
    if env is None:
        env = NO_SIZES
    return env.create_unbacked(0, upper if type(upper) is int else None, name)


def _nonzero_meta(input: Any) -> TensorSpec:
    return TensorSpec((unbacked_size("nonzero", numel(input.shape)), len(input.shape)), int64, None, input.device)


@primitive(
    names=(),
    meta=_nonzero_meta,
    reference=lambda input: array_namespace(input).argwhere(input).astype(np.int64, order="C"),
    tags=frozenset({"dynamic"}),
)
def nonzero(input: Tensor) -> Tensor:
    """The positions of the elements that are not 0, one row each, in row-major order. The size depends on values."""
    ...


nonzero.vjp(lambda: (None,))


@composite(id="nonzero.tuple", names=both("nonzero"), tags=frozenset({"dynamic"}))
def nonzero_tuple(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not 0: one row each, or (``as_tuple``) one tensor per dimension."""
    places = ops.nonzero(input)
    return tuple(ops.select(places, 1, d) for d in range(len(input.shape))) if as_tuple else places


@composite(id="where.places", names=("where",), tags=frozenset({"dynamic"}))
def where_places(condition: Tensor) -> Any:
    """The positions of the elements that are not 0, as one tensor per dimension."""
    places = ops.nonzero(condition)
    return tuple(ops.select(places, 1, d) for d in range(len(condition.shape)))


@composite(names=both("argwhere"), tags=frozenset({"dynamic"}))
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not 0, one row each."""
    return ops.nonzero(input)


@composite(names=both("masked_select"), tags=frozenset({"dynamic"}))
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where ``mask`` is true, in one dimension; both broadcast."""
    if element_type(mask) is not bool_:
        raise RuntimeError(f"masked_select: expected a boolean mask, got {element_type(mask)}")
    shape = broadcast_shapes("masked_select", [input.shape, mask.shape])
    input, mask = ops.broadcast_to(input, shape), ops.broadcast_to(mask, shape)
    places = ops.nonzero(ops.reshape(mask, (-1,)))
    return ops.index(ops.reshape(input, (-1,)), [ops.select(places, 1, 0)])


# -- composites ------------------------------------------------------------------------------------------


@composite(
    names=both("index_select"),
    samples=calls(
        call(tensor(4, 3), 0, tensor(2, dtype="int64", low=0, high=4)),
        call(tensor(2, 3), -1, tensor(4, dtype="int32", low=0, high=3)),
    ),
    errors=[
        error(IndexError, "out of bounds", tensor(2, 3), 0, tensor(1, dtype="int64", low=5, high=6)),
        error(IndexError, "out of bounds", tensor(2, 3), 0, tensor(1, dtype="int64", low=-2, high=-1)),
    ],
)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices along ``dim`` at the positions in ``index`` (one dimension)."""
    if len(index.shape) > 1:
        raise IndexError(f"index_select: index must have one dimension, the shape is {list(index.shape)}")
    _index_dtype("index_select", index)
    if not len(input.shape):
        return ops.reshape(ops.index(ops.reshape(input, (1,)), [index]), ())
    place = canonical_dim("index_select", dim, len(input.shape))
    index = never_negative(index, input.shape[place])
    flat = index if len(index.shape) else ops.reshape(index, (1,))
    return ops.index(input, [*[None] * place, flat])


@composite(names=both("take"), samples=calls(call(tensor(2, 3), tensor(4, dtype="int64", low=-6, high=6))))
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements of the flat ``input`` at ``index``, in its shape."""
    return ops.index(ops.reshape(input, (-1,)), [index])


@composite(
    names=both("take_along_dim"),
    samples=calls(call(tensor(2, 3), tensor(2, 1, **_INDEX), 1), call(tensor(2, 3), tensor(4, **_INDEX))),
)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """``gather`` with ``input`` and ``indices`` broadcast together (apart from ``dim``); None: both flat."""
    if dim is None:
        return ops.gather(ops.reshape(input, (-1,)), 0, ops.reshape(indices, (-1,)))
    place = canonical_dim("take_along_dim", dim, len(input.shape))
    a, b = list(input.shape), list(indices.shape)
    if len(a) != len(b):
        raise RuntimeError(f"take_along_dim: {a} and {b} must have the same number of dimensions")
    a[place], b[place] = 1, 1
    common = list(broadcast_shapes("take_along_dim", [a, b]))
    wide = (*common[:place], input.shape[place], *common[place + 1 :])
    places = (*common[:place], indices.shape[place], *common[place + 1 :])
    return ops.gather(ops.broadcast_to(input, wide), place, ops.broadcast_to(indices, places))
