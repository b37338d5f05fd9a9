from __future__ import annotations

import pytest

import lamina
from lamina.backends import list_backends


def test_names() -> None:
    assert {"cpp", "reference", "triton"} <= set(list_backends())


def test_the_backend_for_gpus_says_that_it_cannot_run_yet() -> None:
    with pytest.raises(NotImplementedError, match=r"^backend 'triton': running on a GPU is not there yet"):
        lamina.compile(lambda x: x, backend="triton")


def test_unknown_options_are_named_when_compile_is_called() -> None:
    with pytest.raises(ValueError, match="'cpp' has no option 'foo'; it takes: none"):
        lamina.compile(lambda x: x, options={"foo": 1})
