"""Indexing: ``tensor[...]`` and ``tensor[...] = value``.

Integers, slices, None and Ellipsis give views: they become ``select``, ``slice`` and ``unsqueeze``. Tensors, lists
and booleans gather: what remains after the views is given to ``index`` (or, for assignment, ``index_put``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina_fx import float8_e4m3fn
from lamina_prims import operator
from lamina_prims.arrays import converted
from lamina_prims.modes import MODES

from ._C import TensorBase, bump, is_grad_enabled, wrap, wrap_view
from .autograd.inplace import check_inplace
from .autograd.node import Node, edge_of
from .inplace import assign, call_inplace, check_overlap, copy_into
from .storage import is_host, on_device
from .views import ViewStep, mark_view, replay, scatter

__all__ = ["getitem", "setitem"]

_BASIC = (int, slice, type(None), type(Ellipsis))


def getitem(tensor: Any, index: Any) -> Any:
    """``tensor[index]``; a view for basic indices.

    Raises:
        IndexError: out of range, too many indices, or an index of a wrong kind. ValueError: a negative step.
    """
    items = index if type(index) is tuple else (index,)
    if tensor._array is not None and not MODES.stack:
        plain = 0 not in tensor._sizes
        for item in items:
            if type(item) not in _BASIC:
                plain = False
                break
        if plain:
            return _array_view(tensor, index, items)
    steps, tensors = _parse(tensor, items)
    view = replay(tensor, steps)
    if not tensors:
        return view if steps else operator("reshape")(view, view._sizes)  # x[...] is a view, not x
    return operator("index")(view, _positions(tensors))


def setitem(tensor: Any, index: Any, value: Any) -> None:
    """``tensor[index] = value``: broadcasts and converts ``value``.

    Raises:
        IndexError, ValueError: as ``getitem``. RuntimeError: ``value`` does not fit, or autograd cannot follow.
    """
    items = index if type(index) is tuple else (index,)
    mask = items[0] if len(items) == 1 else None
    if isinstance(mask, TensorBase) and mask.dtype.kind == "bool" and mask._sizes == tensor._sizes and _scalar(value):
        call_inplace(operator("masked_fill"), tensor, (mask, value), {})
        return
    plain = is_host(tensor) and not MODES.stack and all(type(i) in _BASIC for i in items)
    if (plain and not is_grad_enabled()) or (plain and not tensor._requires_grad and not _wants_grad(value)):
        check_inplace(tensor)
        _array_write(tensor, index, items, value)
        return
    steps, tensors = _parse(tensor, items)
    view = replay(tensor, steps)
    if not isinstance(value, TensorBase):
        value = _constant(view, value)
    if tensors and value.device != view.device:
        value = operator("device_put")(value, view.device)
    if tensors:
        call_inplace(operator("index_put"), view, (_positions(tensors), value), {})
    else:
        copy_into(view, _drop_ones(value, view))


def _positions(tensors: list[Any]) -> list[Any]:
    """Boolean masks replaced by the positions of their true elements, one index for each dimension of the mask."""
    indices: list[Any] = []
    for item in tensors:
        if item is None or item.dtype.kind != "bool":
            indices.append(item)
        elif item._array is not None:
            indices.extend(wrap(where) for where in item._array.nonzero())
        else:
            where = operator("nonzero")(item)
            indices.extend(operator("select")(where, 1, dim) for dim in range(item.ndim))
    return indices


def _scalar(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) or (isinstance(value, TensorBase) and value.ndim == 0)


def _wants_grad(value: Any) -> bool:
    return isinstance(value, TensorBase) and value._requires_grad


def _constant(view: Any, value: Any) -> Any:
    from .creation import as_tensor

    if view._array is None and isinstance(value, (int, float, complex, bool)):
        where = {} if view.device.type == "cpu" else {"device": view.device}
        return operator("full")((), value, dtype=view.dtype, **where)
    return as_tensor(value, dtype=view.dtype, device=view.device if on_device(view) else None)


def _drop_ones(value: Any, view: Any) -> Any:
    """Leading dimensions of size 1 that the target lacks are dropped, as NumPy and PyTorch do in assignments."""
    while value.ndim > view.ndim and value._sizes[0] == 1:
        value = operator("reshape")(value, value._sizes[1:])
    return value


# -- arrays ----------------------------------------------------------------------------------------------


class _ArrayIndex:
    """A view step that indexes the array at once; replayed as the operators it stands for when those are needed."""

    id = "getitem"

    def __call__(self, base: Any, index: Any) -> Any:
        return getitem(base, index)

    def scatter_rule(self, base: Any, value: Any, index: Any) -> Any:
        """``base`` with ``value`` at ``index``."""
        steps, _ = _parse(base, index if type(index) is tuple else (index,))
        return scatter(base, steps, value)

    @property
    def schema(self) -> _ArrayIndex:
        """Binds like a schema."""
        return self

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments as they are."""
        return args


