"""Bytecode decoded once per code object: instructions by index, jump targets as indices, the exception table.

Inline caches and ``EXTENDED_ARG`` are gone from the list; a jump's ``target`` is an index into it.

>>> def f(x):
...     return x + 1
>>> [i.name for i in decode(f.__code__).instructions][-1]
'RETURN_VALUE'
"""

from __future__ import annotations

import bisect
import dis
import weakref
from types import CodeType
from typing import Any

__all__ = ["DecodedCode", "Instruction", "TableEntry", "decode"]


class Instruction:
    """One instruction: its name, raw argument, resolved argument, jump target (an index) and source line."""

    __slots__ = ("arg", "handler", "index", "line", "name", "offset", "target", "value")

    def __init__(self, index: int, name: str, arg: int | None, value: Any, target: int, offset: int, line: int) -> None:
        self.index = index
        self.name = name
        self.arg = arg
        self.value = value
        self.target = target
        self.offset = offset
        self.line = line
        self.handler: Any = None

    def __repr__(self) -> str:
        return f"<{self.index}: {self.name} {self.value!r} line {self.line}>"


class TableEntry:
    """A protected range ``start <= index < stop`` and where its handler stands."""

    __slots__ = ("depth", "lasti", "start", "stop", "target")

    def __init__(self, start: int, stop: int, target: int, depth: int, lasti: bool) -> None:
        self.start = start
        self.stop = stop
        self.target = target
        self.depth = depth
        self.lasti = lasti


class DecodedCode:
    """The instructions and protected ranges of one code object."""

    __slots__ = ("index_of", "instructions", "table")

    def __init__(self, code: CodeType) -> None:
        raw = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
        offsets = [i.offset for i in raw]
        jumps = _JUMPS
        self.instructions: list[Instruction] = []
        line = code.co_firstlineno
        for index, ins in enumerate(raw):
            positions = ins.positions
            if positions is not None and positions.lineno is not None:
                line = positions.lineno
            # a target may be an EXTENDED_ARG in front of the instruction: the next kept one is meant
            target = bisect.bisect_left(offsets, ins.argval) if ins.opcode in jumps else -1
            self.instructions.append(Instruction(index, ins.opname, ins.arg, ins.argval, target, ins.offset, line))
        self.index_of = {offset: index for index, offset in enumerate(offsets)}
        self.table = [
            TableEntry(
                bisect.bisect_left(offsets, start),
                bisect.bisect_left(offsets, stop),
                bisect.bisect_left(offsets, target),
                depth,
                lasti,
            )
            for start, stop, target, depth, lasti in _exception_table(code)
        ]

    def handler_of(self, index: int) -> TableEntry | None:
        """The protected range around an instruction, innermost first (the table is flat: ranges do not overlap)."""
        for entry in self.table:
            if entry.start <= index < entry.stop:
                return entry
        return None


_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_CACHE: dict[int, DecodedCode] = {}


def decode(code: CodeType) -> DecodedCode:
    """Decode a code object; the result is kept as long as it."""
    found = _CACHE.get(id(code))
    if found is None:
        found = _CACHE[id(code)] = DecodedCode(code)
        weakref.finalize(code, _CACHE.pop, id(code), None).atexit = False
    return found


def _exception_table(code: CodeType) -> list[tuple[int, int, int, int, bool]]:
    """Entries ``(start, stop, target, depth, lasti)`` in byte offsets, from the variable-length table."""
    data = iter(code.co_exceptiontable)

    def number() -> int:
        byte = next(data)
        value = byte & 63
        while byte & 64:
            byte = next(data)
            value = value << 6 | byte & 63
        return value

    entries = []
    while True:
        try:
            start = number() * 2
        except StopIteration:
            return entries
        length, target, packed = number() * 2, number() * 2, number()
        entries.append((start, start + length, target, packed >> 1, bool(packed & 1)))
