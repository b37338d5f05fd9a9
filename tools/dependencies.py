"""Check that each package imports only what its pyproject.toml declares (and nothing it declares is unused).

python tools/dependencies.py
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from dev import DISTRIBUTIONS, ROOT

MODULE_OF = {"scipy-openblas32": "scipy_openblas32", "cupy-cuda13x": "cupy", "cuda-pathfinder": "cuda"}
ALSO_BRINGS = {"cupy": {"cupyx"}}
"""Further top modules of a distribution."""
OPTIONAL = {"cupy", "triton", "lamina"}
"""Imported inside functions only, by extras or by the whole stack on top."""


def main() -> int:
    """Print every problem; returns 1 when there is one."""
    problems = [problem for name in DISTRIBUTIONS for problem in check(ROOT / "packages" / name)]
    print("\n".join(problems) or f"{len(DISTRIBUTIONS)} packages import what they declare")
    return 1 if problems else 0


def check(package: Path) -> list[str]:
    """Problems of one package, as sentences."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    declared = {module_of(requirement) for requirement in project["dependencies"]}
    extras = {module_of(r) for group in project.get("optional-dependencies", {}).values() for r in group}
    extras |= {module for extra in extras for module in ALSO_BRINGS.get(extra, ())}
    own = package.name.replace("-", "_")
    used: dict[str, str] = {}
    for path in sorted((package / "src").rglob("*.py")):
        for module, inside in imports(ast.parse(path.read_text())):
            if module in sys.stdlib_module_names or module == own or (inside and module in OPTIONAL):
                continue
            used.setdefault(module, str(path.relative_to(package)))
    problems = [
        f"{package.name}: {where} imports {m}, which is not declared"
        for m, where in used.items()
        if m not in declared | extras
    ]
    problems += [f"{package.name} declares {m} and does not import it" for m in sorted(declared - set(used))]
    return problems


def module_of(requirement: str) -> str:
    """The top module of a requirement such as ``lamina-fx>=0.1``."""
    name = re.split(r"[<>=!~ ;\[]", requirement)[0]
    return MODULE_OF.get(name, name.replace("-", "_"))


def imports(tree: ast.AST, inside: bool = False) -> list[tuple[str, bool]]:
    """(top module, is it inside a function) of every absolute import."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name.split(".")[0], inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append((node.module.split(".")[0], inside))
        else:
            found += imports(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return found


if __name__ == "__main__":
    sys.exit(main())
