"""``--all-samples`` runs every sample of every operator (``nox -s conformance``); otherwise a part of them runs."""

from __future__ import annotations

from pathlib import Path

import pytest

DEFAULT_EVERY = 9
"""Of the operators, every ninth is in the default part."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not in the default part."""
    if config.getoption("--all-samples", default=False):
        return
    here = Path(__file__).parent
    mine = [item for item in items if here in item.path.parents and item.get_closest_marker("gpu") is None]
    left_out = {item for k, item in enumerate(mine) if k % DEFAULT_EVERY}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: runs on a GPU (-m gpu); skipped where there is none")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-samples", action="store_true", help="every sample of every operator")
