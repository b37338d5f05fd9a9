"""What is raised for an index out of range: the operator that the user called is named, not the one that found it.

>>> from lamina_prims import operator
>>> import numpy as np
>>> operator("cross_entropy")(np.ones((2, 3), np.float32), np.array([1, 7]))
Traceback (most recent call last):
    ...
IndexError: cross_entropy: index 7 is out of bounds for dimension 1 with size 3
"""

from __future__ import annotations

__all__ = ["called_name", "index_error", "index_error_type", "raise_as_called"]

_TYPES: dict[str, type[Exception]] = {
    "cross_entropy": IndexError, "nll_loss": IndexError, "embedding": IndexError, "one_hot": RuntimeError,
    "index_add": RuntimeError,
}  # fmt: skip
"""PyTorch's, where they are others than those of the primitive that finds the index."""


def called_name(id: str) -> str:
    """An operator's name in messages: one for all overloads; ``x[i]`` is an index."""
    return "index" if id == "subscript" else id.partition(".")[0]


def index_error_type(name: str, found: type[Exception]) -> type[Exception]:
    """What the operator of this name raises, where a primitive in it would raise ``found``."""
    return _TYPES.get(name, found)


def index_error(name: str, index: object, size: object, dim: int, kind: type[Exception]) -> Exception:
    """The error of a primitive. ``index``: the wrong one."""
    said = f"index {index} is out of bounds for dimension {dim} with size {size}"
    problem = index_error_type(name, kind)(f"{name}: {said}")
    problem.lamina_index = said, kind  # type: ignore[attr-defined]
    return problem


def raise_as_called(problem: Exception, id: str) -> None:
    """Raise an index error from the body of a composite in the composite's name; nothing for other errors."""
    known = getattr(problem, "lamina_index", None)
    if known is None:
        return
    said, kind = known
    name = called_name(id)
    renamed = index_error_type(name, kind)(f"{name}: {said}")
    renamed.lamina_index = known  # type: ignore[attr-defined]
    raise renamed from None
