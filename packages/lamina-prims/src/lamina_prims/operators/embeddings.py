"""Tables of vectors looked up by number: embedding, embedding_bag, one_hot."""

from __future__ import annotations

from typing import Any

from lamina_fx import int64

from ..arrays import element_type
from ..precision import narrow, widen
from ..registry import composite, ops
from ..samples import call, calls, error, tensor
from ..types import Tensor
from .indexing import never_negative

__all__: list[str] = []


def _ids(*shape: int, high: int = 5) -> Any:
    return tensor(*shape, dtype="int64", low=0, high=high)


def _padding(padding_idx: int | None, rows: Any) -> Any:
    if padding_idx is None:
        return None
    if type(rows) is int and not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def _integers(name: str, input: Tensor) -> None:
    if element_type(input).kind != "int":
        raise RuntimeError(
            f"{name}: Expected tensor for argument 'indices' to have an integer type, but got {element_type(input)}"
        )


def _not_in_place(name: str, max_norm: float | None) -> None:
    if max_norm is not None:
        raise RuntimeError(f"{name}: max_norm changes the weight in place; renormalise it before the call")


@composite(
    names=("nn.functional.embedding",),
    samples=calls(
        call(_ids(2, 3), tensor(5, 4)),
        call(_ids(), tensor(5, 4)),
        call(_ids(0, 2), tensor(5, 4)),
        call(_ids(6), tensor(5, 4, dtype="bfloat16")),
    ),
    errors=[
        error(RuntimeError, "integer type", tensor(2), tensor(5, 4)),
        error(RuntimeError, "2-D", _ids(2), tensor(5)),
        error(AssertionError, "within", _ids(2), tensor(5, 4), 7),
        error(IndexError, "out of bounds", tensor(2, dtype="int64", low=-3, high=-1), tensor(5, 4)),
    ],
)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` (V, D) by number: (*) -> (*, D). The row ``padding_idx`` gets no gradient."""
    _integers("embedding", input)
    if len(weight.shape) != 2:
        raise RuntimeError(f"embedding: 'weight' must be 2-D, got {list(weight.shape)}")
    _not_in_place("embedding", max_norm)
    _padding(padding_idx, weight.shape[0])
    return ops.index(weight, [never_negative(input, weight.shape[0])])


@embedding.vjp
def _(ct, input, weight_spec, padding_idx, scale_grad_by_freq):
    rows = weight_spec.shape[0]
    ct = widen(ct)
    if scale_grad_by_freq:
        flat = ops.reshape(input, (-1,))
        ones = ops.full(tuple(flat.shape), 1.0, dtype=element_type(ct), device=ct.device)
        zeros = ops.zeros((rows,), dtype=element_type(ct), device=ct.device)
        counts = ops.index(ops.scatter_add(zeros, 0, ops.convert_element_type(flat, int64), ones), [input])
        ct = ops.div(ct, ops.unsqueeze(counts, -1))
    place = _padding(padding_idx, rows)
    if place is not None:
        ct = ops.where(ops.unsqueeze(ops.ne(input, place), -1), ct, 0.0)
    table = ops.zeros(tuple(weight_spec.shape), dtype=element_type(ct), device=ct.device)
    return None, ops.index_put(table, [input], ct, True)


def _bags(input: Tensor, offsets: Any, include_last_offset: bool) -> tuple[Tensor, Any]:
    """(the bag of each element of a 1-d input, how many bags)."""
    count = offsets.shape[0] - 1 if include_last_offset else offsets.shape[0]
    starts = ops.slice(offsets, 0, 0, count)
    place = ops.arange(input.shape[0], device=input.device)
    return ops.sub(ops.searchsorted(starts, place, right=True), 1), count


def _check_bag(input: Tensor, offsets: Any, mode: str, per_sample_weights: Any) -> None:
    _integers("embedding_bag", input)
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights was given, but mode is {mode!r}, not 'sum'")
    if len(input.shape) == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: if input is 2D, then offsets has to be None")
    elif len(input.shape) != 1 or offsets is None:
        raise ValueError("embedding_bag: the input has to be 2D, or 1D with offsets")


@composite(
    names=("nn.functional.embedding_bag",),
    samples=calls(
        call(_ids(3, 4), tensor(5, 2)),
        call(_ids(3, 4), tensor(5, 2), mode="sum", per_sample_weights=tensor(3, 4)),
        call(_ids(3, 4), tensor(5, 2, kind="distinct"), mode="max"),
        call(_ids(6), tensor(5, 2), tensor(3, dtype="int64", low=0, high=6, kind="sorted"), mode="sum"),
        call(_ids(3, 4), tensor(5, 2), padding_idx=1, mode="mean"),
    ),
    errors=[
        error(ValueError, "mode", _ids(3, 4), tensor(5, 2), mode="median"),
        error(ValueError, "offsets", _ids(3), tensor(5, 2)),
    ],
)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sum, mean or maximum of the rows of each bag: (B, N) or (N) with the bags' ``offsets`` -> (B, D)."""
    _check_bag(input, offsets, mode, per_sample_weights)
    _not_in_place("embedding_bag", max_norm)
    rows = widen(ops.embedding(input, weight, padding_idx, None, norm_type, scale_grad_by_freq))
    place = _padding(padding_idx, weight.shape[0])
    counted = ops.eq(input, input) if place is None else ops.ne(input, place)
    if per_sample_weights is not None:
        rows = ops.mul(rows, ops.unsqueeze(widen(per_sample_weights), -1))
    shown = ops.unsqueeze(counted, -1)
    if len(input.shape) == 2:
        return narrow(_reduce_rows(rows, shown, mode), weight)
    bag, count = _bags(input, offsets, include_last_offset)
    table = ops.zeros((count, weight.shape[1]), dtype=element_type(rows), device=rows.device)
    if mode == "max":
        index = ops.expand(ops.unsqueeze(bag, -1), tuple(rows.shape))
        return narrow(ops.scatter_reduce(table, 0, index, rows, reduce="amax", include_self=False), weight)
    total = ops.index_put(table, [bag], ops.where(shown, rows, 0.0), True)
    if mode == "mean":
        ones = ops.convert_element_type(counted, element_type(rows))
        sizes = ops.zeros((count,), dtype=element_type(rows), device=rows.device)
        sizes = ops.scatter_add(sizes, 0, bag, ones)
        total = ops.div(total, ops.unsqueeze(ops.maximum(sizes, 1.0), -1))
    return narrow(total, weight)


def _reduce_rows(rows: Tensor, shown: Tensor, mode: str) -> Tensor:
    if mode == "max":
        any_row = ops.any(shown, 1)
        return ops.where(any_row, ops.amax(ops.where(shown, rows, -float("inf")), 1), 0.0)
    total = ops.sum(ops.where(shown, rows, 0.0), (1,))
    if mode == "sum":
        return total
    sizes = ops.sum(ops.where(shown, 1.0, 0.0), (1,))
    return ops.div(total, ops.convert_element_type(ops.maximum(sizes, 1.0), element_type(total)))


@composite(
    names=("nn.functional.one_hot",),
    samples=calls(call(_ids(2, 3), 5), call(_ids(), 6)),
    errors=[error(RuntimeError, "num_classes", _ids(2)), error(RuntimeError, "integer type", tensor(2), 3)],
)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class number and 0 elsewhere: (*) -> int64 (*, num_classes).

    The front end turns ``num_classes=-1`` into the largest class number plus 1, which a graph cannot know.
    """
    _integers("one_hot", tensor)
    if num_classes < 0:
        raise RuntimeError(
            "one_hot: num_classes must not be negative; a graph cannot look for the largest class number"
        )
    place = ops.arange(num_classes, device=tensor.device)
    known = ops.reshape(ops.gather(place, 0, ops.reshape(ops.convert_element_type(tensor, int64), (-1,))), tensor.shape)
    return ops.convert_element_type(ops.eq(ops.unsqueeze(known, -1), place), int64)
