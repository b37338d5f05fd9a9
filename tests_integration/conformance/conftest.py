"""``--all-samples`` runs every sample of every operator (``nox -s conformance``); otherwise a part of them runs."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-samples", action="store_true", help="every sample of every operator")
