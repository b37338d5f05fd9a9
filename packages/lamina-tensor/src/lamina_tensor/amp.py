"""Automatic mixed precision: inside ``autocast`` each operator computes in the dtype that suits it.

It is about the tensors of one kind of device. Products (matmul, linear, convolutions, attention) take bfloat16 or
float16, losses and other sums that lose digits take float32, ``cat`` and ``stack`` the widest of their arguments, and
all other operators what they are given.

>>> from lamina_tensor import ones
>>> with autocast("cpu"):
...     (ones(2, 2) @ ones(2, 2)).dtype
lamina.bfloat16

It is a mode that sees each operator call of the front end first; what operators call inside is left alone. Its state
is read and set by two functions, which capture knows: in a captured graph the calls inside stand in a region.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lamina_fx import DType, bfloat16, dtype_of, float16, float32, float64
from lamina_prims import operator
from lamina_prims.modes import MODES, Mode

from ._C import TensorBase
from .cuda.devices import is_available
from .dispatch import create
from .grad_scaler import GradScaler

__all__ = [
    "GradScaler", "autocast", "autocast_state", "custom_bwd", "custom_fwd", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "is_autocast_available", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "set_autocast_state", "state_set",
]  # fmt: skip

_LOWER = frozenset(
    [
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "linear",
        "matmul",
        "linalg_matmul",
        "mm",
        "bmm",
        "mv",
        "dot",
        "vdot",
        "addmm",
        "addmv",
        "addbmm",
        "baddbmm",
        "chain_matmul",
        "einsum",
        "tensordot",
        "bilinear",
        "prelu",
        "scaled_dot_product_attention",
    ]
)
_WIDE = frozenset(
    [
        "mse_loss",
        "nll_loss",
        "cross_entropy",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "kl_div",
        "cosine_embedding_loss",
        "hinge_embedding_loss",
        "margin_ranking_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "poisson_nll_loss",
        "gaussian_nll_loss",
        "prod",
        "quantile",
        "nanquantile",
        "stft",
        "cdist",
        "trace",
        "view_as_complex",
        "polar",
        "cholesky",
        "inv",
        "grid_sample",
        "fft_c2c",
        "fft_r2c",
        "fft_c2r",
        "fft",
        "fft2",
        "fftn",
        "avg_pool3d",
    ]
)
_WIDEST = frozenset(("cat", "stack"))


class _Autocast(Mode):
    """The mode itself: converts the arguments, then lets the call go on."""

    def __init__(self, dtype: DType, device: str) -> None:
        self.dtype, self.device = dtype, device

    def handle(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do the call on converted arguments."""
        id_ = operator.id
        if id_ in _LOWER:
            args, kwargs = _cast(args, self.dtype, self.device), _cast(kwargs, self.dtype, self.device)
        elif id_ in _WIDE:
            args, kwargs = _cast(args, float32, self.device), _cast(kwargs, float32, self.device)
        elif id_ in _WIDEST:
            widest = float32 if any(t.dtype is float32 for t in _tensors(args, self.device)) else self.dtype
            args = _cast(args, widest, self.device)
        if MODES.creator is not None:
            return operator(*args, **kwargs)
        MODES.creator = create  # calls without tensors make tensors
        try:
            return operator(*args, **kwargs)
        finally:
            MODES.creator = None


def _eligible(value: Any, device: str) -> bool:
    return (
        isinstance(value, TensorBase)
        and value.dtype.kind == "float"
        and value.dtype is not float64
        and value.device.type == device
    )


def _cast(value: Any, dtype: DType, device: str) -> Any:
    if isinstance(value, TensorBase):
        if _eligible(value, device) and value.dtype is not dtype:
            return operator("convert_element_type")(value, dtype)
        return value
    if type(value) in (tuple, list):
        return type(value)(_cast(v, dtype, device) for v in value)
    if type(value) is dict:
        return {k: _cast(v, dtype, device) for k, v in value.items()}
    return value


def _tensors(values: Any, device: str) -> Iterator[Any]:
    for value in values:
        if type(value) in (tuple, list):
            yield from _tensors(value, device)
        elif _eligible(value, device):
            yield value


_MODES = {
    "bfloat16": _Autocast(bfloat16, "cpu"),
    "float16": _Autocast(float16, "cpu"),
    "cuda:bfloat16": _Autocast(bfloat16, "cuda"),
    "cuda:float16": _Autocast(float16, "cuda"),
}


