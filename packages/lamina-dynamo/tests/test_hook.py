"""The frame hook alone: replacement codes put into frames, without any compiler."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import traceback
import weakref

import pytest

from lamina_dynamo import _core
from lamina_dynamo.guard import GuardSet, equals, id_is, type_is
from lamina_dynamo.guard_program import compile_guards
from lamina_dynamo.replacement import flat_code
from lamina_dynamo.source import Attr, Global, Local

G = 5


class Table:
    """A callback that replaces functions by others."""

    def __init__(self):
        self.replacements = {}
        self.seen = []
        self.owner = next(Table.owners)

    owners = iter(range(10_000, 20_000))

    def replace(self, old, new, guards=()):
        code = new if hasattr(new, "co_code") else new.__code__
        self.replacements[old.__code__] = (code, GuardSet(guards))

    def __call__(self, code, local, global_, builtins, closure, misses):
        self.seen.append((code.co_name, local, closure, misses))
        found = self.replacements.get(code)
        if found is None:
            _core.skip(code, self.owner)
            return
        new, guards = found
        _core.add_entry(code, self.owner, compile_guards(guards, code), new, flat_code(new), guards)

    def run(self, function, *args, **kwargs):
        return _core.Switch(function, self, self.owner)(*args, **kwargs)

    def names(self):
        return [s[0] for s in self.seen]


@pytest.fixture
def table():
    return Table()


def test_plain(table):
    def f(a, b=2):
        return a + b

    def g(a, b=2):
        return ("g", a, b)

    table.replace(f, g)
    for _ in range(3):
        assert table.run(f, 1) == ("g", 1, 2)
        assert table.run(f, b=5, a=3) == ("g", 3, 5)
    assert f(1) == 3
    assert table.names() == ["f"]


def test_all_kinds_of_arguments(table):
    def f(a, /, b, *args, k, kk=7, **kw):
        return 0

    def g(a, /, b, *args, k, kk=7, **kw):
        extra = [a, b]
        return a, b, args, k, kk, kw, extra

    table.replace(f, g)
    for _ in range(3):
        assert table.run(f, 1, 2, 3, 4, k=5, x=6) == (1, 2, (3, 4), 5, 7, {"x": 6}, [1, 2])
    assert table.seen[0][1] == dict(a=1, b=2, args=(3, 4), k=5, kk=7, kw={"x": 6})


def test_cells(table):
    n = 10

    def f(a, b):
        return a + b + n

    def g(a, b):
        q = 1

        def inner():
            nonlocal b, q
            b += 1
            q += 1
            return b, q, n

        inner()
        return a, inner(), n

    table.replace(f, g)
    for _ in range(3):
        assert table.run(f, 1, 2) == (1, (4, 3, 10), 10)
    n = 11
    assert table.run(f, 1, 2) == (1, (4, 3, 11), 11)
    assert table.seen[0][2][0].cell_contents == 11


def test_super_and_methods(table):
    class A:
        def m(self, x):
            return x

    class B(A):
        def m(self, x):
            return super().m(x)

        def m2(self, x):
            return ("new", super().m(x), __class__)

    table.replace(B.m, B.m2)
    for _ in range(3):
        assert table.run(B().m, 4) == ("new", 4, B)


def test_references(table):
    class O: ...  # noqa: E742

    def f(a, b, *c):
        return 1

    def g(a, b, *c):
        return len([a] * 10)

    table.replace(f, g)
    for _ in range(200):
        o, p, q = O(), O(), O()
        alive = [weakref.ref(x) for x in (o, p, q)]
        before = sys.getrefcount(o)
        assert table.run(f, o, p, q) == 10
        table.seen.clear()
        assert sys.getrefcount(o) == before
        del o, p, q
        assert [r() for r in alive] == [None] * 3
    counts = sys.getrefcount(f.__code__), sys.getrefcount(g.__code__), sys.getrefcount(f)
    for _ in range(1000):
        table.run(f, 1, 2)
    assert counts == (sys.getrefcount(f.__code__), sys.getrefcount(g.__code__), sys.getrefcount(f))


def test_generators_classes_and_exec_are_left_alone(table):
    def gen(n):
        yield from range(n)

    async def co(x):
        return x + 1

    async def agen():
        yield 1
        yield 2

    async def main():
        return await co(1), [i async for i in agen()]

    def everything():
        class X:
            y = 1

        ns = {}
        exec("q=1\nclass Z:\n  t=3\n", ns)
        return list(gen(4)), asyncio.run(main()), X.y, ns["Z"].t, eval_("1+2")

    eval_ = __builtins__["eval"] if isinstance(__builtins__, dict) else __builtins__.eval
    assert table.run(everything) == ([0, 1, 2, 3], (2, [1, 2]), 1, 3, 3)
    assert not {"gen", "co", "agen", "main", "X", "Z", "<module>"} & set(table.names())


def test_traceback_is_the_replacement_s(table):
    namespace = {}
    exec(compile("\n\n\n\ndef g(a):\n    x = 1\n    raise ValueError(a)\n", "orig.py", "exec"), namespace)

    def f(a):
        return a

    table.replace(f, namespace["g"].__code__.replace(co_name="f"))
    for _ in range(3):
        with pytest.raises(ValueError) as caught:
            table.run(f, "boo")
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (last.filename, last.lineno, last.name) == ("orig.py", 7, "f")


def test_error_in_the_callback(table):
    def f(a):
        return 1

    def broken(*args):
        raise RuntimeError("in callback")

    class O: ...  # noqa: E742

    o = O()
    alive = weakref.ref(o)
    switch = _core.Switch(f, broken, table.owner)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="in callback"):
            switch(o)
    del o
    gc.collect()
    assert alive() is None
    assert f(1) == 1


def test_misfit_is_refused(table):
    table.replace(lambda a: 1, lambda a, b: 1)
    f, (code, _) = next(iter(table.replacements.items()))
    with pytest.raises(ValueError, match="same arguments"):
        _core.add_entry(f, 1, compile_guards(GuardSet(), f), code, flat_code(code), None)


def test_guards_choose_the_entry_most_recent_first(table):
    class M:
        attr = "x"

    def f(a, n):
        return 0

    def make(n):
        def g(a, n):
            return ("g", n)

        return g.__code__.replace(co_consts=tuple(f"g{n}" if c == "g" else c for c in g.__code__.co_consts))

    m = M()
    m.attr = sys

    def callback(code, local, global_, builtins, closure, misses):
        table.seen.append(misses)
        if code is not f.__code__:
            _core.skip(code, table.owner)
            return
        guards = GuardSet(
            [
                type_is(Local("a"), M),
                id_is(Attr(Local("a"), "attr"), sys),
                equals(Local("n"), local["n"]),
                equals(Global("G"), 5),
            ]
        )
        new = make(local["n"])
        _core.add_entry(code, table.owner, compile_guards(guards, code), new, flat_code(new), guards)

    switch = _core.Switch(f, callback, table.owner)
    before = _core.counters()
    assert [switch(m, n)[0] for n in (1, 1, 2, 2, 1)] == ["g1", "g1", "g2", "g2", "g1"]
    after = _core.counters()
    assert after["compiled"] - before["compiled"] == 2 and after["hits"] - before["hits"] == 3
    assert [str(e[1]) for e in _core.entries(f.__code__, table.owner)[0:1]]
    assert "L['n'] == 1" in str(_core.entries(f.__code__, table.owner)[0])
    ((info, failed),) = table.seen[1]
    assert str(info[failed]) == "L['n'] == 1"


def test_threads(table):
    def f(a):
        return 0

    def g(a):
        return 1

    table.replace(f, g)
    out = {}
    started, done = threading.Event(), threading.Event()

    def inside():
        started.set()
        done.wait(5)
        return f(1)

    def other():
        started.wait(5)
        out["plain"] = f(1)
        out["captured"] = table.run(f, 1)
        out["after"] = f(1)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    assert table.run(inside) == 1
    thread.join()
    assert out == {"plain": 0, "captured": 1, "after": 0}


def test_many_threads(table):
    def f(a, n):
        return a if n == 0 else f(a, n - 1)

    def g(a, n):
        return (a,) if n == 0 else f(a, n - 1)

    table.replace(f, g)
    errors = []

    def work(i):
        try:
            for _ in range(200):
                assert (table.run(f, i, 20) if i % 2 else f(i, 20)) == ((i,) if i % 2 else i)
        except BaseException as e:  # noqa: BLE001  (handed to the main thread)
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    # a thread that meets a code while another compiles it runs it plainly: right here because both agree
    assert [e for e in errors if not isinstance(e, AssertionError)] == []


def test_recursion(table):
    def f(n):
        return 0 if n == 0 else 1 + f(n - 1)

    def g(n):
        return 0 if n == 0 else 2 + f(n - 1)

    table.replace(f, g)
    assert table.run(f, 300) == 600

    def endless(n):
        return endless(n + 1)

    table.replace(endless, endless.__code__.replace())
    with pytest.raises(RecursionError):
        table.run(endless, 0)
    assert table.run(f, 10) == 20


def test_frames_without_room(table):
    """Frames at every depth of the data stack: where the chunk is full, the flat code is called."""

    def f(n, x):
        return f

    def g(n, x):
        return [n, x] if n == 0 else f(n - 1, x)

    class O: ...  # noqa: E742

    table.replace(f, g.__code__.replace(co_stacksize=700))
    before = _core.counters()["fallbacks"]
    for depth in range(200):
        o = O()
        alive = weakref.ref(o)
        assert table.run(f, depth, o) == [0, o]
        del o
        table.seen.clear()
        assert alive() is None
    assert _core.counters()["fallbacks"] > before


@pytest.mark.parametrize("stack", [10, 700], ids=["in place", "without room too"])
def test_inputs_that_guards_have_read(stack):
    """The slot behind the arguments holds what the sources read, whatever else the frame has."""

    def f(n, x, *rest, key=None):
        return f

    def g(n, x, *rest, key=None):
        if n < -1:
            given = None  # a local, so that it has the slot; never run
        return (given, n) if n == 0 else f(n - 1, x, *rest, key=key)

    class Held: ...

    code = g.__code__.replace(co_stacksize=stack)
    sources = (Attr(Local("x"), "part"), Local("key"), Local("x"))

    def callback(original, local, global_, builtins, closure, misses):
        if original is not f.__code__:
            _core.skip(original, 77)
            return
        program = compile_guards(GuardSet([type_is(Local("x"), Held)]), original, sources)
        _core.add_entry(original, 77, program, code, flat_code(code, more=1), None)

    for depth in range(0, 200, 1 if stack > 10 else 50):
        held = Held()
        held.part = part = Held()
        alive = weakref.ref(part)
        given, n = _core.Switch(f, callback, 77)(depth, held, 1, 2, key="k")
        assert given == (part, "k", held) and n == 0
        del held, part, given
        assert alive() is None


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile], ids=["settrace", "setprofile"])
def test_trace_functions(table, setter):
    def f(a):
        return 0

    def g(a):
        b = a + 1
        return b

    table.replace(f, g)
    events = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name in ("f", "g"):
            events.append((event, frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))
        return trace

    table.run(f, 1)
    before = sys.gettrace() if setter is sys.settrace else sys.getprofile()
    setter(trace)
    try:
        result = table.run(f, 1)
    finally:
        setter(before)
    assert result == 2
    lines = [("line", "g", 1), ("line", "g", 2)] if setter is sys.settrace else []
    assert events == [("call", "g", 0), *lines, ("return", "g", 2)]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_monitoring(table):
    monitoring = sys.monitoring
    events = []
    kinds = monitoring.events.PY_START | monitoring.events.PY_RETURN
    monitoring.use_tool_id(4, "test")
    for kind in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
        monitoring.register_callback(4, kind, lambda code, *a, kind=kind: events.append((kind, code.co_name)))

    def f(a):
        return 0

    def g(a):
        return 7

    table.replace(f, g)
    table.run(f, 1)
    monitoring.set_events(4, kinds)
    try:
        assert table.run(f, 1) == 7
    finally:
        monitoring.set_events(4, 0)
        monitoring.free_tool_id(4)
    assert [e for e in events if e[1] in "fg"] == [
        (monitoring.events.PY_START, "g"),
        (monitoring.events.PY_RETURN, "g"),
    ]


def test_code_is_freed(table):
    for _ in range(20):
        namespace = {}
        exec("def f(a): return a\ndef g(a): return (a, a)", namespace)
        f, g = namespace.pop("f"), namespace.pop("g")
        table.replace(f, g, [type_is(Local("a"), int)])
        assert table.run(f, 1) == (1, 1)
        table.replacements.clear()
        table.seen.clear()
        alive = weakref.ref(f.__code__), weakref.ref(g.__code__)
        del f, g
        gc.collect()
        assert [r() for r in alive] == [None, None]


def test_reset_while_running(table):
    def f(a):
        return 0

    def g(a):
        _core.reset_code(f.__code__)
        gc.collect()
        return a

    cells = f.__code__.co_freevars, g.__code__.co_freevars
    if cells[0] == cells[1]:
        table.replace(f, g)
        assert table.run(f, 3) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(table):
    def f(a):
        return 0

    def g(a):
        return a

    table.replace(f, g)
    hold, go = threading.Event(), threading.Event()

    def inside():
        hold.set()
        go.wait(5)

    thread = threading.Thread(target=lambda: table.run(inside))
    thread.start()
    hold.wait(5)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if table.run(f, 4) == 4 and f(4) == 0 and not _core.is_capturing() else 1)
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_capture_is_off_in_uncaptured_and_nested_switches(table):
    def f(a):
        return 0

    def g(a):
        return a

    table.replace(f, g)
    plain = _core.uncaptured(f)
    assert table.run(lambda: (f(3), plain(3), f(4))) == (3, 0, 4)
    assert not _core.is_capturing()
