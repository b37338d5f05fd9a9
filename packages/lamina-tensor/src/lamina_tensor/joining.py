"""Joins the C part to the Python part, once, when the package is imported."""

from __future__ import annotations

from typing import Any

from numpy._core import umath

from lamina_fx import CPU, DTYPES, TensorSpec
from lamina_fx.device import register_default
from lamina_prims.arrays import numpy_dtype, register_device
from lamina_prims.modes import MODES
from lamina_prims.registry import operators

from . import _C
from .autograd.record import record
from .creation import switch_default_device
from .dispatch import FAST, make_fast, slow_call
from .kernels import KERNELS, UFUNCS, VIEWS
from .methods import install_methods
from .size import Size
from .tensor import Tensor

__all__: list[str] = []

_SPECIAL = ("bfloat16", "float8_e4m3fn", "float8_e5m2")

_C.init(
    tensor_type=Tensor,
    size_type=Size,
    dtypes=DTYPES,
    cpu=CPU,
    modes=MODES,
    make_spec=TensorSpec,
    errstate_var=umath._extobj_contextvar,
    errstate_value=umath._make_extobj(all="ignore"),
    slow=slow_call,
    record=record,
    special_dtypes={d.code: numpy_dtype(d) for d in DTYPES if d.name in _SPECIAL},
)


def _namespace_on(index: int | None) -> Any:
    from .cuda.activation import namespace_on

    return namespace_on(index)


register_device(_namespace_on)
register_default(switch_default_device)
for _id in (*UFUNCS, *KERNELS, *VIEWS):
    if (_op := operators().get(_id)) is not None:
        FAST[_op] = make_fast(_op, _id)
install_methods(Tensor)
