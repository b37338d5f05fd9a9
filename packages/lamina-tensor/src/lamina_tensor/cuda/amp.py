"""``autocast`` and ``GradScaler`` of ``lamina.amp`` for CUDA tensors, by their older names."""

from __future__ import annotations

from typing import Any

from lamina_fx import DType

from .. import amp
from ..amp import custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """``amp.autocast("cuda", ...)``."""

    def __init__(self, enabled: bool = True, dtype: DType | None = None, cache_enabled: Any = None) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler("cuda", ...)``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)
