"""A function's body as instructions that can be placed into other code, and what one of them does to the frame."""

from __future__ import annotations

import dis
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from types import CodeType

from bytecode import Bytecode, CellVar, FreeVar, Instr, Label, TryBegin, TryEnd

from .dialect import dialect

__all__ = ["Body", "Exits", "Site"]

_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX", "CALL_INTRINSIC_1", "CALL_INTRINSIC_2"})
_PLAIN_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})
_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_DUAL = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST_BORROW", "LOAD_FAST_BORROW"),
}
_VARIABLES = frozenset(dis.opname[op] for op in (*dis.haslocal, *dis.hasfree) if op < len(dis.opname))
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG"})


@dataclass(frozen=True, slots=True)
class Site:
    """One instruction with those that belong to it (KW_NAMES, PRECALL).

    Indices ``start <= i < stop`` into the original.
    """

    start: int
    stop: int
    line: int
    location: object


@dataclass(slots=True)
class Exits:
    """An instruction made to run elsewhere: its ways out and the stack there (True a value, False a NULL)."""

    instructions: list[Instr]
    fall_through: list[bool] | None = None
    jump: list[bool] | None = None
    jump_index: int = -1
    label: Label = field(default_factory=Label)
    pad: list[Instr] = field(default_factory=list)
    stored: str | None = None
    deleted: str | None = None

    def bound_after(self, bound: Collection[str]) -> set[str]:
        """The bound locals behind the instruction."""
        names = set(bound)
        if self.stored is not None:
            names.add(self.stored)
        names.discard(self.deleted)  # type: ignore[arg-type]
        return names


class Body:
    """The instructions of `code` without its entry sequence, fresh objects each time.

    Args:
        code: whose body.
        as_free: write its cells as free variables, for a resume function.
    """

    __slots__ = ("_after", "_handlers", "_labels", "_raw", "code", "items")

    def __init__(self, code: CodeType, *, as_free: bool) -> None:
        self.code = code
        self._raw = [i for i in dis.get_instructions(code) if i.opname not in _SKIPPED]
        cells = frozenset(code.co_cellvars)
        self.items: list[object] = []
        self._after: list[object] = []  # the placed object of each original instruction, None in the entry sequence
        self._handlers: list[TryBegin | None] = []
        self._labels: dict[int, Label] = {}
        in_entry = True
        active: TryBegin | None = None
        index = 0
        for item in Bytecode.from_code(code, conserve_exception_block_stackdepth=True):
            if isinstance(item, TryBegin):
                active = item
            elif isinstance(item, TryEnd):
                active = None
            if not isinstance(item, Instr):
                self.items.append(item)
                continue
            self._handlers.append(active)
            if in_entry:
                self._after.append(None)
                in_entry = not (item.name == "RESUME" and item.arg == 0)
            else:
                item = dialect.reraise(item) if item.name == "RERAISE" else item
                placed = [_as_free(part, cells) if as_free else part for part in _expand(item)]
                self._after.append(placed[0])
                self.items.extend(placed)
            index += 1
        if len(self._after) != len(self._raw):
            raise ValueError(
                f"{code.co_qualname} decodes to {len(self._after)} instructions, {len(self._raw)} expected"
            )

    # ---- places ------------------------------------------------------------------------------------------------

    def site(self, offset: int) -> Site:
        """The instruction at this offset, with its group."""
        index = next((k for k, i in enumerate(self._raw) if i.offset == offset), None)
        if index is None:
            raise ValueError(f"{self.code.co_qualname} has no instruction at offset {offset}")
        start, stop = index, index
        while dialect.is_call_group(self._raw[stop].opname):
            stop += 1
        if self._raw[stop].opname == "CALL":
            while start > 0 and dialect.is_call_group(self._raw[start - 1].opname):
                start -= 1
        placed = self._after[stop]
        return Site(start, stop + 1, self.line_at(stop), placed.location if isinstance(placed, Instr) else None)

    def offset_at(self, index: int) -> int:
        """Offset of the original instruction with this index."""
        return self._raw[index].offset

    def line_at(self, index: int) -> int:
        """The user's line of an instruction; artificial ones have that of the one before."""
        for k in range(index, -1, -1):
            positions = self._raw[k].positions
            if positions is not None and positions.lineno is not None:
                return positions.lineno
        return self.code.co_firstlineno

    def label_at(self, index: int) -> Label:
        """A label in front of an instruction, placed when first asked for."""
        label = self._labels.get(index)
        if label is None:
            label = self._labels[index] = Label()
            self.items.insert(next(k for k, item in enumerate(self.items) if item is self._after[index]), label)
        return label

    def handler_at(self, index: int) -> tuple[Label, int, bool] | None:
        """Label, stack depth and lasti flag of the handler that protects an instruction."""
        begin = self._handlers[index]
        if begin is None:
            return None
        return begin.target, begin.stack_depth, begin.push_lasti  # type: ignore[return-value]

    def match(self, made: CodeType, entry: int, call_from_end: int | None) -> tuple[dict[int, int], int | None]:
        """Map the offsets of `made`, `entry` instructions and then this body, to the original's.

        `call_from_end`: also find the offset of the entry's last CALL (it is followed by one jump).
        """
        there = [i for i in dis.get_instructions(made) if i.opname not in _SKIPPED]
        offsets: dict[int, int] = {}
        at = entry
        for placed, original in zip(self._after, self._raw, strict=True):
            if placed is None:
                continue
            offsets[there[at].offset] = original.offset
            at += 2 if original.opname in _DUAL else 1
        if at != len(there):
            raise ValueError(
                f"the resume function of {self.code.co_qualname} has {len(there)} instructions, {at} expected"
            )
        return offsets, None if call_from_end is None else there[entry - call_from_end].offset

    # ---- one instruction ---------------------------------------------------------------------------------------

    def run(self, site: Site, stack: Sequence[bool]) -> Exits:
        """Copies of the site's instructions to be placed elsewhere, and the frame behind them."""
        originals = [self._after[k] for k in range(site.start, site.stop)]
        if any(not isinstance(item, Instr) for item in originals):
            raise ValueError(f"{self.code.co_qualname} can not break in its entry sequence")
        copies = [_owned(item.copy()) for item in originals if isinstance(item, Instr)]
        raw, last = self._raw[site.stop - 1], copies[-1]
        if raw.opname in _DUAL:
            raise ValueError(f"{raw.opname} never breaks")
        exits = Exits(copies)
        method = dialect.load_method_as_attribute(last)
        if method is not None:
            for instruction in method:
                instruction.location = last.location
            exits.instructions = method
            below = len(stack) - (3 if raw.opname == "LOAD_SUPER_ATTR" else 1)
            exits.fall_through = [*stack[:below], *_CALLABLE_SLOTS]
            return exits
        if raw.opcode in _JUMPS:
            self._leave_by_jump(exits, raw, stack)
        if raw.opname not in _ENDS and raw.opname not in (
            "JUMP_FORWARD",
            "JUMP_BACKWARD",
            "JUMP_BACKWARD_NO_INTERRUPT",
        ):
            effect = sum(self._effect(k, False) for k in range(site.start, site.stop))
            exits.fall_through = _after_effect(raw, last, stack, effect)
        if raw.opname == "STORE_FAST":
            exits.stored = raw.argval
        elif raw.opname == "DELETE_FAST":
            exits.deleted = raw.argval
        return exits

    def _leave_by_jump(self, exits: Exits, raw: dis.Instruction, stack: Sequence[bool]) -> None:
        last = exits.instructions[-1]
        index = next(k for k, i in enumerate(self._raw) if i.offset >= raw.argval)
        depth = len(stack) + dis.stack_effect(raw.opcode, raw.arg, jump=True)
        skipped = 0
        if raw.opname == "FOR_ITER":
            exits.pad, skipped = dialect.loop_exit_pad()
            for instruction in exits.pad:
                instruction.location = last.location
            depth = len(stack) - dialect.LOOP_EXIT_DROPS
        exits.jump = _fit(stack, depth)
        exits.jump_index = index + skipped
        name = _FORWARD.get(raw.opname, raw.opname)
        exits.instructions[-1] = Instr(name, exits.label, location=last.location)

    def _effect(self, index: int, jump: bool) -> int:
        raw = self._raw[index]
        argument = raw.arg if raw.opcode >= dis.HAVE_ARGUMENT or raw.opcode in getattr(dis, "hasarg", ()) else None
        if hasattr(dis, "hasarg") and raw.opcode not in dis.hasarg:
            argument = None
        return dis.stack_effect(raw.opcode, argument, jump=jump)


