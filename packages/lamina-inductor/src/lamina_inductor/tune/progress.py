"""One line that says what is being tuned, on a terminal; nothing elsewhere, or without rich."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

__all__ = ["progress_line"]


@contextlib.contextmanager
def progress_line(text: str, total: int) -> Iterator[Callable[[str], None]]:
    """Gives a function to call with a few words when a part of ``total`` is done. The line is gone at the end."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    try:
        from rich.console import Console  # optional
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # optional
    except ImportError:
        yield lambda words: None
        return
    columns = (TextColumn("tuning {task.description}"), BarColumn(20), TextColumn("{task.fields[words]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as line:
        task = line.add_task(text, total=total, words="")
        yield lambda words: line.update(task, advance=1, words=words)
