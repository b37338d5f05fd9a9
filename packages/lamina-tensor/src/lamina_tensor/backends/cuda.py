"""Switches of GPUs: kept and read back. Products of float32 are computed in float32 in any case."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built() -> bool:
    """Are GPUs supported by this build: always, through the extra ``cuda``."""
    return True
