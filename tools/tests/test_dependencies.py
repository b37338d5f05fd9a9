"""tools/dependencies.py finds undeclared, unused and optional imports."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dependencies


def package(folder: Path, source: str, declared: str) -> Path:
    root = folder / "lamina-x"
    (root / "src" / "lamina_x").mkdir(parents=True)
    (root / "src" / "lamina_x" / "a.py").write_text(source)
    (root / "pyproject.toml").write_text(f"[project]\ndependencies = [{declared}]\n")
    return root


def test_declared_and_used(tmp_path: Path) -> None:
    assert dependencies.check(package(tmp_path, "import os\nimport numpy as np\n", '"numpy>=1.26"')) == []


def test_undeclared(tmp_path: Path) -> None:
    assert "imports numpy" in dependencies.check(package(tmp_path, "from numpy import array\n", ""))[0]


def test_unused(tmp_path: Path) -> None:
    assert "declares rich" in dependencies.check(package(tmp_path, "import os\n", '"rich>=13"'))[0]


def test_optional_only_inside_functions(tmp_path: Path) -> None:
    assert dependencies.check(package(tmp_path / "1", "def f():\n    import cupy\n", "")) == []
    assert dependencies.check(package(tmp_path / "2", "import cupy\n", "")) != []
