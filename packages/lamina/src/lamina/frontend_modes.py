"""Ambient state as capture sees it: grad mode, inference mode, default dtype and device, autocast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lamina_dynamo.guard import Ambient
from lamina_tensor import _C, amp

__all__ = ["FrontendModes"]


class FrontendModes:
    """The part of the front end about ambient state. The front end's `__init__` makes the tables."""

    _ambient: tuple[Ambient, ...]
    _mode_functions: dict[Any, str]
    _modes: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]
    _entry_grad_mode: bool

    def ambient(self) -> Sequence[Ambient]:
        """Grad mode, inference mode, default dtype, default device, autocast."""
        self._entry_grad_mode = _C.is_grad_enabled()
        return self._ambient

    def mode_function(self, function: object) -> str | None:
        """The functions that read and set those."""
        try:
            return self._mode_functions.get(function)
        except TypeError:
            return None

    def get_mode(self, name: str) -> Any:
        """A mode's value now."""
        return self._modes[name][0]()

    def set_mode(self, name: str, value: Any) -> Any:
        """Set a mode; returns what the setter returns."""
        return self._modes[name][1](value)

    def regions(self) -> tuple[str, ...]:
        """``no_grad``, ``inference_mode`` or ``enable_grad`` where the mode is not that of the frame's entry;
        ``autocast:bfloat16``.
        """
        state = amp.autocast_state()
        found = () if state is None else (f"autocast:{state}",)
        now = _C.is_grad_enabled()
        if now:
            return found if self._entry_grad_mode else ("enable_grad", *found)
        return ("inference_mode" if _C.is_inference() else "no_grad", *found)

    @contextmanager
    def entering(self, regions: tuple[str, ...]) -> Iterator[None]:
        """While the block runs, the grad mode, inference mode and autocast are those of these regions."""
        wanted = [r for r in regions if r in ("no_grad", "inference_mode", "enable_grad")]
        state = next((r.partition(":")[2] for r in regions if r.startswith("autocast:")), None)
        if not wanted and state is None:
            yield
            return
        mode = wanted[-1] == "enable_grad" if wanted else _C.is_grad_enabled()
        before = _C.set_grad_enabled(mode)
        inference = _C.set_inference(wanted[-1:] == ["inference_mode"] or _C.is_inference())
        try:
            with amp.state_set(state):
                yield
        finally:
            _C.set_inference(inference)
            _C.set_grad_enabled(before)