_CALLABLE_SLOTS = [True, False] if dialect.NULL_AFTER_CALLABLE else [False, True]
_FORWARD = {name: name.replace("BACKWARD", "FORWARD") for name in dis.opmap if name.startswith("POP_JUMP_BACKWARD")}


def _after_effect(raw: dis.Instruction, instruction: Instr, stack: Sequence[bool], effect: int) -> list[bool]:
    """The stack behind an instruction that falls through.

    Only calls take NULLs off, and only LOAD_GLOBAL and PUSH_NULL push one.
    """
    name = raw.opname
    if name in _PLAIN_CALLS:
        return [*stack[: len(stack) + effect - 1], True]
    if name == "LOAD_GLOBAL" and isinstance(instruction.arg, tuple) and instruction.arg[0]:
        return [*stack, *_CALLABLE_SLOTS]
    if name == "PUSH_NULL":
        return [*stack, False]
    if name == "LOAD_FAST_AND_CLEAR":  # a value or a NULL: the frame that goes on must know which
        raise ValueError(f"{name} never breaks")
    after = _fit(stack, len(stack) + effect)
    if name == "SWAP" and raw.arg is not None:
        after[-1], after[-raw.arg] = after[-raw.arg], after[-1]
    return after


def _owned(item: Instr) -> Instr:
    """3.14 loads locals without a reference where the compiler sees who uses them: not what goes into a variable."""
    if item.name == "LOAD_FAST_BORROW":
        return Instr("LOAD_FAST", item.arg, location=item.location)
    return item


def _fit(stack: Sequence[bool], depth: int) -> list[bool]:
    return [*stack[:depth], *([True] * (depth - len(stack)))]


def _as_free(item: Instr, cells: frozenset[str]) -> Instr:
    """The instruction with cells as free variables, whatever it does with them.

    The decoder names a cell by a plain string where the instruction counts among those on locals and the cell is an
    argument: that holds for LOAD_FAST from 3.13 on, which reads the cell itself, and for LOAD_DEREF from 3.14 on.
    """
    argument = item.arg
    if isinstance(argument, CellVar) or (item.name in _VARIABLES and isinstance(argument, str) and argument in cells):
        name = argument.name if isinstance(argument, CellVar) else argument
        return Instr(item.name, FreeVar(name), location=item.location)
    return item


def _expand(item: Instr) -> list[Instr]:
    """Instructions on two locals as two: the encoder would split them or not by the number of locals."""
    names = _DUAL.get(item.name)
    if names is None:
        return [item]
    return [Instr(n, a, location=item.location) for n, a in zip(names, item.arg, strict=True)]  # type: ignore[call-overload]
