"""What ``features.py`` runs: the list, and what its functions share."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["FEATURES", "LeftOut", "close", "feature", "needs", "needs_two_devices", "raises"]

FEATURES: dict[str, Callable[[], Any]] = {}


class LeftOut(Exception):
    """The feature needs what is not there."""


def feature(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register it by its name."""
    FEATURES[function.__name__] = function
    return function


def raises(kind: type[BaseException], words: str, call: Callable[[], Any]) -> None:
    """The call raises this error with these words."""
    try:
        call()
    except kind as error:
        assert words in str(error), f"{words!r} is not in {str(error)!r}"
        return
    raise AssertionError(f"no {kind.__name__} ({words})")


def close(got: Any, want: Any, tolerance: float = 1e-4) -> None:
    """A CUDA tensor is near a CPU tensor."""
    import lamina_tensor as lt

    assert got.is_cuda and got.dtype is want.dtype, (got.device, got.dtype)
    lt.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance)


def needs_two_devices() -> None:
    """Left out on one device."""
    from lamina_tensor import cuda

    if cuda.device_count() < 2:
        raise LeftOut("two devices")


def needs(name: str) -> Any:
    """A library that knows the real device; left out on the stub."""
    from lamina_tensor.cuda.activation import active_provider

    if active_provider().name != "cupy":
        raise LeftOut("a GPU")
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LeftOut(name) from None
