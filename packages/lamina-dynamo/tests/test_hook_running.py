"""The frame hook while frames run: threads, recursion, room on the stack, tracing, forks, and what is freed."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref

import pytest
from hook_table import Table

from lamina_dynamo import _core
from lamina_dynamo.guard import GuardSet, type_is
from lamina_dynamo.guard_program import compile_guards
from lamina_dynamo.replacement import flat_code
from lamina_dynamo.source import Attr, Local


@pytest.fixture
def table():
    return Table()


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
