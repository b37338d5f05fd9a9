"""Element types: their names, sizes and kinds. Promotion rules live in lamina_prims, not here.

>>> float32.itemsize, float32.kind, str(float32)
(4, 'float', 'float32')
>>> dtype_of("bool") is bool_
True
"""

from __future__ import annotations

__all__ = [
    "DTYPES",
    "DType",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "dtype_of",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class DType:
    """One element type. Instances are singletons: compare with ``is`` or ``==``.

    Attributes:
        name: ``"float32"`` and so on; also how the text form of a graph spells it.
        kind: ``"bool"``, ``"int"``, ``"float"`` or ``"complex"``.
        itemsize: bytes of one element.
        is_signed: False for bool and the unsigned integers.
        code: the number of this type in the C header ``lamina/tensor_abi.h``.
    """

    __slots__ = ("code", "is_signed", "itemsize", "kind", "name")

    def __init__(self, name: str, kind: str, itemsize: int, is_signed: bool, code: int) -> None:
        self.name = name
        self.kind = kind
        self.itemsize = itemsize
        self.is_signed = is_signed
        self.code = code

    @property
    def is_floating_point(self) -> bool:
        """True for the real floating-point types."""
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.kind == "complex"

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"lamina.{self.name.rstrip('_')}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return dtype_of, (self.name,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self


bool_ = DType("bool", "bool", 1, False, 0)
uint8 = DType("uint8", "int", 1, False, 1)
uint16 = DType("uint16", "int", 2, False, 2)
uint32 = DType("uint32", "int", 4, False, 3)
uint64 = DType("uint64", "int", 8, False, 4)
int8 = DType("int8", "int", 1, True, 5)
int16 = DType("int16", "int", 2, True, 6)
int32 = DType("int32", "int", 4, True, 7)
int64 = DType("int64", "int", 8, True, 8)
float16 = DType("float16", "float", 2, True, 9)
bfloat16 = DType("bfloat16", "float", 2, True, 10)
float32 = DType("float32", "float", 4, True, 11)
float64 = DType("float64", "float", 8, True, 12)
complex64 = DType("complex64", "complex", 8, True, 13)
complex128 = DType("complex128", "complex", 16, True, 14)
float8_e4m3fn = DType("float8_e4m3fn", "float", 1, True, 15)
float8_e5m2 = DType("float8_e5m2", "float", 1, True, 16)

DTYPES: tuple[DType, ...] = (
    bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16,
    float32, float64, complex64, complex128, float8_e4m3fn, float8_e5m2,
)  # fmt: skip
"""All element types, indexed by ``code``."""

_BY_NAME = {d.name: d for d in DTYPES}


def dtype_of(name: str) -> DType:
    """Return the element type of this name.

    Raises:
        ValueError: no such type; the message lists those there are.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"no dtype named {name!r}; known: {', '.join(_BY_NAME)}") from None
