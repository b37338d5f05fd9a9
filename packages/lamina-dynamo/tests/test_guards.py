"""Every kind of guard and source, passing and failing, in C++ and in words."""

from __future__ import annotations

import collections
import gc
import math
import random
import sys
import types
import weakref

import numpy as np
import pytest

from lamina_dynamo import _core
from lamina_dynamo import guard as g
from lamina_dynamo.guard_program import compile_guards
from lamina_dynamo.replacement import flat_code
from lamina_dynamo.source import (
    Attr,
    Builtin,
    CellContents,
    Const,
    DictItem,
    DictKeys,
    FrameScope,
    FreeCell,
    FunctionCell,
    FunctionCode,
    FunctionDefault,
    FunctionGlobals,
    FunctionKwDefault,
    GetItem,
    Global,
    Grad,
    InstanceAttr,
    Item,
    Local,
    MethodFunction,
    MethodSelf,
    Module,
    TensorProperty,
    TypeAttr,
    TypeOf,
    WeakObject,
    chain,
    module_entry,
)
from lamina_fx import TensorSpec, bfloat16, float32, float64

X, Y = Local("x"), Local("y")
GLOBAL_NUMBER = 7
free_value = 11
owners = iter(range(50_000, 60_000))


def make_frame_function():
    free = free_value

    def f(x, y=None, *args, **kw):
        return free

    return f


def holds(guards, *args, **kwargs):
    """Whether the program accepts a frame, which then runs a replacement that returns True; else what failed."""
    guards = g.GuardSet(guards)
    f = make_frame_function()
    replacement = (lambda free: lambda x, y=None, *args, **kw: (free, True)[1])(1).__code__
    outcome = []
    owner = next(owners)
    _core.add_entry(f.__code__, owner, compile_guards(guards, f.__code__), replacement, flat_code(replacement), guards)

    def miss(code, local, global_, builtins, closure, misses):
        cells = dict(zip(code.co_freevars, closure, strict=True))
        scope = FrameScope(local, global_, builtins, cells)
        for info, failed in misses:
            outcome.append(info[failed].explain(scope))
        _core.skip(code, owner)

    result = _core.Switch(f, miss, owner)(*args, **kwargs)
    _core.reset_code(f.__code__)
    return True if result is True else outcome[0]


class Point:
    kind = "class attribute"

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def method(self):
        return 1

    @property
    def computed(self):
        return self.__dict__["hidden"]


def defaults(a, b=3, *, c=4):
    return a


def other(a, b=3, *, c=4):
    return a


def closure_of(value):
    def inner():
        return value

    return inner


nan = float("nan")
INF_SET = frozenset({1, 2})

