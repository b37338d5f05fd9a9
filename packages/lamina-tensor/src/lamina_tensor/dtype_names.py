"""Names of element types as front-end messages spell them, and the short names of the namespace."""

from __future__ import annotations

from lamina_fx import DType, bool_, complex64, complex128, dtype_of, float16, float32, float64, int16, int32, int64

__all__ = ["ALIASES", "legacy_type_name", "scalar_type_name"]

_SCALAR = {
    "bool": "Bool", "uint8": "Byte", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "int8": "Char",
    "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half", "bfloat16": "BFloat16", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2",
}  # fmt: skip

ALIASES: dict[str, DType] = {
    "bool": bool_, "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
"""Second names of element types in the namespace: ``lamina.long`` and so on."""


def scalar_type_name(dtype: DType) -> str:
    """``"Float"``, ``"Long"``, ... as error messages name types."""
    return _SCALAR[dtype.name]


def legacy_type_name(dtype: DType) -> str:
    """``"FloatTensor"``, ... as ``Tensor.type()`` gives it."""
    return f"{_SCALAR[dtype.name]}Tensor"


def dtype_from_legacy(name: str) -> DType:
    """The element type of ``"FloatTensor"`` or ``"lamina.FloatTensor"``.

    Raises:
        ValueError: no such type.
    """
    word = name.rpartition(".")[2]
    for dtype, scalar in _SCALAR.items():
        if word == f"{scalar}Tensor":
            return dtype_of(dtype)
    raise ValueError(f"invalid type: {name!r}")
