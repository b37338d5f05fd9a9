"""Resume points and the code of resume functions, made once per point; where a resume function's code comes from."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from types import CodeType

from bytecode import Instr, TryBegin, TryEnd

from .emit.assemble import assemble
from .emit.body import Body, Site
from .emit.dialect import dialect

__all__ = ["ResumePoint", "at_site", "entry_point", "is_resume_code", "locate", "origin_of", "protected", "resume_code"]


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where a frame goes on.

    Attributes:
        offset: of the instruction that runs first, as `dis` counts in the code it belongs to.
        stack: what lies on the value stack before it, bottom to top: True a value, False a NULL.
        bound: the plain locals (no cells) that are bound.
        pending: None, or: in place of that instruction (a CALL; `stack` lies below its operands) a call with this
            many arguments is made; the callable and its arguments are further parameters, and its result goes on
            the stack.
    """

    offset: int
    stack: tuple[bool, ...]
    bound: frozenset[str]
    pending: int | None = None

    def order(self, code: CodeType) -> list[str]:
        """The bound locals in the order in which they are parameters: that of the user's code, also for a resume
        function's, whose own parameters come first.
        """
        code = origin_of(code)
        return [name for name in code.co_varnames if name in self.bound and name not in code.co_cellvars]

    def parameters(self, code: CodeType) -> int:
        """How many parameters the resume function has."""
        pending = 0 if self.pending is None else self.pending + 1
        return sum(self.stack) + len(self.order(code)) + pending


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a resume function's code comes from; `offsets` maps its instructions to those of `root`."""

    root: weakref.ref[CodeType]
    offsets: dict[int, int]
    point: ResumePoint
    pending_offset: int | None


_GENERATOR_LIKE = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE
_RESUMES: dict[int, dict[ResumePoint, CodeType]] = {}
_ORIGINS: dict[int, _Origin] = {}


def is_resume_code(code: CodeType) -> bool:
    """Whether this is the code of a resume function."""
    return id(code) in _ORIGINS


def origin_of(code: CodeType) -> CodeType:
    """The user's code that a resume function goes on with; other code as it is."""
    origin = _ORIGINS.get(id(code))
    root = origin.root() if origin is not None else None
    return code if root is None else root


def _forget(root_id: int) -> None:
    for made in _RESUMES.pop(root_id, {}).values():
        _ORIGINS.pop(id(made), None)


def resume_code(code: CodeType, point: ResumePoint) -> CodeType:
    """The code of the resume function of `code` at `point`; the same object for the same question."""
    root, site_offset, pending = locate(code, point.offset)
    if root is not code or pending is not None:
        kept = point.bound & frozenset(root.co_varnames)
        point = ResumePoint(site_offset, point.stack, kept, pending if point.pending is None else point.pending)
    table = _RESUMES.get(id(root))
    if table is None:
        table = _RESUMES[id(root)] = {}
        weakref.finalize(root, _forget, id(root)).atexit = False
    made = table.get(point)
    if made is None:
        made = table[point] = _make(root, point)
    return made


def entry_point(code: CodeType, offset: int) -> ResumePoint | None:
    """The point at which a resume function goes on, when `offset` lies in its entry sequence; None elsewhere."""
    origin = _ORIGINS.get(id(code))
    if origin is None or origin.root() is None or origin.point.pending is not None or offset in origin.offsets:
        return None
    return origin.point


def locate(code: CodeType, offset: int) -> tuple[CodeType, int, int | None]:
    """The user's code behind `code`, the offset there, and the arguments of a pending call when `offset` is that
    call's."""
    origin = _ORIGINS.get(id(code))
    root = origin.root() if origin is not None else None
    if origin is None or root is None:
        return code, offset, None
    if offset == origin.pending_offset:
        return root, origin.point.offset, origin.point.pending
    if offset not in origin.offsets:
        raise ValueError(f"offset {offset} of the resume function of {code.co_qualname} is in its entry sequence")
    return root, origin.offsets[offset], None


def _make(root: CodeType, point: ResumePoint) -> CodeType:
    if root.co_flags & _GENERATOR_LIKE:  # a yield outside of a generator object corrupts the interpreter
        raise ValueError(f"{root.co_qualname} is a generator or coroutine and can not be resumed as a function")
    body = Body(root, as_free=True)
    site = body.site(point.offset)
    line = site.line
    stack = [f".s{k}" for k, is_value in enumerate(point.stack) if is_value]
    names = point.order(root)
    pending = [] if point.pending is None else [f".p{k}" for k in range(point.pending + 1)]
    free = [*root.co_freevars, *root.co_cellvars]
    entry: list[object] = [Instr("COPY_FREE_VARS", len(free), lineno=line)] if free else []
    entry.append(Instr("RESUME", 0, lineno=line))

    def take(name: str) -> None:
        entry.append(Instr("LOAD_FAST", name, lineno=line))
        entry.append(Instr("DELETE_FAST", name, lineno=line))

    for k, is_value in enumerate(point.stack):
        if is_value:
            take(f".s{k}")
        else:
            entry.append(Instr("PUSH_NULL", lineno=line))
    if point.pending is None:
        target = body.label_at(site.start)
    else:
        nulls = [Instr("PUSH_NULL", lineno=line)]
        if not dialect.NULL_AFTER_CALLABLE:
            entry += nulls
        take(".p0")
        if dialect.NULL_AFTER_CALLABLE:
            entry += nulls
        for name in pending[1:]:
            take(name)
        entry += protected(body, site, at_site(site, dialect.call(point.pending, ())))
        target = body.label_at(site.stop)
    entry.append(Instr("JUMP_FORWARD", target, lineno=line))
    made = assemble(
        root,
        [*entry, *body.items],
        len(point.stack) + len(pending) + 2,
        parameters=[*stack, *names, *pending],
        cells=(),
        free=free,
    )
    entry_count = sum(isinstance(item, Instr) for item in entry)
    offsets, pending_offset = body.match(made, entry_count, None if point.pending is None else 2)
    _ORIGINS[id(made)] = _Origin(weakref.ref(root), offsets, point, pending_offset)
    return made


def at_site(site: Site, instructions: Sequence[Instr]) -> list[Instr]:
    """Give instructions the location of a site."""
    for instruction in instructions:
        instruction.location = site.location
    return list(instructions)


def protected(body: Body, site: Site, instructions: Sequence[object]) -> list[object]:
    """The instructions inside the protected range of the site, if there is one."""
    handler = body.handler_at(site.start)
    if handler is None:
        return list(instructions)
    label, depth, lasti = handler
    begin = TryBegin(label, lasti, depth)
    # 3.12 and 3.13 look one code unit before a CALL whose callee raised: no range may start at the CALL itself
    return [begin, Instr("NOP", lineno=site.line), *instructions, TryEnd(begin)]