CASES = [
    # guards, a frame that passes, one that fails, a part of the explanation
    ([g.type_is(X, int)], (1,), (True,), "it is bool"),
    ([g.id_is(X, Point)], (Point,), (int,), "it is <class 'int'>"),
    ([g.is_none(X)], (None,), (0,), "it is 0"),
    ([g.is_none(X, False)], (0,), (None,), "it is None"),
    ([g.code_is(X, defaults.__code__)], (defaults,), (other,), "other"),
    ([g.code_is(X, Point.method.__code__)], (Point().method,), (len,), "len"),
    ([g.equals(X, 1)], (1,), (1.0,), "it is 1.0"),
    ([g.equals(X, 1)], (1,), (True,), "it is True"),
    ([g.equals(X, 10**30)], (10**30,), (10**30 + 1,), "it is 1000"),
    ([g.equals(X, nan)], (float("nan"),), (0.0,), "it is 0.0"),
    ([g.equals(X, 0.0)], (0.0,), (-0.0,), "it is -0.0"),
    ([g.equals(X, complex(1, -0.0))], (complex(1, -0.0),), (complex(1, 0.0),), "it is (1+0j)"),
    ([g.equals(X, "ab")], ("".join(["a", "b"]),), ("ac",), "it is 'ac'"),
    ([g.equals(X, b"ab")], (b"ab",), ("ab",), "it is 'ab'"),
    ([g.equals(X, (1, (2.0, "x")))], ((1, (2.0, "x")),), ((1, (2, "x")),), "it is (1, (2"),
    ([g.equals(X, slice(1, None, 2))], (slice(1, None, 2),), (slice(1, None, 3),), "it is slice(1"),
    ([g.equals(X, range(3))], (range(3),), (range(4),), "it is range(0, 4)"),
    ([g.equals(X, INF_SET)], (frozenset({2, 1}),), (frozenset({2}),), "frozenset({2})"),
    ([g.equals(X, ...)], (...,), (None,), "it is None"),
    ([g.length(X, 2)], ([1, 2],), ([1],), "it is 1"),
    ([g.length(X, 2)], ({1: 1, 2: 2},), ({},), "it is 0"),
    ([g.length(X, 2)], (collections.deque([1, 2]),), (collections.deque(),), "it is 0"),
    ([g.length(X, 2)], ("ab",), ("abc",), "it is 3"),
    ([g.dict_keys(X, ["a", 1])], ({"a": 0, 1: 0},), ({1: 0, "a": 0},), "the keys are [1, 'a']"),
    ([g.dict_keys(X, [1])], ({1: 0},), ({True: 0},), "the keys are [True]"),
    ([g.dict_keys(X, [Point])], ({Point: 0},), ({int: 0},), "the keys are"),
    ([g.dict_has(X, "a", True)], ({"a": 0},), ({},), "it is not so"),
    ([g.dict_has(X, Point, False)], ({},), ({Point: 1},), "it is not so"),
    ([g.attr_present(X, "a", True)], (Point(a=1),), (Point(),), "it is not so"),
    ([g.attr_present(X, "method", False, raw=True)], (Point(),), (Point(method=1),), "it is not so"),
    ([g.attr_present(X, "method", True)], (Point(),), (3,), "it is not so"),
    ([g.same_object(X, Y)], (CASE := [], CASE), ([], []), "related otherwise"),
    ([g.all_distinct([X, Y])], ([], []), (CASE, CASE), "related otherwise"),
    ([g.python_check(X, lambda v: v > 3, "x > 3")], (4,), (3,), "it is 3"),
    ([g.python_check(X, lambda v: v > 3, "x > 3")], (4,), ("raises",), "it is 'raises'"),
    # sources
    ([g.equals(Attr(X, "computed"), 1)], (Point(hidden=1),), (Point(hidden=2),), "it is 2"),
    ([g.equals(Attr(X, "computed"), 1)], (Point(hidden=1),), (Point(),), "can not be read"),
    ([g.equals(InstanceAttr(X, "a"), 1)], (Point(a=1),), (Point(a=2),), "it is 2"),
    ([g.equals(InstanceAttr(X, "kind"), 1)], (Point(kind=1),), (Point(),), "can not be read"),
    ([g.equals(InstanceAttr(X, "a"), 1)], (Point(a=1),), (3,), "can not be read"),
    ([g.equals(TypeAttr(TypeOf(X), "kind"), "class attribute")], (Point(),), (3,), "can not be read"),
    ([g.id_is(TypeOf(X), Point)], (Point(),), (3,), "it is <class 'int'>"),
    ([g.equals(Item(X, 1), 5)], ([0, 5],), ([0],), "can not be read"),
    ([g.equals(Item(X, 1), 5)], ((0, 5),), ((0, 6),), "it is 6"),
    ([g.equals(DictItem(X, "k"), 5)], ({"k": 5},), ({"k": 6},), "it is 6"),
    ([g.equals(DictItem(X, None), 5)], ({None: 5},), ({},), "can not be read"),
    ([g.equals(Item(DictKeys(X), 1), "b")], ({"a": 0, "b": 0},), ({"b": 0, "a": 0},), "it is 'a'"),
    ([g.equals(GetItem(X, "k"), 5)], (collections.UserDict(k=5),), (collections.UserDict(),), "can not be read"),
    ([g.id_is(FunctionCode(X), defaults.__code__)], (defaults,), (other,), "code object other"),
    ([g.equals(DictItem(FunctionGlobals(X), "GLOBAL_NUMBER"), 7)], (defaults,), (math.sin,), "can not be read"),
    ([g.equals(FunctionDefault(X, 0), 3)], (defaults,), (lambda a=4: a,), "it is 4"),
    ([g.equals(FunctionKwDefault(X, "c"), 4)], (defaults,), (lambda *, c=5: c,), "it is 5"),
    ([g.equals(CellContents(FunctionCell(X, 0)), 1)], (closure_of(1),), (closure_of(2),), "it is 2"),
    ([g.cell_state(FunctionCell(X, 0), True)], (closure_of(1),), (lambda: 0,), "can not be read"),
    ([g.id_is(MethodFunction(X), Point.method)], (Point().method,), (len,), "can not be read"),
    ([g.type_is(MethodSelf(X), Point)], (Point().method,), (len,), "it is module"),
    ([g.equals(Grad(X), 1)], (Point(grad=1),), (Point(grad=None),), "it is None"),
    ([g.equals(DictItem(module_entry(X, "_parameters", "w"), "z"), 1)], (Point(_parameters={"w": {"z": 1}}),),
     (Point(_parameters={}),), "can not be read"),
    ([g.length(Local("args"), 1), g.equals(Item(Local("args"), 0), 3)], (1, 2, 3), (1, 2, 4), "it is 4"),
    ([g.equals(Const(1), 1), g.type_is(X, int)], (1,), ("a",), "it is str"),
    ([g.id_is(Module("math"), math), g.type_is(X, int)], (1,), ("a",), "it is str"),
    ([g.equals(Global("GLOBAL_NUMBER"), 7), g.type_is(X, int)], (1,), ("a",), "it is str"),
    ([g.id_is(Builtin("len"), len), g.name_absent("len"), g.type_is(X, int)], (1,), ("a",), "it is str"),
    ([g.equals(CellContents(FreeCell("free")), 11), g.type_is(X, int)], (1,), ("a",), "it is str"),
    # symbolic sizes
    ([g.shape_holds("a * 2 + b // 3 == 8 and a != b", {"a": X, "b": Y})], (3, 6), (3, 9), "it is 3, 9"),
    ([g.shape_holds("min(a, b, 4) % 3 == 1 or not a < b", {"a": X, "b": Y})], (4, 9), (2, 9), "it is 2, 9"),
    ([g.shape_holds("-a // 2 == -2", {"a": X})], (3,), (2,), "it is 2"),
    ([g.shape_holds("-7 % a == 2", {"a": X})], (3,), (0,), "it is 0"),
    ([g.shape_holds("1 <= a <= 4", {"a": X})], (4,), (5,), "it is 5"),
    ([g.shape_holds("a * a > 0", {"a": X})], (3,), (2**40,), "it is 109"),
    ([g.shape_holds("a == b", {"a": TensorProperty(X, "size", 1), "b": TensorProperty(Y, "stride", 0)})],
     (np.zeros((2, 3)), np.zeros((5, 3))), (np.zeros((2, 4)), np.zeros((5, 3))), "it is 4, 3"),
    ([g.equals(TensorProperty(X, "numel"), 6)], (np.zeros((2, 3)),), (np.zeros(3),), "it is 3"),
    ([g.equals(TensorProperty(X, "ndim"), 2)], (np.zeros((2, 3)),), (np.zeros(3),), "it is 1"),
]  # fmt: skip


