"""How many threads compiled kernels use, under PyTorch's names."""

from __future__ import annotations

from lamina_inductor.host import num_threads, set_num_threads

__all__ = ["get_num_threads", "set_num_threads"]


def get_num_threads() -> int:
    """How many threads a compiled kernel may use."""
    return num_threads()
