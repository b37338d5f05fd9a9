"""The limit of recompiles as users meet it: the setting, the warning's place, and advice that fits what varied."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import lamina
from lamina_dynamo import CaptureWarning
from lamina_dynamo.advice import advice
from lamina_dynamo.config import Config


def _warning(call: Callable[[], Any]) -> warnings.WarningMessage:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (found,) = [w for w in caught if w.category is CaptureWarning]
    return found


def test_the_limit_is_a_setting_and_the_warning_points_to_the_users_call() -> None:
    compiled = lamina.compile(lambda x, mode: x * len(mode), backend="reference", recompile_limit=2)
    line = 0

    def call() -> None:
        nonlocal line
        for k in range(4):
            line = sys._getframe().f_lineno + 1
            compiled(lamina.ones(2), "m" * k)

    found = _warning(call)
    assert "compiled 2 times" in str(found.message)
    assert (found.filename, found.lineno) == (__file__, line)
    assert "mode changes from call to call (a str is part of the program)" in str(found.message)
    assert "recompile_limit=" in str(found.message)


def test_a_modules_warning_points_to_the_users_call_too() -> None:
    class Scaled(lamina.nn.Module):
        def forward(self, x: Any, mode: str) -> Any:
            return x * len(mode)

    module = lamina.compile(Scaled(), backend="reference", recompile_limit=1)
    found = _warning(lambda: [module(lamina.ones(2), "m" * k) for k in range(3)])
    assert found.filename == __file__


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "8"])
def test_wrong_limits_are_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match="recompile_limit must be an int of at least 1"):
        lamina.compile(lambda x: x, recompile_limit=limit)


@pytest.mark.parametrize(
    ("reason", "settings", "text"),
    [
        ("entry 0: L['n'] == 7, but it is 8", {"dynamic": False}, "from call to call, and dynamic=False"),
        ("entry 0: L['n'] == 7, but it is 8", {}, "n is an int that changes from call to call, and the program needs"),
        ("entry 0: L['lr'] == 0.5, but it is 0.25", {}, "lr is a float that changes from call to call: pass"),
        ("entry 0: L['s'] == 'a', but it is 'b'", {}, "s changes from call to call (a str is part of the program)"),
        ("entry 0: L['x']: float32[8]@(1) no grad, but it is float32[9]", {}, "call mark_dynamic(x, dim)"),
        ("entry 0: something else", {}, "Keep constant what varies"),
    ],
)  # fmt: skip
def test_advice_fits_what_varied(reason: str, settings: dict[str, Any], text: str) -> None:
    assert text in advice([reason], Config(**settings))


def test_marks_say_what_they_take() -> None:
    with pytest.raises(TypeError, match=r"expected an array or tensor, .* got int 3"):
        lamina.compiler.mark_dynamic(3, 0)
    with pytest.raises(TypeError, match="dim must be an int, got str 'n'"):
        lamina.compiler.mark_dynamic(lamina.ones(2), "n")
    with pytest.raises(IndexError, match="dim 4 is out of range for an array with 1 dimensions"):
        lamina.compiler.mark_dynamic(lamina.ones(2), 4)


@pytest.mark.parametrize("value", ["1", "yes", "true", "True", "on"])
def test_compiling_is_switched_off_by_the_environment(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(x: Any) -> Any:
        return x

    monkeypatch.setenv("LAMINA_DISABLE", value)
    assert lamina.compile(plain) is plain
    monkeypatch.setenv("LAMINA_DISABLE", "0")
    assert lamina.compile(plain) is not plain
