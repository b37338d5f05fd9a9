"""What only CPython 3.11 has (later versions lay their own over it)."""

from __future__ import annotations

from typing import Any

from ...errors import Unsupported
from .table import new_table

TABLE, opcode = new_table()


@opcode("LOAD_CLASSDEREF", "PREP_RERAISE_STAR", "IMPORT_STAR", "PRINT_EXPR", "SETUP_ANNOTATIONS")
def _not_in_functions(frame: Any, ins: Any) -> None:
    raise Unsupported(f"the bytecode instruction {ins.name}")
