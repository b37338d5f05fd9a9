"""One launch for many tensors: calls of one kernel that are independent of each other, by a table in device memory.

An optimizer's step over 100 parameters is 100 calls of a kernel. The table has a row for each call, the addresses of
its buffers and its sizes; the second dimension of the grid counts rows. Calls whose numbers of programs differ by more
than a factor of two are launched apart, so no more than half of the programs find nothing to do. Where numbers of
programs are not known when the table is made, they stand in front of its rows, and a program counts the rows whose
programs end before it.

    def k0_adamw(table, XBLOCK: tl.constexpr):
        row = table + tl.program_id(1) * 3
        b0 = tl.multiple_of(tl.load(row + 0).to(tl.pointer_type(tl.float32)), 16)
        ...
        n = tl.load(row + 2).to(tl.int32)
        if tl.program_id(0) * XBLOCK >= n:
            return
        ... what the kernel does
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .literals import language_type
from .program import TritonKernel, TritonLaunch
from .templates.kernel_text import is_multiple
from .tiles import constant

__all__ = ["MANY", "table_launches"]

MANY = 4
"""Fewer calls are launched one by one."""

_ROWS = 65535
"""Most rows of a launch: the grid's second dimension."""

_SEARCHED = 1024
"""Most rows of a launch whose programs look for theirs."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One call: its programs, and the cells of its row."""

    programs: int
    cells: tuple[Any, ...]


def table_launches(launches: Sequence[TritonLaunch], dtypes: dict[str, Any]) -> list[TritonLaunch] | None:
    """The same work as ``launches``, which are calls of one kernel, in few launches; None where that is not worth it.

    ``dtypes``: of the kernel's pointer parameters.
    """
    if len(launches) < MANY:
        return None
    kernel = launches[0].kernel
    sizes = frozenset(name for name, kind in kernel.parameters if not kind.startswith("*"))
    even = [launch for launch in launches if all(is_multiple(n, 16) for n in launch.sizes)]
    odd = [launch for launch in launches if launch not in even]
    found: list[TritonLaunch] = []
    # Sizes that are multiples of 16 let a program move 16 bytes at once: a kernel of its own for them.
    for part, suffix, aligned in ((even, "table", kernel.aligned | sizes), (odd, "odd_table", kernel.aligned - sizes)):
        known = [launch for launch in part if all(constant(n) is not None for n in (*launch.grid, *launch.sizes))]
        if known:
            named = replace(kernel, name=f"{kernel.name}_{suffix}", aligned=aligned)
            found.extend(_launch_rows(named, known, dtypes))
        unknown = [launch for launch in part if launch not in known]
        if unknown:
            named = replace(kernel, name=f"{kernel.name}_symbolic_{suffix}", aligned=aligned)
            found.extend(_launch_symbolic(named, unknown, dtypes))
    return found


def _launch_rows(kernel: TritonKernel, launches: Sequence[TritonLaunch], dtypes: dict[str, Any]) -> list[TritonLaunch]:
    wide = any(kind == "i64" for _, kind in kernel.parameters)
    rows = [_Row(int(launch.grid[0]), (*launch.buffers, *map(int, launch.sizes))) for launch in launches]
    ends = ""
    if len({row.programs for row in rows}) > 1:
        ends = "n" if any(name == "n" for name, _ in kernel.parameters) else "programs"
    if ends == "programs":  # nothing else tells a program that its row has ended
        rows = [replace(row, cells=(*row.cells, row.programs)) for row in rows]
    table = _table_kernel(kernel, dtypes, wide, ends)
    return [_launch(table, bucket) for bucket in _buckets(rows)]


def _buckets(rows: list[_Row]) -> list[list[_Row]]:
    """Rows of like numbers of programs, the largest first."""
    found: list[list[_Row]] = []
    for row in sorted(rows, key=lambda r: -r.programs):
        if not found or row.programs * 2 <= found[-1][0].programs or len(found[-1]) == _ROWS:
            found.append([])
        found[-1].append(row)
    return found


