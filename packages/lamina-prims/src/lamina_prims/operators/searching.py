"""Searching sorted sequences: searchsorted and bucketize."""

from __future__ import annotations

from typing import Any

from lamina_fx import TensorSpec, int32, int64

from ..arrays import array_namespace
from ..registry import composite, primitive
from ..samples import call, calls, error, tensor
from ..types import Scalar, Tensor

__all__ = ["bucketize", "searchsorted"]


def _search_meta(
    sorted_sequence: Tensor,
    input: Tensor | Scalar,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> TensorSpec:
    rank = len(sorted_sequence.shape)
    shape = tuple(getattr(input, "shape", ()))
    if rank == 0:
        raise RuntimeError("searchsorted: the sorted sequence must have at least one dimension")
    if rank > 1 and shape[:-1] != tuple(sorted_sequence.shape[:-1]):
        raise RuntimeError(
            f"searchsorted: the sequence {tuple(sorted_sequence.shape)} must have one dimension, or the same leading "
            f"sizes as the values {shape}"
        )
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if side == "left" and right:
        raise RuntimeError("searchsorted: side='left' and right=True contradict each other")
    return TensorSpec(shape, int32 if out_int32 else int64, None, sorted_sequence.device)


def _search_reference(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    xp = array_namespace(sorted_sequence, input)
    sequence, values = xp.asarray(sorted_sequence), xp.asarray(input)
    if sorter is not None:
        sequence = xp.take_along_axis(sequence, sorter, -1)
    where = "right" if right or side == "right" else "left"
    dtype = xp.int32 if out_int32 else xp.int64
    if sequence.ndim == 1:
        return xp.asarray(xp.searchsorted(sequence, values, side=where)).astype(dtype)
    rows, wanted = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
    found = [xp.searchsorted(row, want, side=where) for row, want in zip(rows, wanted, strict=True)]
    return xp.stack(found).reshape(values.shape).astype(dtype) if found else xp.zeros(values.shape, dtype)


@primitive(
    names=("searchsorted",),
    meta=_search_meta,
    reference=_search_reference,
    samples=calls(
        call(tensor(5, kind="sorted"), tensor(3, 2)),
        call(tensor(2, 5, kind="sorted"), tensor(2, 3), right=True),
        call(
            tensor(5, kind="sorted", dtype="int64", low=0, high=5),
            tensor(4, dtype="int64", low=0, high=5),
            side="right",
        ),
        call(tensor(5, kind="sorted"), 0.5, out_int32=True),
    ),
    errors=[
        error(RuntimeError, "contradict", tensor(3), tensor(2), right=True, side="left"),
        error(RuntimeError, "leading", tensor(2, 3), tensor(3, 2)),
    ],
)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Scalar,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each value would stand in the last dimension of the sorted sequence: before equals, or behind (right)."""
    ...


@composite(
    names=("bucketize", "Tensor.bucketize"),
    samples=calls(call(tensor(3, 2), tensor(5, kind="sorted")), call(0.5, tensor(5, kind="sorted"), right=True)),
)
def bucketize(input: Tensor | Scalar, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket of each value: how many boundaries are less (``right``: or equal)."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
