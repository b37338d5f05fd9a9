"""tools/dev.py: what decides the environment, and that the order of installing is right."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dev


def test_every_package_is_listed_once() -> None:
    assert sorted(dev.DISTRIBUTIONS) == sorted(p.name for p in (dev.ROOT / "packages").iterdir() if p.is_dir())


def test_each_package_comes_after_the_siblings_it_needs() -> None:
    for k, name in enumerate(dev.DISTRIBUTIONS):
        project = tomllib.loads((dev.ROOT / "packages" / name / "pyproject.toml").read_text())["project"]
        siblings = {d.split(">")[0] for d in project["dependencies"] if d.startswith("lamina")}
        assert siblings <= set(dev.DISTRIBUTIONS[:k]), name


def test_sibling_bounds_are_this_minor_version() -> None:
    for name in dev.DISTRIBUTIONS:
        project = tomllib.loads((dev.ROOT / "packages" / name / "pyproject.toml").read_text())["project"]
        assert project["version"] == "0.1.0.dev0"
        assert all(d.endswith(">=0.1.0.dev0,<0.2") for d in project["dependencies"] if d.startswith("lamina")), name