_array_index: Any = _ArrayIndex()


def _array_view(tensor: Any, index: Any, items: tuple[Any, ...]) -> Any:
    try:
        value = tensor._array[index if type(index) is not tuple or Ellipsis in items else (*items, Ellipsis)]
    except IndexError as error:
        try:
            _parse(tensor, items)  # raises the message that a user should see
        except IndexError as better:
            raise better from None
        raise error
    for item in items:
        if type(item) is slice and item.step is not None and item.step <= 0:
            raise ValueError("step must be greater than zero")
    if isinstance(value, np.generic):  # all dimensions were selected: NumPy gave a scalar, which is no view
        value = tensor._array[(*items, Ellipsis)]
    view = wrap_view(tensor, value)
    if view.storage is tensor.storage:
        mark_view(tensor, view, (_array_index, (index,), {}, None))
    if tensor._requires_grad and is_grad_enabled() and tensor.dtype.kind in ("float", "complex"):
        view._grad_fn = IndexNode(tensor, index)
    return view


class IndexNode(Node):
    """Backward of a basic index: zeros with the gradient at the index."""

    __slots__ = ("index",)

    def __init__(self, tensor: Any, index: Any) -> None:
        super().__init__((edge_of(tensor),), ((tensor._sizes, tensor.dtype),))
        self.index = index

    def apply(self, grads: list[Any]) -> list[Any]:
        """The gradient of the indexed tensor."""
        (gradient,) = grads
        shape = self.metas[0][0]
        if is_host(gradient) and not is_grad_enabled() and not MODES.stack:
            whole = np.zeros(shape, gradient._array.dtype)
            whole[self.index] = gradient._array
            return [wrap(whole)]
        zeros = operator("zeros")(shape, dtype=gradient.dtype, device=gradient.device)
        return [_array_index.scatter_rule(zeros, gradient, self.index)]

    def name(self) -> str:
        """As PyTorch prints it."""
        return "SliceBackward0" if isinstance(self.index, slice) else "SelectBackward0"


def _array_write(tensor: Any, index: Any, items: tuple[Any, ...], value: Any) -> None:
    for item in items:
        if type(item) is slice and item.step is not None and item.step <= 0:
            raise ValueError("step must be greater than zero")
    check_overlap(tensor)
    array = tensor._array
    if not is_host(tensor) or (isinstance(value, TensorBase) and not is_host(value)):
        if not isinstance(value, TensorBase):
            value = _constant(tensor, value)
        copy_into(getitem(tensor, index), _drop_ones(value, getitem(tensor, index)))
        return
    if isinstance(value, TensorBase):
        if value._array is None:
            assign(getitem(tensor, index), value)  # raises: no data to write
        value = value._array
    if isinstance(value, (complex, np.ndarray)) and array.dtype.kind != "c":
        value = value.real
    try:
        with np.errstate(all="ignore"):
            array[index] = converted(np.asarray(value), array.dtype) if tensor.dtype is float8_e4m3fn else value
    except IndexError:
        _parse(tensor, items)
        raise
    except ValueError as error:
        raise RuntimeError(f"the value does not fit where it is assigned: {error}") from None
    bump(tensor)


# -- parsing -----------------------------------------------------------------------------------------------


