"""The frame hook alone: replacement codes put into frames, without any compiler."""

from __future__ import annotations

import asyncio
import gc
import sys
import traceback
import weakref

import pytest
from hook_table import Table

from lamina_dynamo import _core
from lamina_dynamo.guard import GuardSet, equals, id_is, type_is
from lamina_dynamo.guard_program import compile_guards
from lamina_dynamo.replacement import flat_code
from lamina_dynamo.source import Attr, Global, Local

G = 5


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


def test_capture_is_off_in_uncaptured_and_nested_switches(table):
    def f(a):
        return 0

    def g(a):
        return a

    table.replace(f, g)
    plain = _core.uncaptured(f)
    assert table.run(lambda: (f(3), plain(3), f(4))) == (3, 0, 4)
    assert not _core.is_capturing()