@pytest.mark.parametrize(("guards", "good", "bad", "words"), CASES)
def test_guard(guards, good, bad, words):
    assert holds(guards, *good) is True
    explanation = holds(guards, *bad)
    assert explanation is not True and words in explanation


ARRAY = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("shape", "dtype", "strides", "value", "words"),
    [
        ((2, 3), float32, None, np.zeros((2, 3), np.float32), None),
        ((2, 3), float32, None, np.zeros((2, 4), np.float32), "it is float32[2, 4]"),
        ((2, 3), float32, None, np.zeros((2, 3)), "it is float64[2, 3]"),
        ((2, 3), float32, None, np.zeros((2, 3, 1), np.float32), "it is float32[2, 3, 1]"),
        ((2, 3), float32, None, np.zeros((3, 2), np.float32).T, "it is float32[2, 3]"),
        ((2, 3), float32, (1, 2), np.zeros((3, 2), np.float32).T, None),
        ((1, 3), float32, (77, 1), np.zeros((1, 3), np.float32), None),
        ((2, 3), float32, None, [1.0], "it is list"),
    ],
)
def test_array(shape, dtype, strides, value, words):
    spec = TensorSpec(shape, dtype, strides)
    answer = holds([g.array_matches(X, ARRAY, spec)], value)
    assert answer is True if words is None else words in answer


def test_array_with_free_dimensions():
    facts = g.array_matches(X, ARRAY, TensorSpec((2, 3), float32)).expected
    free = g.Guard(
        g.GuardKind.ARRAY,
        (X,),
        g.TensorFacts(facts.kind, "float32", "cpu", (None, 3), (None, 1)),
        "x",
    )
    assert holds([free], np.zeros((9, 3), np.float32)) is True
    assert holds([free], np.zeros((9, 4), np.float32)) is not True
    assert "float32[*, 3]" in str(free.expected)