def _parse(tensor: Any, items: tuple[Any, ...]) -> tuple[list[ViewStep], list[Any] | None]:
    """The view steps, and for each remaining dimension its index tensor or None (None: there is no index tensor)."""
    sizes = tensor._sizes
    consumed = sum(_consumes(item) for item in items)
    if consumed > len(sizes):
        raise IndexError(f"too many indices for tensor of dimension {len(sizes)}")
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not any(item is Ellipsis for item in items):
        items = (*items, Ellipsis)
    steps: list[ViewStep] = []
    tensors: list[Any] = []
    dim = source = 0
    for item in items:
        if item is Ellipsis:
            skipped = len(sizes) - consumed
            tensors.extend([None] * skipped)
            dim, source = dim + skipped, source + skipped
        elif item is None:
            steps.append((operator("unsqueeze"), (dim,), {}, None))
            tensors.append(None)
            dim += 1
        elif type(item) is slice:
            if item != slice(None):
                steps.append((operator("slice"), (dim, *_slice(item)), {}, None))
            tensors.append(None)
            dim, source = dim + 1, source + 1
        elif _is_integer(item):
            steps.append((operator("select"), (dim, _checked(item, source, sizes[source])), {}, None))
            source += 1
        else:
            item = _index_tensor(item)
            if item.dtype.kind == "bool" and item.ndim == 0:
                steps.append((operator("unsqueeze"), (dim,), {}, None))
                item = operator("reshape")(item, (1,))
                tensors.append(item)
                dim += 1
                continue
            width = item.ndim if item.dtype.kind == "bool" else 1
            tensors.append(item)
            if item.dtype.kind == "bool":
                _check_mask(item, sizes, source)
            dim, source = dim + width, source + width
    return steps, tensors if any(t is not None for t in tensors) else None


def _consumes(item: Any) -> int:
    if item is None or item is Ellipsis or type(item) is bool:
        return 0
    if isinstance(item, (TensorBase, np.ndarray)):
        boolean = item.dtype.kind == "bool" if isinstance(item, TensorBase) else item.dtype.kind == "b"
        return item.ndim if boolean else 1
    if type(item) is list and _is_mask(item):
        return np.asarray(item).ndim
    return 1


def _is_mask(item: Any) -> bool:
    while type(item) in (list, tuple) and item:
        item = item[0]
    return type(item) is bool


def _is_integer(item: Any) -> bool:
    if type(item) is bool or isinstance(item, (TensorBase, np.ndarray)):
        return isinstance(item, TensorBase) and item._array is not None and item.ndim == 0 and item.dtype.kind == "int"
    return isinstance(item, (int, np.integer)) or (hasattr(item, "__index__") and not hasattr(item, "shape"))


def _checked(item: Any, dim: int, size: Any) -> Any:
    value = item if hasattr(item, "expr") else int(item.item()) if isinstance(item, TensorBase) else int(item)
    if type(value) is int and type(size) is int and not -size <= value < size:
        raise IndexError(f"index {value} is out of bounds for dimension {dim} with size {size}")
    return value


def _slice(item: slice) -> tuple[Any, Any, Any]:
    step = 1 if item.step is None else _bound(item.step)
    if type(step) is int and step <= 0:
        raise ValueError("step must be greater than zero")
    return _bound(item.start), _bound(item.stop), step


def _bound(value: Any) -> Any:
    if value is None or type(value) is int or hasattr(value, "expr"):
        return value
    return int(value.item()) if isinstance(value, TensorBase) else value.__index__()


def _index_tensor(item: Any) -> Any:
    if isinstance(item, TensorBase):
        found = item
    elif isinstance(item, (bool, list, tuple, np.ndarray, range)):
        array = np.asarray(item if not isinstance(item, (list, tuple)) else [_plain_item(i) for i in item])
        found = wrap(array.astype(np.int64) if array.size == 0 and array.dtype.kind == "f" else array)
    elif isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    else:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(item).__name__})"
        )
    if found.dtype.kind not in ("int", "bool"):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return found


def _plain_item(item: Any) -> Any:
    return item.numpy() if isinstance(item, TensorBase) else item


def _check_mask(mask: Any, sizes: tuple[Any, ...], source: int) -> None:
    for offset, size in enumerate(mask._sizes):
        want = sizes[source + offset]
        if type(size) is int and type(want) is int and size != want:
            raise IndexError(
                f"The shape of the mask {list(mask._sizes)} at index {offset} does not match the shape of the indexed "
                f"tensor {list(sizes)} at index {source + offset}"
            )
