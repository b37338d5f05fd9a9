"""Eager tensors with autograd, nn and optim.

>>> from lamina_tensor import tensor
>>> x = tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lamina_fx import DTYPES, Device, DType
from lamina_prims.promotion import get_default_dtype, set_default_dtype

from . import _C, array_kernels, autograd, joining
from .autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .conversion import from_dlpack
from .creation import as_tensor, asarray, from_numpy, scalar_tensor, tensor
from .dtype_names import ALIASES
from .fake import fake_creation, fake_tensor
from .functions import *  # noqa: F403  (its __all__)
from .functions import __all__ as _functions
from .methods import function, namespace_names, operator_of
from .printing import set_printoptions
from .random import (
    Generator,
    bernoulli,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from .size import Size
from .storage import FakeStorage, NumpyStorage, TracedStorage
from .tensor import Tensor
from .tracing import Tracer, trace

__version__ = "0.1.0.dev0"
ACCEPTS = {"graph": (0,), "primset": (0,), "tensor_abi": (0,)}

device = Device
dtype = DType

__all__ = [
    *_functions,
    "ACCEPTS",
    "Device",
    "FakeStorage",
    "NumpyStorage",
    "Size",
    "Tensor",
    "TracedStorage",
    "Tracer",
    "as_tensor",
    "asarray",
    "autograd",
    "device",
    "dtype",
    "enable_grad",
    "fake_creation",
    "fake_tensor",
    "from_dlpack",
    "from_numpy",
    "function",
    "get_default_dtype",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "namespace_names",
    "no_grad",
    "operator_of",
    "scalar_tensor",
    "set_default_dtype",
    "set_grad_enabled",
    "set_printoptions",
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
    "tensor",
    "trace",
]

globals().update({str(d): d for d in DTYPES})
globals().update(ALIASES)
array_kernels.install()
_ = (_C, joining)


_MODULES = frozenset(
    (
        "amp", "backends", "cuda", "distributions", "fft", "func", "linalg", "nn", "optim", "random", "serialization",
        "special", "testing", "utils",
    )
)  # fmt: skip
_LATE = {
    **dict.fromkeys(("load", "save"), "serialization"),
    **dict.fromkeys(("autocast", "get_autocast_dtype", "is_autocast_enabled", "is_autocast_cpu_enabled"), "amp"),
    "get_autocast_cpu_dtype": "amp",
    **dict.fromkeys(
        ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor", "ShortTensor",
         "CharTensor", "ByteTensor", "BoolTensor"),
        "legacy",
    ),
    **dict.fromkeys(
        ("are_deterministic_algorithms_enabled", "get_default_device", "get_num_interop_threads",
         "is_deterministic_algorithms_warn_only_enabled", "set_default_device", "set_default_tensor_type",
         "set_num_interop_threads", "use_deterministic_algorithms"),
        "switches",
    ),
    **dict.fromkeys(("vmap",), "func"),
    "OutOfMemoryError": "cuda",
}  # fmt: skip
"""Names of the root that are imported when they are asked for, and the modules they are in."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _LATE:
        value = getattr(import_module(f".{_LATE[name]}", __name__), name)
        globals()[name] = value
        return value
    found = function(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *namespace_names(), *_MODULES, *_LATE})