def _launch(kernel: TritonKernel, rows: list[_Row]) -> TritonLaunch:
    cells = tuple([cell for row in rows for cell in row.cells])
    return TritonLaunch(kernel, (cells,), (), (rows[0].programs, len(rows)))


def _launch_symbolic(
    kernel: TritonKernel, launches: Sequence[TritonLaunch], dtypes: dict[str, Any]
) -> Iterator[TritonLaunch]:
    """Launches whose numbers of programs are known at each call."""
    for start in range(0, len(launches), _SEARCHED):
        rows = launches[start : start + _SEARCHED]
        places = 1 << max(0, len(rows) - 1).bit_length()
        lines = [
            f"places = tl.arange(0, {places})",
            f"programs = tl.load(table + places, places < {len(rows)}, other=0).to(tl.int32)",
            "before = tl.cumsum(programs, 0) <= tl.program_id(0)",
            "program = tl.program_id(0) - tl.sum(tl.where(before, programs, 0))",
            f"row = table + {len(rows)} + tl.sum(before.to(tl.int32)) * {_width(kernel)}",
            *_row_lines(kernel, dtypes),
        ]
        body = kernel.source.partition(":\n")[2].replace("tl.program_id(0)", "program")
        named = kernel if len(launches) <= _SEARCHED else replace(kernel, name=f"{kernel.name}{len(rows)}")
        counts = [launch.grid[0] for launch in rows]
        cells = (*counts, *[cell for launch in rows for cell in (*launch.buffers, *launch.sizes)])
        yield TritonLaunch(_with_table(named, lines, body), (cells,), (), (sum(counts[1:], counts[0]),))


def _table_kernel(kernel: TritonKernel, dtypes: dict[str, Any], wide: bool, ends: str) -> TritonKernel:
    width = _width(kernel)
    lines = [f"row = table + tl.program_id(1) * {width + (ends == 'programs')}", *_row_lines(kernel, dtypes)]
    if ends == "programs":
        lines += [f"programs = tl.load(row + {width})", "if tl.program_id(0) >= programs:", "    return"]
    elif ends:
        start = "tl.program_id(0).to(tl.int64)" if wide else "tl.program_id(0)"
        lines += [f"if {start} * XBLOCK >= n:", "    return"]
    return _with_table(kernel, lines, kernel.source.partition(":\n")[2])


def _named(kernel: TritonKernel) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in kernel.parameters if name != "error"]


def _width(kernel: TritonKernel) -> int:
    """Cells of a row."""
    return len(_named(kernel))


def _row_lines(kernel: TritonKernel, dtypes: dict[str, Any]) -> list[str]:
    """The kernel's parameters, read from the row."""
    lines = []
    for number, (name, kind) in enumerate(_named(kernel)):
        value = f"tl.load(row + {number})"
        if kind.startswith("*"):
            value = f"{value}.to(tl.pointer_type({language_type(dtypes[name])}), bitcast=True)"
        elif kind != "i64":
            value = f"{value}.to(tl.int32)"
        lines.append(f"{name} = {f'tl.multiple_of({value}, 16)' if name in kernel.aligned else value}")
    return lines


def _with_table(kernel: TritonKernel, lines: list[str], body: str) -> TritonKernel:
    """The kernel with a table as its parameter: ``lines``, then what it did."""
    blocks = ", ".join(f"{name}: tl.constexpr" for name in kernel.constants)
    error = ["error"] if kernel.checks else []
    text = "\n".join([f"    {line}" for line in lines])
    source = f"@triton.jit\ndef {kernel.name}({', '.join(['table', *error])}, {blocks}):\n{text}\n{body}"
    parameters = (("table", "*i64"), *((("error", "*i64"),) if error else ()))
    return replace(kernel, source=source, parameters=parameters, aligned=frozenset(("table",)))
