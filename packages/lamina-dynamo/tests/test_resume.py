"""Splitting functions at every call, in every kind of block.

Prefix and resume function together do what the function did.
"""

from __future__ import annotations

import dis
import gc
import sys
import types
import weakref

import breaks_zoo as zoo
import pytest
from bytecode import Instr, Label
from code_stacks import CALLS, SLOTS, stacks

from lamina_dynamo import _core
from lamina_dynamo.emit import Emitter
from lamina_dynamo.emit.body import Body
from lamina_dynamo.resume import (
    ResumePoint,
    continue_with_call,
    is_resume_code,
    origin_of,
    push_resume_call,
    resume_code,
    run_natively,
)


def split(function, offset, bound):
    """The function with a graph break at this instruction: its own body up to there, then what the emitter writes."""
    code = function.__code__
    emitter = Emitter(code)
    body = Body(code, as_free=False)
    site = body.site(offset)
    here, broken = body.label_at(site.start), Label()
    for item in body.items:
        emitter.place(item)
        if item is here:
            emitter.place(Instr("JUMP_FORWARD", broken, lineno=site.line))
    emitter.place(broken)
    stack = stacks(code)[offset]
    emitter.set_depth(len(stack))
    run_natively(emitter, offset, stack, bound)
    return types.FunctionType(
        emitter.finish(), function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


def call_offset(code, lasti):
    """f_lasti of a caller may lie in the CALL's cache."""
    return [i.offset for i in dis.get_instructions(code) if i.offset <= lasti and i.opname in CALLS][-1]


@pytest.mark.parametrize("function", zoo.ZOO, ids=lambda f: f.__name__)
def test_every_call(function):
    sites = {}
    for how in (None, 1, 2, 3, "late"):
        for suppress in (False, True):
            for code, lasti, bound in zoo.run(function, how, suppress)[2]:
                if code is function.__code__:
                    sites.setdefault((lasti, bound), set()).add((how, suppress))
    compared = 0
    for (lasti, bound), scenarios in sites.items():
        hidden = {"v"} if function is zoo.comprehension else set()  # f_locals leaves out the variable of an inlined one
        made = split(function, call_offset(function.__code__, lasti), bound | hidden)
        for how, suppress in scenarios:
            plain = zoo.run(function, how, suppress)
            first = next((s for s in plain[2] if s[:2] == (function.__code__, lasti)), None)
            if first is None or first[2] != bound:
                continue  # this way through reaches the site with other locals bound
            assert zoo.run(made, how, suppress)[:2] == plain[:2], (lasti, how, suppress)
            compared += 1
    assert compared >= (2 if function.__name__ == "comprehension" and sys.version_info < (3, 12) else 3) or not sites


@pytest.mark.parametrize("function", zoo.ZOO, ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", [None, 1, "late"], ids=str)
def test_first_statement(function, how):
    """Everything is in the resume function."""
    code = function.__code__
    first = next(i.offset for i in dis.get_instructions(code) if i.opname == "RESUME")
    after = next(i.offset for i in dis.get_instructions(code) if i.offset > first and i.opname != "CACHE")
    emitter = Emitter(code)
    run_natively(emitter, after, [], frozenset(code.co_varnames[: code.co_argcount]) - frozenset(code.co_cellvars))
    made = types.FunctionType(emitter.finish(), function.__globals__, code.co_name, None, function.__closure__)
    assert zoo.run(made, how, False)[:2] == zoo.run(function, how, False)[:2]


def at(code, opname, nth=0, prefix=False):
    match = (lambda n: n.startswith(opname)) if prefix else (lambda n: n == opname)
    return [i.offset for i in dis.get_instructions(code) if match(i.opname)][nth]


def branch(x):
    if x:
        return ("true", x)
    y = 1
    return ("false", x, y)


def documented(x):
    """The first constant; a resume function has none."""
    return -x + x * x


def identity_test(x):
    return "none" if x is None else x


def loop(xs):
    total = 0
    for x in xs:
        total += x
    return total, xs


def method(x):
    return x.upper() + x.lower()


@pytest.mark.parametrize(
    ("function", "opname", "bound", "arguments"),
    [
        (branch, "POP_JUMP", {"x"}, [0, 1, [], [2]]),
        (identity_test, "POP_JUMP", {"x"}, [None, 3]),
        (loop, "FOR_ITER", {"xs", "total"}, [[], [1], [1, 2, 3], (4, 5)]),
        (loop, "GET_ITER", {"xs", "total"}, [[], [1, 2]]),
        (method, "LOAD_METHOD" if sys.version_info < (3, 12) else "LOAD_ATTR", {"x"}, ["aB"]),
        (method, "BINARY_OP", {"x"}, ["aB"]),
        (documented, "UNARY_NEGATIVE", {"x"}, [3]),
    ],
)
def test_other_instructions(function, opname, bound, arguments):
    made = split(function, at(function.__code__, opname, prefix=opname == "POP_JUMP"), bound)
    for argument in arguments:
        assert made(argument) == function(argument)


def test_the_empty_tuple_stays_immortal():
    """3.14 counts what BUILD_TUPLE made as an ordinary object."""

    def f():
        return 1

    emitter = Emitter(f.__code__)
    emitter.build_tuple(0)
    emitter.return_value()
    f.__code__ = emitter.finish()
    before = sys.getrefcount(())
    for _ in range(10):
        assert f() == ()
        f()
    assert sys.getrefcount(()) in (before, before + 1) or sys.version_info < (3, 12)


class Managed:
    """A context manager whose `__exit__` is no method: 3.14 leaves a NULL beside it."""

    def __enter__(self):
        return 5

    __exit__ = staticmethod(lambda kind, value, traceback: kind is KeyError)


def managed(x, error=None):
    with x as v:
        if error:
            raise error
    return v


def result_of(function, *arguments):
    try:
        return function(*arguments)
    except Exception as e:  # noqa: BLE001  (the error is the outcome that is compared)
        return type(e), str(e)


def test_breaks_at_with():
    """The instructions that look up the methods of a context manager run in Python themselves."""
    opname = "LOAD_SPECIAL" if sys.version_info >= (3, 14) else "BEFORE_WITH"
    made = split(managed, at(managed.__code__, opname), {"x", "error"})
    for error in (None, KeyError("k"), ValueError("v")):
        for manager in (Managed(), zoo.CM("cm"), zoo.CM("cm", True), 3, object):
            assert result_of(made, manager, error) == result_of(managed, manager, error)


def test_resume_code_is_shared_and_freed():
    namespace = {}
    exec("def f(x):\n    y = x + 1\n    return y * 2\n", namespace)
    f = namespace.pop("f")
    code = f.__code__
    point = ResumePoint(at(code, "BINARY_OP", 1), (True, True), frozenset({"x", "y"}))
    made = resume_code(code, point)
    assert resume_code(code, point) is made
    assert is_resume_code(made) and not is_resume_code(code) and origin_of(made) is code
    assert types.FunctionType(made, {})(3, 5, 0, 0) == 15
    alive = weakref.ref(code), weakref.ref(made)
    del f, code, made
    gc.collect()
    assert [r() for r in alive] == [None, None]


def test_resume_of_resume_comes_from_the_user_code():
    code = loop.__code__
    point = ResumePoint(at(code, "FOR_ITER"), (True,), frozenset({"xs", "total"}))
    made = resume_code(code, point)
    inner = next(i.offset for i in dis.get_instructions(made) if i.opname == "FOR_ITER")
    again = resume_code(made, ResumePoint(inner, (True,), frozenset({"xs", "total"})))
    assert again is made


def test_generators_are_refused():
    def gen(x):
        yield x

    code = gen.__code__
    with pytest.raises(ValueError, match="generator or coroutine"):
        resume_code(code, ResumePoint(at(code, "YIELD_VALUE"), (True,), frozenset({"x"})))


def test_tail_does_not_grow_the_stack():
    depth = []

    def countdown(n):
        depth.append(len(sys._current_frames()) and sys._getframe(1))
        return _core.tail(countdown, n - 1) if n else "done"

    assert _core.call_resume(countdown, 5000) == "done"
    assert _core.finish_resume(_core.tail(countdown, 3)) == "done"
    assert _core.finish_resume((countdown, 3)) == (countdown, 3)  # an ordinary result
    assert len(set(map(id, depth))) == 1


def callee(a, b):
    c = a * 10
    d = zoo.ext(c, b)
    return d + c


def caller(x):
    with zoo.CM("caller"):
        y = callee(x, 2) + 1
    return y, x


@pytest.mark.parametrize("how", [None, 1], ids=str)
def test_break_in_callee(how):
    """The callee was inlined up to its call of ext; both frames go on behind it."""
    code, inner = caller.__code__, callee.__code__
    emitter = Emitter(code)
    calls = [i.offset for i in dis.get_instructions(code) if i.opname == "CALL"]
    offset = calls[2 if sys.version_info >= (3, 14) else 1]  # behind CM() and, where it is a CALL, __enter__()
    broken = next(i.offset for i in dis.get_instructions(inner) if i.opname == "CALL")
    # the frame of caller inside its with: the exit function is on the stack, from 3.14 on in the two slots of a call
    emitter.prepare_call(lambda: emitter.load_const(zoo.CM))
    emitter.load_const("caller")
    emitter.call(1)
    manager = emitter.new_temp()
    emitter.store_temp(manager)
    emitter.load_temp(manager)
    emitter.load_attr("__exit__")
    held = [True, False] if sys.version_info >= (3, 14) else [True]
    if len(held) == 2:
        emitter.push_null()
    emitter.prepare_call(lambda: (emitter.load_temp(manager), emitter.load_attr("__enter__")))
    emitter.call(0)
    emitter.pop()
    stack = (*SLOTS, True, True)
    point = ResumePoint(broken, stack, frozenset({"a", "b", "c"}))
    order = point.order(inner)

    def load_values():
        emitter.load_const(zoo.ext)
        values = {"a": lambda: emitter.load_argument("x"), "b": lambda: emitter.load_const(2)}
        ten = lambda: (emitter.load_argument("x"), emitter.load_const(10), emitter.emit("BINARY_OP", 5, -1))  # noqa: E731
        ten()
        values["b"]()
        for name in order:
            values.get(name, ten)()

    push_resume_call(emitter, inner, point, None, None, load_values)
    continue_with_call(emitter, offset, held, {"x"}, point.parameters(inner))
    made = types.FunctionType(emitter.finish(), globals())
    assert outcome(made, how) == outcome(caller, how)


def outcome(function, how):
    zoo.mode = how
    zoo.log.clear()
    zoo.calls[0] = 0
    try:
        return function(4), list(zoo.log)
    except KeyError as e:
        return str(e), list(zoo.log)


def test_pending_call():
    """A middle frame of three: its resume function makes the innermost frame's call in place of its own."""
    code = callee.__code__
    offset = next(i.offset for i in dis.get_instructions(code) if i.opname == "CALL")
    point = ResumePoint(offset, (), frozenset({"a", "b", "c"}), pending=2)
    made = types.FunctionType(resume_code(code, point), globals())
    assert made(*[{"a": 1, "b": 2, "c": 30}[n] for n in point.order(code)], lambda x, y: x * y, 5, 6) == 60
    call = next(i.offset for i in dis.get_instructions(made) if i.opname == "CALL")
    emitter = Emitter(made.__code__)
    for name in made.__code__.co_varnames[:6]:
        emitter.load_local(name)
    for _ in range(6):
        emitter.pop()
    emitter.prepare_call(lambda: emitter.load_const(max))
    emitter.load_const(7)
    emitter.load_const(8)
    stack = (*SLOTS, True, True)
    run_natively(emitter, call, stack, {"a", "b", "c"})
    again = types.FunctionType(emitter.finish(), globals())
    assert _core.call_resume(again, 1, 2, 30, None, None, None) == 38