def test_array_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = np.zeros(3, ml_dtypes.bfloat16)
    guard = g.array_matches(X, value, TensorSpec((3,), bfloat16))
    assert holds([guard], np.ones(3, ml_dtypes.bfloat16)) is True
    assert holds([guard], np.ones(3, np.float32)) is not True


class Foreign:
    """An array of a library that C++ does not know."""

    def __init__(self, shape, dtype="float64"):
        self.shape, self.dtype, self.itemsize = shape, dtype, 8
        self.strides = tuple(8 * math.prod(shape[k + 1 :]) for k in range(len(shape)))


def test_foreign_array():
    guard = g.array_matches(X, Foreign((2, 3)), TensorSpec((2, 3), float64))
    assert holds([guard], Foreign((2, 3))) is True
    assert holds([guard], Foreign((2, 4))) is not True
    assert holds([guard], Foreign((2, 3), "int8")) is not True


def test_relations_of_many_whatever_the_last_call_was():
    """The program remembers the order of the last call; another order is no reason to fail, a pair that meets is."""

    def f(x):
        return False

    parts = tuple(Item(Local("x"), k) for k in range(12))
    guards = g.GuardSet([g.all_distinct(parts), g.no_overlap(parts)])
    replacement = (lambda x: True).__code__
    owner = next(owners)
    program = compile_guards(guards, f.__code__)
    _core.add_entry(f.__code__, owner, program, replacement, flat_code(replacement), guards)
    _core.freeze(f.__code__, owner)
    run = _core.Switch(f, lambda *args: None, owner)
    memory = np.zeros(120)
    arrays = [memory[10 * k : 10 * k + 10] for k in range(12)]
    rng = random.Random(0)
    for _ in range(20):
        rng.shuffle(arrays)
        assert run(tuple(arrays)) is True
        one, other = rng.sample(range(12), 2)
        twice = [*arrays]
        twice[one] = twice[other]
        assert run(tuple(twice)) is False
        wide = [*arrays]
        start = (wide[one].ctypes.data - memory.ctypes.data) // 8
        wide[one] = memory[max(0, start - 1) : start + 11]
        assert run(tuple(wide)) is False


def test_overlap():
    z = np.zeros(10)
    parts = [X, Y]
    assert holds([g.no_overlap(parts)], z[:5], z[5:]) is True
    assert holds([g.no_overlap(parts)], z[:6], z[5:]) is not True
    assert holds([g.no_overlap(parts)], z[::-1], z[5:7]) is not True
    assert holds([g.no_overlap(parts)], z[5:5], z) is True
    assert holds([g.overlap_is(X, Y, 16)], z[1:5], z[3:5]) is True
    assert holds([g.overlap_is(X, Y, 16)], z[1:5], z[2:5]) is not True


def test_words_of_a_condition_over_sizes():
    """A name is replaced once: not again inside of what stands for another."""
    sizes = {"n": TensorProperty(Local("input"), "size", 0), "t": TensorProperty(Local("input"), "stride", 1)}
    assert str(g.shape_holds("n <= 1 or t == max(n, 2)", sizes)) == (
        "L['input'].size(0) <= 1 or L['input'].stride(1) == max(L['input'].size(0), 2)"
    )


def test_many_distinct():
    sources = [Item(X, k) for k in range(20)]
    values = [[] for _ in range(20)]
    assert holds([g.all_distinct(sources)], values) is True
    assert holds([g.all_distinct(sources)], [*values[:-1], values[0]]) is not True


def test_ambient():
    state = {"mode": True}
    guard = g.ambient_is(g.Ambient("mode", lambda: state["mode"]), True)
    assert holds([guard], 1) is True
    state["mode"] = False
    assert "mode == True, but it is False" in holds([guard], 1)
    holder = Point()
    by_identity = g.ambient_is(g.Ambient("holder", lambda: holder), holder)
    assert holds([by_identity], 1) is True


def test_ambient_int_cell():
    import ctypes

    cell = ctypes.c_int32(1)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"lamina.int_cell"  # must outlive the capsule
    capsule = new(ctypes.addressof(cell), name, None)
    guard = g.ambient_is(g.Ambient("flag", lambda: bool(cell.value), capsule), True)
    assert holds([guard], 1) is True
    cell.value = 0
    assert holds([guard], 1) is not True


