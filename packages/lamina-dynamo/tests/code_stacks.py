"""What lies on the value stack of any code, and a check of assembled code; used by the tests of the emitter."""

from __future__ import annotations

import dis
import sys

__all__ = ["CALLS", "ENDS", "JUMPS", "SLOTS", "check", "instructions", "stacks"]

CALLS = ("CALL", "CALL_KW", "CALL_FUNCTION_EX")
JUMPS = set(dis.hasjrel) | set(dis.hasjabs)
ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
SLOTS = (True, False) if sys.version_info >= (3, 13) else (False, True)
_VARIABLES = {*dis.haslocal, *dis.hasfree}
_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


def instructions(code):
    """The instructions that count: without inline caches and prefixes of arguments."""
    return [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]


def step(i, stack):
    """The stack behind an instruction that falls through; True a value, False a NULL."""
    argument = i.arg if i.opcode in getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 512)) else None
    depth = len(stack) + dis.stack_effect(i.opcode, argument, jump=False)
    if i.opname == "PUSH_NULL":
        return (*stack, False)
    if i.opname == "LOAD_GLOBAL" and i.arg & 1:
        return (*stack, *SLOTS)
    if i.opname == "PRECALL":  # the effect of PRECALL and CALL is split as the compiler likes it: leave all to CALL
        return stack
    if i.opname == "CALL" and sys.version_info < (3, 12):
        return (*stack[: len(stack) - i.arg - 2], True)
    if i.opname in CALLS:
        return (*stack[: depth - 1], True)
    if i.opname == "LOAD_FAST_AND_CLEAR":  # of an inlined comprehension's variable, unbound before it
        return (*stack, False)
    if i.opname == "SWAP":
        swapped = list(stack)
        swapped[-1], swapped[-i.arg] = swapped[-i.arg], swapped[-1]
        return tuple(swapped)
    return (*stack[:depth], *[True] * (depth - len(stack)))


def stacks(code):
    """What lies on the stack before each instruction that is reached, by offset; every way there must agree on how
    deep it is.
    """
    listed = instructions(code)
    index = {i.offset: k for k, i in enumerate(listed)}
    # a jump or a range may name the prefix of an argument: the instruction behind it is meant
    for i in dis.get_instructions(code):
        if i.opname == "EXTENDED_ARG":
            index[i.offset] = next(k for k, j in enumerate(listed) if j.offset > i.offset)
    table = dis._parse_exception_table(code)
    found = {}
    todo = [(0, ())]
    while todo:
        k, stack = todo.pop()
        while True:
            i = listed[k]
            before = found.setdefault(i.offset, stack)
            assert len(before) == len(stack), (code.co_qualname, i, before, stack)
            if before is not stack:
                break
            for e in table:
                if e.start <= i.offset < e.end:
                    assert e.depth <= len(stack), (code.co_qualname, i, e, stack)
                    todo.append((index[e.target], (*stack[: e.depth], *[True] * (e.lasti + 1))))
            if i.opcode in JUMPS:
                depth = len(stack) + dis.stack_effect(i.opcode, i.arg, jump=True)
                todo.append((index[i.argval], (*stack[:depth], *[True] * (depth - len(stack)))))
            if i.opname in ENDS or i.opname in _ALWAYS:
                break
            stack = step(i, stack)
            k += 1
    return found


def check(code):
    """`code` keeps within its own stack, its protected ranges fit, and cells are read from where they lie."""
    found = stacks(code)
    deepest = max(map(len, found.values()))
    assert deepest <= code.co_stacksize, (code.co_qualname, deepest, code.co_stacksize)
    cells = {*code.co_cellvars, *code.co_freevars}
    slots = {k for k, name in enumerate(code.co_varnames) if name in code.co_cellvars}
    for i in instructions(code):
        if i.opcode in _VARIABLES and isinstance(i.argval, str) and (i.argval in cells or i.opcode not in dis.haslocal):
            assert i.arg in slots or i.arg >= len(code.co_varnames), (code.co_qualname, i)
    return found
