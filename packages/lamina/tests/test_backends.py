from __future__ import annotations

import pytest

import lamina
from lamina.backends import list_backends


def test_names() -> None:
    assert {"cpp", "reference", "triton"} <= set(list_backends())


def test_unknown_options_are_named_when_compile_is_called() -> None:
    with pytest.raises(ValueError, match="'cpp' has no option 'foo'; it takes: none"):
        lamina.compile(lambda x: x, backend="cpp", options={"foo": 1})
    with pytest.raises(ValueError, match="'default' has no option 'foo'; it takes: allow_tf32, cuda_graphs"):
        lamina.compile(lambda x: x, options={"foo": 1})
