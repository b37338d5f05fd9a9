"""Functions of the tensor package that are run on fakes while a mode sees each operator in them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import lamina_prims
from lamina_dynamo.frontend import DataDependent
from lamina_prims.modes import NO_SIZES, Mode, NeedsValues, sizing
from lamina_tensor import Tensor, creation, fake_creation, fake_tensor

__all__ = ["FrontendTracing"]


class _Sizes(threading.local):
    """Per thread: in place of a ``ShapeEnv`` when sizes that depend on values are refused, or None."""

    refused: Any = None


_SIZES = _Sizes()


class _Recording(Mode):
    """Tells ``record`` of each operator call."""

    def __init__(self, record: Callable[..., Any]) -> None:
        self.record = record

    def handle(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the call with the mode switched off, and let it be written down."""
        return self.record(operator.id, args, kwargs, lambda: operator(*args, **kwargs))


class FrontendTracing:
    """The part of the front end that traces the tensor package's own functions."""

    @contextmanager
    def value_sizes(self, allowed: bool) -> Iterator[None]:
        """While the block runs, whether sizes that depend on values become symbols where other sizes are symbolic."""
        before, _SIZES.refused = _SIZES.refused, None if allowed else NO_SIZES
        try:
            yield
        finally:
            _SIZES.refused = before

    def is_traced(self, function: Any) -> bool:
        """Functions of the tensor package whose Python code is not captured but run on fakes."""
        module = getattr(function, "__module__", None) or ""
        if module == "lamina_tensor.creation" and function in (
            creation.tensor,
            creation.as_tensor,
            creation.scalar_tensor,
        ):
            return True
        return module in ("lamina_tensor.indexing", "lamina_tensor.conversion", "lamina_tensor.joining")

    def trace(self, function: Any, args: list[Any], kwargs: dict[str, Any], record: Callable[..., Any]) -> Any:
        """Call ``function`` on fakes; ``record(id, args, kwargs, run)`` is called for each operator."""
        made = None
        is_leaf = kwargs.get("requires_grad") is True
        if is_leaf:
            kwargs = {k: v for k, v in kwargs.items() if k != "requires_grad"}
        if getattr(function, "__module__", "") == "lamina_tensor.creation" and isinstance(function, FunctionType):
            made = self._constant_tensor(function, args, kwargs, record)
        if made is None:
            try:
                with fake_creation(), sizing(_SIZES.refused), _Recording(record):
                    made = function(*args, **kwargs)
            except NeedsValues as error:
                raise DataDependent(str(error)) from None
        return record("requires_grad_", (made, True), {}, made.requires_grad_) if is_leaf else made

    def _constant_tensor(
        self, function: Any, args: list[Any], kwargs: dict[str, Any], record: Callable[..., Any]
    ) -> Any:
        """``tensor([1.0, 2.0])``: a constant of the graph, copied at every call."""
        if function not in (creation.tensor, creation.as_tensor, creation.scalar_tensor) or any(
            isinstance(a, Tensor) for a in args
        ):
            return None
        value = function(*args, **kwargs)
        clone = lamina_prims.operator("clone")
        if value.numel() == 1:
            full = lamina_prims.operator("full")
            arguments = (tuple(value._sizes), value.item())
            options: dict[str, Any] = {"dtype": value.dtype}
            if value.device.type != "cpu":
                options["device"] = value.device

            def run() -> Any:
                with fake_creation():
                    return full(*arguments, **options)

            return record("full", arguments, options, run)
        return record("clone", (value,), {}, lambda: clone(fake_tensor(value.spec)))
