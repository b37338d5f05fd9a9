"""Which dtypes have an order: all but the complex ones."""

from __future__ import annotations

from lamina_fx import DType

__all__ = ["ordered"]


def ordered(name: str, dtype: DType) -> DType:
    """``dtype``, for the operator ``name``, which compares elements.

    Raises:
        RuntimeError: complex numbers have no order.
    """
    if dtype.kind == "complex":
        raise RuntimeError(f"{name} is not defined for {dtype}: complex numbers have no order")
    return dtype