def autocast_state() -> str | None:
    """The dtype of products inside ``autocast``, by name (``"cuda:float16"`` for a GPU's); None outside."""
    stack = MODES.stack
    if stack and type(stack[0]) is _Autocast:
        return _state(stack[0].device, stack[0].dtype)
    return None


def _state(device: str, dtype: DType) -> str:
    return dtype.name if device == "cpu" else f"{device}:{dtype.name}"


def set_autocast_state(state: str | None) -> str | None:
    """Switch autocast on (by a state's name) or off (None); returns what was before."""
    before, stack = autocast_state(), MODES.stack
    others = stack if before is None else stack[1:]
    # Outermost: other modes see the call as it was written.
    MODES.stack = others if state is None else (_MODES[state], *others)
    return before


@contextmanager
def state_set(state: str | None) -> Iterator[None]:
    """While the block runs, autocast is in this state."""
    before = set_autocast_state(state)
    try:
        yield
    finally:
        set_autocast_state(before)


class autocast:
    """Context manager and decorator. ``dtype`` is bfloat16 (for "cuda" float16) unless given.

    ``enabled=False`` switches it off inside. One kind of device at a time: of two, the inner one counts.

    Raises:
        RuntimeError: an unknown device type, or a dtype that is neither bfloat16 nor float16.
    """

    def __init__(
        self, device_type: str = "cpu", dtype: DType | None = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        if device_type not in ("cpu", "cuda"):
            raise RuntimeError(f"autocast: unknown device type {device_type!r}; it is 'cpu' or 'cuda'")
        dtype = dtype or (bfloat16 if device_type == "cpu" else float16)
        if device_type == "cuda" and enabled and not is_available():
            warnings.warn("autocast for 'cuda' does nothing here: there is no GPU", stacklevel=2)
            enabled = False
        if enabled and dtype is not bfloat16 and dtype is not float16:
            raise RuntimeError(f"autocast: products can be bfloat16 or float16, not {dtype}")
        self.device, self.fast_dtype, self._enabled = device_type, dtype, bool(enabled)
        self.previous: list[str | None] = []
        del cache_enabled  # conversions are not kept: compiled programs do each once

    def __enter__(self) -> autocast:
        state = _state(self.device, self.fast_dtype) if self._enabled else None
        before = autocast_state()
        if state is None and before is not None and before.startswith("cuda") is not (self.device == "cuda"):
            state = before  # switched off for the other kind of device
        self.previous.append(set_autocast_state(state))
        return self

    def __exit__(self, *error: object) -> None:
        set_autocast_state(self.previous.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled):
                return function(*args, **kwargs)

        return run


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Is autocast on for this kind of device."""
    state = autocast_state()
    return state is not None and state.startswith("cuda") is (device_type == "cuda")


def is_autocast_cpu_enabled() -> bool:
    """Is autocast on for the CPU."""
    return is_autocast_enabled("cpu")


def is_autocast_available(device_type: str) -> bool:
    """True for the CPU, and for ``"cuda"`` where there is a GPU."""
    return device_type == "cpu" or (device_type == "cuda" and is_available())


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """The dtype of products inside autocast for this kind of device."""
    if is_autocast_enabled(device_type):
        return dtype_of(str(autocast_state()).rpartition(":")[2])
    return float16 if device_type == "cuda" else bfloat16


def get_autocast_cpu_dtype() -> DType:
    """The dtype of products inside autocast."""
    return get_autocast_dtype()


def custom_fwd(fwd: Any = None, *, device_type: str = "cpu", cast_inputs: DType | None = None) -> Any:
    """Decorator of a custom function's forward: with ``cast_inputs`` it runs on converted inputs, autocast off."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def run(*args: Any, **kwargs: Any) -> Any:
        if cast_inputs is None or autocast_state() is None:
            return fwd(*args, **kwargs)
        args, kwargs = _cast(args, cast_inputs, device_type), _cast(kwargs, cast_inputs, device_type)
        with state_set(None):
            return fwd(*args, **kwargs)

    return run


def custom_bwd(bwd: Any = None, *, device_type: str = "cpu") -> Any:
    """Decorator of a custom function's backward: gradients run in the dtypes they have."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd
