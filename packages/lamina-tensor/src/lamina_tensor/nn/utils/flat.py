"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from ...namespace import root
from ...tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements in one vector."""
    return root.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters' data from one vector."""
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[at : at + count].view_as(parameter).data
        at += count
