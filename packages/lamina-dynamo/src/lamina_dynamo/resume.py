"""Going on behind a graph break: resume functions.

A resume function of a code object is its whole body, entered by a jump at one instruction; the value stack and the
bound locals at that point are its parameters, the cells its free variables. The original exception table stays, so
with-blocks, handlers and loops go on natively. Resume functions are made once per (code, `ResumePoint`) and always
from the user's own code, never from another resume function, so a loop with a break in it needs two of them however
often it runs. Their frames are captured like any other; the call goes through `_core.call_resume`, a trampoline: a
resume function that breaks again hands the next one back instead of calling it, and the Python stack does not grow.
The translator inlines `_core.finish_resume`, so the rest of a callee in which the graph broke and the rest of its
caller become one graph.

Ends of emitted code (the `Emitter` holds the rebuilt stack and locals):

- `run_natively(emitter, offset, stack, bound)`: the instruction at `offset` runs in Python, inside its original
  protected range, and each way out of it (fall through, jump) goes on in a resume function;
- `continue_with_call(emitter, offset, stack, bound, arguments)`: a call that was pushed stands in for the CALL at
  `offset`.

A break in an inlined callee: rebuild the caller's stack without the operands of its CALL, then
`push_resume_call(emitter, callee code, point, ...)`, then `continue_with_call(emitter, offset of the CALL, ...,
point.parameters(code))`. The callee's frame runs the broken instruction and hands back its own rest as a `_core.Tail`;
the caller's resume function begins by running it (`_core.finish_resume`). With three frames (f inlines g inlines h, h
breaks): `push_resume_call` of g with ``pending`` set to ``h_point.parameters(h_code)``, whose `load_values` ends by
pushing h's resume function (`push_resume_function`) and h's values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import CodeType

from . import _core
from .emit import Emitter
from .emit.body import Body, Site
from .emit.dialect import dialect
from .resume_points import ResumePoint, at_site, entry_point, is_resume_code, locate, origin_of, protected, resume_code

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
    entry = entry_point(emitter.code, offset)
    if entry is not None:  # a parameter that can not be traced: take the others too, then go on as at the point itself
        for k in range(len(stack), len(entry.stack)):
            emitter.load_local(f".s{k}") if entry.stack[k] else emitter.push_null()
        root, site_offset, pending = origin_of(emitter.code), entry.offset, None
        stack = entry.stack
    else:
        root, site_offset, pending = locate(emitter.code, offset)
    if pending is not None:
        continue_with_call(emitter, offset, stack[: len(stack) - pending - 2], bound, pending)
        return
    emitter.release_temps()
    body = Body(root, as_free=root is not emitter.code)
    site = body.site(site_offset)
    exits = body.run(site, stack)
    for item in protected(body, site, exits.instructions):
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
    root, site_offset, _ = locate(emitter.code, offset)
    body = Body(root, as_free=root is not emitter.code)
    site = body.site(site_offset)
    for item in protected(body, site, at_site(site, dialect.call(arguments, ()))):
        emitter.place(item)  # type: ignore[arg-type]
    emitter.set_depth(len(stack) + 1)
    emitter.store_temp(_RESULT)
    keep = frozenset(bound) & frozenset(root.co_varnames) - frozenset(root.co_cellvars)
    _leave(emitter, root, ResumePoint(site_offset, tuple(stack), keep, 1), _load_result)
    _append_body(emitter, body, site)


_RESULT = ".result"


def _load_result(emitter: Emitter) -> None:
    """The call that gives the result of the callee: what it returned may be a resume function that is to be run."""
    emitter.load_const(_core.finish_resume)
    emitter.load_temp(_RESULT)


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
    _leave(emitter, root, ResumePoint(body.offset_at(index), tuple(stack), keep), None)


def _leave(emitter: Emitter, root: CodeType, point: ResumePoint, load_call: Callable[[Emitter], object] | None) -> None:
    """Call the resume function with the stack, the locals and what `load_call` pushes; return its result."""
    temps = [f".s{k}" for k in range(len(point.stack))]
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
    passed = [name for name, is_value in zip(temps, point.stack, strict=True) if is_value] + point.order(root)
    for name in passed:
        emitter.load_temp(name)
    if load_call is not None:
        load_call(emitter)
        passed.append(_RESULT)
    for name in passed:  # the frame lives on below the resume function: let it not keep the values
        emitter.emit("PUSH_NULL", None, 1)
        emitter.emit("STORE_FAST", name, -1)
    emitter.call(1 + point.parameters(root))
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
    emitter.prepare_call(lambda: push_resume_function(emitter, code, point, load_globals, load_cells))
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
