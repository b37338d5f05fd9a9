"""Going on behind a graph break: resume functions.

A resume function of a code object is its whole body, entered by a jump at one instruction; the value stack and the
bound locals at that point are its parameters, the cells its free variables. The original exception table stays, so
with-blocks, handlers and loops go on natively. Resume functions are made once per (code, `ResumePoint`) and always
from the user's own code, never from another resume function, so a loop with a break in it needs two of them however
often it runs. Their frames are captured like any other; the call goes through `_core.call_resume`, a trampoline: a
resume function that breaks again hands the next one back instead of calling it, and the Python stack does not grow.
The translator must not inline calls of `_core.call_resume`: it is a break like any unknown function.

Ends of emitted code (the `Emitter` holds the rebuilt stack and locals):

- `run_natively(emitter, offset, stack, bound)`: the instruction at `offset` runs in Python, inside its original
  protected range, and each way out of it (fall through, jump) goes on in a resume function;
- `continue_with_call(emitter, offset, stack, bound, arguments)`: a call that was pushed stands in for the CALL at
  `offset`.

A break in an inlined callee: rebuild the caller's stack without the operands of its CALL, then
`push_resume_call(emitter, callee code, point, ...)`, then `continue_with_call(emitter, offset of the CALL, ..., 1 +
point.parameters(code))`. With three frames (f inlines g inlines h, h breaks): `push_resume_call` of g with
``pending`` set to ``1 + h_point.parameters(h_code)``, whose `load_values` ends by pushing `_core.call_resume`, h's
resume function (`push_resume_function`) and h's values.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from types import CodeType

from bytecode import Instr, TryBegin, TryEnd

from . import _core
from .emit import Emitter
from .emit.assemble import assemble
from .emit.body import Body, Site
from .emit.dialect import dialect

__all__ = [
    "ResumePoint",
    "continue_with_call",
    "is_resume_code",
    "origin_of",
    "push_resume_call",
    "push_resume_function",
    "resume_code",
    "run_natively",
]


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
        """The bound locals in the order in which they are parameters."""
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
    root, site_offset, pending = _locate(code, point.offset)
    if root is not code or pending is not None:
        kept = point.bound & frozenset(root.co_varnames)
        point = ResumePoint(site_offset, point.stack, kept, point.pending if pending is None else pending)
    table = _RESUMES.get(id(root))
    if table is None:
        table = _RESUMES[id(root)] = {}
        weakref.finalize(root, _forget, id(root)).atexit = False
    made = table.get(point)
    if made is None:
        made = table[point] = _make(root, point)
    return made


def _locate(code: CodeType, offset: int) -> tuple[CodeType, int, int | None]:
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
        entry += _protected(body, site, _at(site, dialect.call(point.pending, ())))
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


def _at(site: Site, instructions: Sequence[Instr]) -> list[Instr]:
    for instruction in instructions:
        instruction.location = site.location
    return list(instructions)


def _protected(body: Body, site: Site, instructions: Sequence[object]) -> list[object]:
    """The instructions inside the protected range of the site, if there is one."""
    handler = body.handler_at(site.start)
    if handler is None:
        return list(instructions)
    label, depth, lasti = handler
    begin = TryBegin(label, lasti, depth)
    # 3.12 and 3.13 look one code unit before a CALL whose callee raised: no range may start at the CALL itself
    return [begin, Instr("NOP", lineno=site.line), *instructions, TryEnd(begin)]


# ---- ends of emitted code -------------------------------------------------------------------------------------------


def run_natively(emitter: Emitter, offset: int, stack: Sequence[bool], bound: Collection[str]) -> None:
    """End: run the instruction at `offset` in Python, then go on in a resume function on each way out of it.

    Args:
        emitter: holds the rebuilt frame: its stack as `stack` says, the locals `bound` in their slots, cells filled.
        offset: of the instruction, in the emitter's code. For a CALL, its KW_NAMES and PRECALL run with it.
        stack: what lies on the stack before it, bottom to top: True a value, False a NULL.
        bound: the plain locals that are bound.
    """
    if emitter.depth != len(stack):
        raise ValueError(f"the stack has {emitter.depth} entries, {len(stack)} were announced")
    root, site_offset, pending = _locate(emitter.code, offset)
    if pending is not None:
        continue_with_call(emitter, offset, stack[: len(stack) - pending - 2], bound, pending)
        return
    emitter.release_temps()
    body = Body(root, as_free=root is not emitter.code)
    site = body.site(site_offset)
    exits = body.run(site, stack)
    for item in _protected(body, site, exits.instructions):
        emitter.place(item)  # type: ignore[arg-type]
    names = exits.bound_after(bound)
    if exits.fall_through is not None:
        _resume_at(emitter, root, body, site.stop, exits.fall_through, names)
    if exits.jump is not None:
        emitter.place(exits.label)
        for pad in exits.pad:
            emitter.place(pad)
        _resume_at(emitter, root, body, exits.jump_index, exits.jump, names)
    _append_body(emitter, body, site)


def continue_with_call(
    emitter: Emitter, offset: int, stack: Sequence[bool], bound: Collection[str], arguments: int
) -> None:
    """End: make the prepared call in place of the CALL at `offset`, then go on behind it with its result pushed.

    Args:
        emitter: holds the frame below the call, and the call: callable with its NULL, then `arguments` values.
        offset: of the CALL that was inlined.
        stack: what lies below the prepared call (the CALL's own operands are not there).
        bound: the plain locals that are bound.
        arguments: how many values follow the callable.
    """
    if emitter.depth != len(stack) + 2 + arguments:
        raise ValueError(f"the stack has {emitter.depth} entries, {len(stack)} + a call of {arguments} were announced")
    emitter.release_temps()
    root, site_offset, _ = _locate(emitter.code, offset)
    body = Body(root, as_free=root is not emitter.code)
    site = body.site(site_offset)
    for item in _protected(body, site, _at(site, dialect.call(arguments, ()))):
        emitter.place(item)  # type: ignore[arg-type]
    _resume_at(emitter, root, body, site.stop, [*stack, True], bound)
    _append_body(emitter, body, site)


def _append_body(emitter: Emitter, body: Body, site: Site) -> None:
    """Handlers run in the body; it is needed only where the site is protected."""
    if body.handler_at(site.start) is not None:
        for item in body.items:
            emitter.place(item)  # type: ignore[arg-type]
    emitter.end()


def _resume_at(
    emitter: Emitter, root: CodeType, body: Body, index: int, stack: Sequence[bool], bound: Collection[str]
) -> None:
    """Leave the frame.

    Pass the stack and the locals to the resume function at this instruction and return its result.
    """
    emitter.set_depth(len(stack))
    emitter.set_line(body.line_at(index))
    keep = frozenset(bound) & frozenset(root.co_varnames) - frozenset(root.co_cellvars)
    point = ResumePoint(body.offset_at(index), tuple(stack), keep)
    temps = [f".s{k}" for k in range(len(stack))]
    for name in reversed(temps):
        emitter.store_temp(name)
    is_resumed = root is not emitter.code
    emitter.prepare_call(lambda: emitter.load_const(_core.tail if is_resumed else _core.call_resume))
    cells = [*root.co_freevars, *root.co_cellvars]

    def load_cells() -> None:
        for name in cells:
            emitter.load_cell(name)
        emitter.build_tuple(len(cells))

    push_resume_function(emitter, root, point, None, load_cells if cells else None)
    passed = [name for name, is_value in zip(temps, stack, strict=True) if is_value] + point.order(root)
    for name in passed:
        emitter.load_temp(name)
    for name in passed:  # the frame lives on below the resume function: let it not keep the values
        emitter.emit("PUSH_NULL", None, 1)
        emitter.emit("STORE_FAST", name, -1)
    emitter.call(1 + len(passed))
    emitter.emit("RETURN_VALUE", None, -1)


def push_resume_call(
    emitter: Emitter,
    code: CodeType,
    point: ResumePoint,
    load_globals: Callable[[], object] | None,
    load_cells: Callable[[], object] | None,
    load_values: Callable[[], object],
) -> None:
    """Push a call of the resume function of an inlined callee, ready for `continue_with_call`.

    Args:
        emitter: where to write.
        code: the callee's code.
        point: where it goes on: at the broken instruction itself, which runs in that frame, with its stack and
            bound locals.
        load_globals: pushes the callee's globals dict; None when they are the emitting frame's.
        load_cells: pushes a tuple of cells: for the callee's ``co_freevars``, then for its ``co_cellvars``; None
            when it has neither.
        load_values: pushes the stack values (not the NULLs) bottom to top, then the bound locals in the order
            `point.order(code)`, then the callable and arguments of a pending call.
    """
    emitter.prepare_call(lambda: emitter.load_const(_core.call_resume))
    push_resume_function(emitter, code, point, load_globals, load_cells)
    before = emitter.depth
    load_values()
    expected = point.parameters(code)
    if emitter.depth - before != expected:
        raise ValueError(f"load_values pushed {emitter.depth - before} values, the resume function takes {expected}")


def push_resume_function(
    emitter: Emitter,
    code: CodeType,
    point: ResumePoint,
    load_globals: Callable[[], object] | None,
    load_cells: Callable[[], object] | None,
) -> None:
    """( -- function) that resumes `code` at `point`; parameters as in `push_resume_call`."""
    resume = resume_code(code, point)
    if load_globals is None:
        if load_cells is not None:
            load_cells()
        emitter.make_function(resume, 8 if load_cells is not None else 0)
        return

    def load() -> None:
        emitter.load_const(resume)
        load_globals()
        if load_cells is None:
            emitter.load_const(None)
        else:
            load_cells()

    emitter.call_runtime("new_function", load, 3)
