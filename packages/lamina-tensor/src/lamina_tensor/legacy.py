"""Names of tensor types: ``FloatTensor(2, 3)``, ``isinstance(x, LongTensor)``, ``x.type(ByteTensor)``.

>>> LongTensor([1, 2]).dtype
lamina.int64
>>> isinstance(FloatTensor(2), FloatTensor)
True
"""

from __future__ import annotations

from typing import Any

from lamina_fx import Device, DType, dtype_of
from lamina_prims import operator

from ._C import TensorBase
from .creation import tensor
from .dispatch import slow_resolved

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor",
]  # fmt: skip


class _TensorType(type):
    """Instances are the tensors of one element type on one kind of device; calling it makes one."""

    dtype: DType
    place: str

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, TensorBase) and value.dtype is cls.dtype and value.device.type == cls.place

    def __call__(cls, *data: Any) -> Any:
        """Uninitialised of the given sizes, or a copy of data."""
        if len(data) == 1 and isinstance(data[0], TensorBase):
            if not isinstance(data[0], cls):
                raise TypeError(
                    f"{cls.__name__}(tensor) wants a tensor of {cls.dtype} on {cls.place}, got {data[0].spec}"
                )
            return data[0].detach()
        sizes = data[0] if len(data) == 1 and type(data[0]) is not tuple and isinstance(data[0], tuple) else data
        if all(isinstance(n, int) for n in sizes):
            shape = tuple(sizes) if sizes else (0,)
            return slow_resolved(operator("empty"), (shape,), {"dtype": cls.dtype, "device": Device(cls.place)})
        return tensor(data[0], dtype=cls.dtype, device=cls.place)


def _make(name: str, dtype: str, place: str = "cpu") -> Any:
    return _TensorType(name, (), {"dtype": dtype_of(dtype), "place": place, "__doc__": f"Tensors of {dtype}."})


def of_cuda(name: str) -> Any:
    """``cuda.FloatTensor`` and so on: the type of that name for tensors on a GPU; None: there is none."""
    return _make(name, globals()[name].dtype.name, "cuda") if name in __all__ else None


FloatTensor = _make("FloatTensor", "float32")
DoubleTensor = _make("DoubleTensor", "float64")
HalfTensor = _make("HalfTensor", "float16")
BFloat16Tensor = _make("BFloat16Tensor", "bfloat16")
LongTensor = _make("LongTensor", "int64")
IntTensor = _make("IntTensor", "int32")
ShortTensor = _make("ShortTensor", "int16")
CharTensor = _make("CharTensor", "int8")
ByteTensor = _make("ByteTensor", "uint8")
BoolTensor = _make("BoolTensor", "bool")
