"""Code objects of the standard library, decoded and assembled again, whole and as resume functions."""

from __future__ import annotations

import dis
import importlib
import sys
import types

import pytest
from code_stacks import CALLS, check, instructions, stacks

from lamina_dynamo.emit import Emitter
from lamina_dynamo.emit.assemble import assemble, entry_sequence
from lamina_dynamo.emit.body import Body
from lamina_dynamo.resume import ResumePoint, resume_code, run_natively
from lamina_dynamo.translate.instructions import decode
from lamina_dynamo.translate.liveness import live_locals
from lamina_dynamo.translate.opcodes import handlers

MODULES = ("configparser", "contextlib", "dataclasses", "difflib", "enum", "functools", "heapq", "json.decoder",
           "shutil", "statistics", "textwrap")  # fmt: skip
"""With every kind of block, closures, comprehensions of each kind, matches, and functions longer than 256 units."""
GENERATORS = 0x20 | 0x80 | 0x100 | 0x200
PAIRS = ("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")


def functions(code):
    """The code objects of functions in `code`, also nested ones; not the bodies of classes."""
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            if value.co_flags & 3 == 3:
                yield value
            yield from functions(value)


@pytest.fixture(scope="module", params=MODULES)
def codes(request):
    """The functions of a module, as its source compiles now: nothing else holds them."""
    path = importlib.import_module(request.param).__file__
    with open(path, encoding="utf-8") as file:
        return list(functions(compile(file.read(), path, "exec", dont_inherit=True)))


@pytest.fixture(scope="module")
def plain(codes):
    """Those that capture replaces, each third one: they take most of the time."""
    return [code for code in codes if not code.co_flags & GENERATORS][::3]


def content(code):
    """The instructions with what they mean: a pair as the two, jump targets as positions."""
    listed = instructions(code)
    place = {}
    result = []
    for i in dis.get_instructions(code):
        place[i.offset] = len(result)  # of a prefix: the place of its instruction
        if i.opname in ("CACHE", "EXTENDED_ARG"):
            continue
        line = i.positions.lineno if i.positions else None
        if i.opname in PAIRS:
            middle = (
                i.opname.index("_", i.opname.index("FAST")) if "BORROW" not in i.opname else len("LOAD_FAST_BORROW")
            )
            names = i.opname[:middle], i.opname[middle + 1 :]
            result += [(n, a, line) for n, a in zip(names, i.argval, strict=True)]
        else:
            value = ("to", i.argval) if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs else i.argval
            if i.opname == "RERAISE" and sys.version_info >= (3, 14):
                value = 0  # written so wherever a stack may have been rebuilt
            result.append((i.opname, value, line))
    assert listed
    place[len(code.co_code)] = len(result)
    result = [(n, ("to", place[v[1]]) if isinstance(v, tuple) and v[:1] == ("to",) else v, at) for n, v, at in result]
    table = [
        (place[e.start], place[e.end], place[e.target], e.depth, e.lasti) for e in dis._parse_exception_table(code)
    ]
    return result, table


def shown(instruction):
    """Constants by type too, so that 1 and True differ."""
    name, value, line = instruction
    return name, type(value).__name__, repr(value), line


def test_decoded(codes):
    """Every instruction has a handler; jumps and protected ranges lead to instructions."""
    known = handlers()
    for code in codes:
        decoded = decode(code)
        listed = instructions(code)
        assert [(i.name, i.offset) for i in decoded.instructions] == [(i.opname, i.offset) for i in listed]
        assert {i.name for i in decoded.instructions} <= set(known), code.co_qualname
        for i, raw in zip(decoded.instructions, listed, strict=True):
            if raw.opcode in dis.hasjrel or raw.opcode in dis.hasjabs:
                assert i.target == next(k for k, j in enumerate(listed) if j.offset >= raw.argval)
        ranges = dis._parse_exception_table(code)
        assert [(e.depth, e.lasti) for e in decoded.table] == [(e.depth, e.lasti) for e in ranges]
        assert all(listed[e.start].offset >= r.start for e, r in zip(decoded.table, ranges, strict=True))
        assert live_locals(code, 0) <= {*code.co_varnames, *code.co_cellvars, *code.co_freevars}


def test_assembled_again(plain):
    """The same instructions, lines, protected ranges and stack depths."""
    for code in plain:
        made = assemble(code, [*entry_sequence(code), *Body(code, as_free=False).items], 0)
        (before, table), (after, table_after) = content(code), content(made)
        first = next(k for k, i in enumerate(before) if i[0] == "RESUME") + 1
        first_after = next(k for k, i in enumerate(after) if i[0] == "RESUME") + 1
        assert first == first_after
        assert [shown(i) for i in after[first:]] == [shown(i) for i in before[first:]], code.co_qualname
        assert table_after == table, code.co_qualname
        assert depths(made) == depths(code)
        check(made)


def depths(code):
    """How deep the stack is at each instruction that is reached, by position; a pair counts as two."""
    found = stacks(code)
    result = []
    for i in instructions(code):
        depth = len(found[i.offset]) if i.offset in found else None
        result.append(depth)
        if i.opname in PAIRS:
            second = None if depth is None else depth + (-1 if i.opname.startswith("STORE") else 1)
            result.append(second)
    return result


def sites(code):
    """Two calls of a function: one in the middle, the last."""
    calls = [i.offset for i in instructions(code) if i.opname in CALLS]
    return sorted({calls[len(calls) // 2], calls[-1]}) if calls else []


def test_resumed(plain):
    """Entered at calls, and left at calls: depths and tables still fit, and the body is the original's."""
    made_count = 0
    for code in plain:
        found = stacks(code)
        names, table = content(code)
        names = [i[0] for i in names]
        bound = frozenset(code.co_varnames) - frozenset(code.co_cellvars)
        for offset in sites(code):
            if offset not in found:
                continue  # dead code
            stack = found[offset]
            made = resume_code(code, ResumePoint(offset, stack, bound))
            check(made)
            assert not made.co_cellvars and made.co_freevars == (*code.co_freevars, *code.co_cellvars)
            first = names.index("RESUME") + 1
            made_names, made_table = content(made)
            assert [i[0] for i in made_names][first - len(names) :] == names[first:]
            assert [(e[1] - e[0], *e[3:]) for e in made_table] == [(e[1] - e[0], *e[3:]) for e in table]
            emitter = Emitter(code)
            for name in bound:
                emitter.load_const(None)
                emitter.store_local(name)
            for is_value in stack:
                emitter.load_const(None) if is_value else emitter.push_null()
            run_natively(emitter, offset, stack, bound)
            check(emitter.finish())
            made_count += 1
    assert made_count