def test_identity_does_not_keep_alive_nor_mix_up():
    point = Point()
    guard = g.id_is(X, point)
    assert holds([guard], point) is True
    alive = weakref.ref(point)
    del point
    gc.collect()
    assert alive() is None
    assert holds([guard], Point()) is not True
    assert holds([guard], None) is not True


def test_weak_object():
    point = Point(a=1)
    source = WeakObject(point)
    guards = [g.equals(InstanceAttr(source, "a"), 1)]
    assert holds(guards, 0) is True
    point.a = 2
    assert "it is 2" in holds(guards, 0)
    del point
    assert "can not be read" in holds(guards, 0)


def test_guards_that_change_what_they_read():
    """Python code run by a guard may free what another guard has read."""

    class Tricky:
        @property
        def boom(self):
            del store[:]
            gc.collect()
            return 1

    store = [[Point(a=1)]]
    guards = [
        g.equals(InstanceAttr(Item(Item(X, 0), 0), "a"), 1),
        g.equals(Attr(Y, "boom"), 1),
        g.length(X, 0),
    ]
    assert holds(guards, store, Tricky()) in (True, "len(L['x']) == 0, but it is 1") or store == []


def test_set_is_ordered_and_unique():
    again = g.type_is(X, int, reason="again")
    guards = g.GuardSet([g.python_check(X, bool, "t"), g.type_is(X, int), again, g.equals(X, 1)])
    assert [x.kind.name for x in guards] == ["TYPE", "EQUALS", "PYTHON"]
    assert len(guards) == 3 and g.type_is(X, int) in guards
    other = guards.copy()
    other.add(g.equals(X, 1.0))
    assert (len(other), len(guards)) == (4, 3)
    assert str(g.GuardSet([g.equals(X, 2, reason="used as a size")])) == "L['x'] == 2  (used as a size)"


def test_sources_compare_by_structure():
    a = Item(InstanceAttr(Local("x"), "layers"), 0)
    twin = Item(InstanceAttr(Local("x"), "layers"), 0)
    assert a == twin and hash(a) == hash(twin)
    assert a != Item(InstanceAttr(Local("x"), "layers"), 1)
    assert Const(1) != Const(True) and Const(1) != Const(1.0) and Const((1, 2)) == Const((1, 2))
    assert [s.name for s in chain(a)] == ["L['x']", "L['x'].layers", "L['x'].layers[0]"]


@pytest.mark.parametrize("text", ["a + ", "a / 2", "f(a)", "a if a else 1", "q"])
def test_bad_shape_conditions(text):
    from lamina_dynamo.shape_program import shape_words

    with pytest.raises((ValueError, SyntaxError)):
        shape_words(text, ("a",))


def test_emitted_sources_read_what_guards_read():
    from lamina_dynamo.emit import Emitter

    def f(x, y=None, *args, **kw):
        return x

    point = Point(a=1, layers=[1, (2, 3)], table={"k": 4})
    cases = [
        (Local("x"), point), (InstanceAttr(X, "a"), 1), (Attr(X, "kind"), "class attribute"),
        (Item(Item(InstanceAttr(X, "layers"), 1), 0), 2), (DictItem(InstanceAttr(X, "table"), "k"), 4),
        (Item(DictKeys(InstanceAttr(X, "table")), 0), "k"), (TypeOf(X), Point),
        (TypeAttr(TypeOf(X), "method"), Point.method),
        (Global("GLOBAL_NUMBER"), 7), (Builtin("len"), len), (Const((1, 2)), (1, 2)), (Module("math"), math),
        (WeakObject(point), point), (MethodSelf(Attr(X, "method")), point),
        (FunctionCode(Global("defaults")), defaults.__code__),
        (FunctionDefault(Global("defaults"), 0), 3), (FunctionKwDefault(Global("defaults"), "c"), 4),
        (TensorProperty(Global("ARRAY"), "size", 1), 3), (TensorProperty(Global("ARRAY"), "stride", 0), 3),
        (TensorProperty(Global("ARRAY"), "numel"), 6), (TensorProperty(Global("ARRAY"), "ndim"), 2),
        (FunctionGlobals(Global("defaults")), globals()), (GetItem(InstanceAttr(X, "table"), "k"), 4),
    ]  # fmt: skip
    for source, expected in cases:
        emitter = Emitter(f.__code__)
        emitter.load_source(source)
        emitter.return_value()
        made = types.FunctionType(emitter.finish(), globals(), "f", (None,))
        assert made(point) == expected, source
        assert source.fetch(FrameScope({"x": point}, globals(), vars(sys.modules["builtins"]))) == expected, source
