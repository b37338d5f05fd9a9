"""Write docs/operators.md: every name of the front end and the operator behind it, from the registry.

``python tools/operator_tables.py`` writes the page; ``--check`` fails when it is not up to date.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import lamina_prims
from lamina_prims import Operator

PAGE = Path(__file__).resolve().parent.parent / "docs" / "operators.md"
INTRODUCTION = """# Operators

Written by `nox -s docs` from the registry of lamina-prims; do not edit.

A *primitive* is what a backend implements; a *composite* is a body of other operators, which is its decomposition.
Derivative: *rule* means a rule of its own, *body* that it follows from the body, *none* that the result has no
gradient. *In place* names the method that writes into its first argument. *View* says that the result may share the
first argument's memory. Names are those of the package `lamina`, `Tensor.` methods included.
"""


def derivative(operator: Operator) -> str:
    """Where an operator's gradient comes from."""
    if operator.vjp_rule is not None:
        return "rule"
    return "none" if operator.is_primitive else "body"


def in_place(operator: Operator) -> str:
    """The in-place methods that the front end derives."""
    if not operator.in_place:
        return ""
    methods = [n.removeprefix("Tensor.") for n in operator.names if n.startswith("Tensor.") and "__" not in n]
    return ", ".join(f"`{name}_`" for name in methods)


def families() -> dict[str, list[Operator]]:
    """Operators with front-end names by the module that declares them, in the order of declaration."""
    found: dict[str, list[Operator]] = defaultdict(list)
    for operator in lamina_prims.operators().values():
        if operator.names:
            found[operator.function.__module__.rpartition(".")[2]].append(operator)
    return dict(sorted(found.items()))


def rows(operators: list[Operator]) -> Iterator[str]:
    """A table's lines."""
    yield "| names | operator | kind | derivative | in place | view |"
    yield "|---|---|---|---|---|---|"
    for operator in operators:
        names = ", ".join(f"`{name}`" for name in operator.names)
        kind = "primitive" if operator.is_primitive else "composite"
        view = "view" if operator.alias is not False else ""
        yield f"| {names} | `{operator.id}` | {kind} | {derivative(operator)} | {in_place(operator)} | {view} |"


def page() -> str:
    """The whole page."""
    tables = families()
    every = [operator for operators in tables.values() for operator in operators]
    names = sum(len(operator.names) for operator in every)
    primitives = sum(operator.is_primitive for operator in every)
    lines = [INTRODUCTION, f"{names} names of {len(every)} operators, {primitives} of them primitives.", ""]
    for family, operators in tables.items():
        lines += [f"## {family.replace('_', ' ').capitalize()}", "", *rows(operators), ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print("docs/operators.md is not that of the registry; run: nox -s docs")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
