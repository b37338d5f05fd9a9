"""Controls of compilation: reset, disable, dynamic sizes, what was compiled and why."""

from __future__ import annotations

from typing import Any

import lamina_dynamo
from lamina_dynamo import disable, is_compiling, mark_dynamic, mark_static, maybe_mark_dynamic

from .backends import list_backends
from .explanation import Explanation, explain
from .records import GraphRecord, clear_records, events, records
from .report import write_report
from .summary import Summary, summary

__all__ = [
    "Explanation",
    "GraphRecord",
    "Summary",
    "clear_records",
    "disable",
    "events",
    "explain",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "records",
    "reset",
    "summary",
    "write_report",
]


def reset() -> None:
    """Forget everything compiled in this process (the disk cache stays)."""
    lamina_dynamo.reset()
    clear_records()


def __getattr__(name: str) -> Any:
    raise AttributeError(f"lamina.compiler has no attribute {name!r}; it has {', '.join(__all__)}")
