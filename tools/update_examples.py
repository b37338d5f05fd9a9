"""Run the examples of Markdown pages and write down what they print now.

    python tools/update_examples.py docs/architecture.md

For pages whose examples show generated text, after a change that was meant. Read the difference before you commit it.
"""

from __future__ import annotations

import doctest
import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

OPTIONS = doctest.ELLIPSIS


def update(path: Path) -> bool:
    """Rewrite one page; returns whether it changed."""
    text = path.read_text()
    parsed = doctest.DocTestParser().parse(text)
    scope: dict[str, object] = {"__name__": "__main__"}
    made = "".join(part if isinstance(part, str) else run(part, scope) for part in parsed)
    path.write_text(made)
    return made != text


def run(example: doctest.Example, scope: dict[str, object]) -> str:
    """The example's source with its present output."""
    lines = example.source.rstrip("\n").split("\n")
    shown = "\n".join((">>> " if k == 0 else "... ") + line for k, line in enumerate(lines)).replace("... \n", "...\n")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example.source, "<example>", "single"), scope)
    output = printed.getvalue()
    if example.options.get(doctest.ELLIPSIS):
        output = example.want
    return " " * example.indent + f"{shown}\n{output}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {'changed' if update(Path(name)) else 'as it was'}")
