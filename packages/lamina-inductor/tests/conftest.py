from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Compiled code of this run goes to a folder of its own, shared by all tests of the session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE_DIR", str(tmp_path_factory.mktemp("lamina-cache")))
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the stored kernels")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> object:
    """``golden(name, text)`` compares text with ``golden/<name>``; ``--update-golden`` rewrites the file."""

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; run with --update-golden and look at it before committing"
        assert text == path.read_text(), f"{name} differs from what is stored; --update-golden accepts it"

    return check
