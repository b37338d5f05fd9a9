"""SymInt, SymBool, SymFloat: arithmetic, guards, policies."""

from __future__ import annotations

import copy
import itertools
import math

import pytest

from lamina_fx import CPU, Device, TensorSpec, contiguous_strides, float32
from lamina_fx.symbolic import (
    Eq,
    Mod,
    ShapeEnv,
    SymBool,
    SymFloat,
    SymInt,
    UnbackedSizeError,
    sym_float,
    sym_int,
    sym_max,
    sym_min,
    sym_sqrt,
)


@pytest.fixture
def env():
    return ShapeEnv()


def sizes(env, *hints):
    return [env.create_symbol(h, f"x{i}.shape[0]") for i, h in enumerate(hints)]


def guards(env):
    return [str(g.expr) for g in env.guards]


ARITHMETIC = [
    (lambda n: n + 1, "s0 + 1"),
    (lambda n: 1 + n, "s0 + 1"),
    (lambda n: 10 - n, "-s0 + 10"),
    (lambda n: n - 3, "s0 - 3"),
    (lambda n: 2 * n, "2*s0"),
    (lambda n: n * n, "s0*s0"),
    (lambda n: n // 2, "s0 // 2"),
    (lambda n: n % 4, "s0 % 4"),
    (lambda n: -n, "-s0"),
    (lambda n: +n, "s0"),
    (lambda n: n**2, "s0*s0"),
    (lambda n: divmod(n, 3), "(s0 // 3, s0 % 3)"),
    (abs, "s0"),
    (lambda n: abs(n - 9), "max(-s0 + 9, s0 - 9)"),
    (lambda n: n - n, "0"),
    (lambda n: (2 * n) // 2, "s0"),
    (lambda n: sym_max(n, 3), "max(s0, 3)"),
    (lambda n: sym_min(3, n), "min(s0, 3)"),
    (lambda n: sym_max([1, n, 2]), "max(s0, 2)"),
    (lambda n: sym_max(3, 4), "4"),
    (lambda n: math.floor(n), "s0"),
    (lambda n: round(n), "s0"),
    (lambda n: sym_int(n), "s0"),
    (lambda n: copy.deepcopy(n), "s0"),
    (lambda n: n / 2, "(float(s0) / 2)"),
    (lambda n: 1 / n, "(1 / float(s0))"),
    (lambda n: n * 0.5, "(float(s0) * 0.5)"),
    (lambda n: sym_sqrt(n) * 2, "(sqrt(float(s0)) * 2)"),
    (lambda n: f"{n}", "s0"),
]


@pytest.mark.parametrize(("fn", "text"), ARITHMETIC, ids=[t for _, t in ARITHMETIC])
def test_arithmetic_adds_no_guard(env, fn, text):
    (n,) = sizes(env, 8)
    assert str(fn(n)) == text
    assert env.guards == []


@pytest.mark.parametrize("hint", [1, 3, 8])
def test_arithmetic_agrees_with_ints(hint):
    for fn, _ in ARITHMETIC:
        env = ShapeEnv()
        (n,) = sizes(env, hint)
        result, want = fn(n), fn(hint)
        if isinstance(result, str):
            continue
        for got, value in zip(*(v if isinstance(v, tuple) else (v,) for v in (result, want)), strict=True):
            assert (got.hint if isinstance(got, (SymInt, SymFloat)) else got) == value


@pytest.mark.parametrize(
    ("ask", "answer", "guard"),
    [
        (lambda n: bool(n > 3), True, "4 <= s0"),
        (lambda n: bool(n < 3), False, "3 <= s0"),
        (lambda n: n == 8, True, "s0 == 8"),
        (lambda n: n == 9, False, "s0 != 9"),
        (lambda n: bool(n), True, "s0 != 0"),
        (int, 8, "s0 == 8"),
        (lambda n: [0] * 9 and list(range(n)), list(range(8)), "s0 == 8"),
        (lambda n: (0,) * n, (0,) * 8, "s0 == 8"),
        (float, 8.0, "s0 == 8"),
        (lambda n: bool((n > 3) & (n < 100)), True, "s0 <= 99 and 4 <= s0"),
        (lambda n: bool(~(n > 3)), False, "4 <= s0"),
        (lambda n: bool((n < 3) | (n % 2 == 0)), True, "s0 % 2 == 0 or s0 <= 2"),
        (lambda n: n / 2 == 4.0, True, "s0 == 8"),
        (lambda n: n > 3.5, True, "s0 == 8"),
        (lambda n: max(n, 3) == 8, True, "s0 == 8"),
        (lambda n: 2**n, 256, "s0 == 8"),
        (lambda n: f"{n:3d}", "  8", "s0 == 8"),
    ],
)
def test_definite_answers_guard(env, ask, answer, guard):
    (n,) = sizes(env, 8)
    result = ask(n)
    assert (bool(result) if isinstance(result, SymBool) else result) == answer
    assert guard in guards(env)


def test_a_question_answered_once_is_not_guarded_again(env):
    (n,) = sizes(env, 8)
    assert n > 3
    assert n > 2
    assert n != 1
    assert n != 0
    assert not n < 4
    assert guards(env) == ["4 <= s0"]
    assert n > 4
    assert guards(env) == ["4 <= s0", "5 <= s0"]


def test_no_specialisation_on_zero_and_one_without_a_branch(env):
    n, m = sizes(env, 1, 0)
    assert (n * m + 1).hint == 1
    assert str(n * 5) == "5*s0"
    assert env.guards == []
    assert n == 1
    assert n * 5 == 5
    assert guards(env) == ["s0 == 1"]


def test_unification(env):
    n, m, k = sizes(env, 8, 8, 16)
    total = n + m
    assert n == m
    assert total.expr is 2 * n.expr
    assert n - m == 0
    assert k == 2 * n
    assert (k // 2 - m) == 0
    assert guards(env) == ["s0 == s1", "2*s0 == s2"]
    assert n == 8
    assert (total, k, m) == (16, 16, 8)
    assert guards(env)[2:] == ["s0 == 8"]


def test_unification_keeps_what_was_known(env):
    n, m = sizes(env, 8, 8)
    assert m > 5
    assert n == m
    assert env.statically_known(n >= 6)
    assert guards(env) == ["6 <= s1", "s0 == s1"]


def test_remainder_guard(env):
    (n,) = sizes(env, 32)
    assert n % 8 == 0
    assert str(n % 8) == "0"
    assert env.statically_known(Eq(Mod(n.expr, 8), 0))
    assert guards(env) == ["s0 % 8 == 0"]


def test_guards_hold_for_the_hints_and_decide_what_was_asked(env):
    n, m = sizes(env, 6, 4)
    asked = [n > m, n % 2 == m % 2, n * m == 24, n - m < 3, (n + m) // 5 == 2, n != 7]
    answers = [bool(a) for a in asked]
    for vn, vm in itertools.product(range(12), range(12)):
        point = {env.symbol("s0"): vn, env.symbol("s1"): vm}
        if all(g.expr.evaluate(point) for g in env.guards):
            real = [vn > vm, vn % 2 == vm % 2, vn * vm == 24, vn - vm < 3, (vn + vm) // 5 == 2, vn != 7]
            assert real == answers


def test_statically_known_never_guards(env):
    n, m = sizes(env, 8, 4)
    assert env.statically_known(n >= 0)
    assert not env.statically_known(n > 0)
    assert not env.statically_known(SymBool(Eq(n.expr, m.expr), env))
    assert env.statically_known(True)
    assert env.guards == []


def test_where_and_lines():
    env = ShapeEnv()
    n = env.create_symbol(8, "x.shape[0]", line="model.py:12")
    assert n > 3
    env.where = lambda: "model.py:40"
    assert n > 4
    assert [g.source for g in env.guards] == ["model.py:12", "model.py:40"]
    assert repr(env.guards[1]) == "5 <= s0  # model.py:40"
    assert env.sources[env.symbol("s0")] == "x.shape[0]"
    with pytest.raises(KeyError, match="no symbol 's9'; known: s0"):
        env.symbol("s9")


def test_policies(env):
    assert env.create_symbol(8, "a", "static") == 8
    first, second = env.create_symbol(8, "a", "duck"), env.create_symbol(8, "b", "duck")
    assert first is second
    assert env.create_symbol(8, "c").expr is not first.expr
    with pytest.raises(ValueError, match=r"d is 8, outside \[0, 7\]"):
        env.create_symbol(8, "d", upper=7)


def test_bounds_and_divisor_given_by_the_user(env):
    n = env.create_symbol(32, "x", lower=2, upper=64, divisor=8)
    assert n >= 2
    assert n % 4 == 0
    assert not n > 64
    assert env.guards == []


def test_unbacked(env):
    u = env.create_unbacked(0, 10, "nonzero(x).shape[0]")
    assert str(u + 1) == "u0 + 1"
    assert u < 11
    assert u.hint is None
    with pytest.raises(UnbackedSizeError, match=r"u0 <= 4 is not known: it depends on u0 \(nonzero\(x\).shape\[0\]\)"):
        bool(u < 5)
    with pytest.raises(UnbackedSizeError):
        int(u)
    with pytest.raises(UnbackedSizeError):
        env.hint(u)
    env.add_assertion(u < 5, "few")
    assert u < 5
    assert u < 8
    assert [repr(a) for a in env.assertions] == ["u0 <= 4  # few"]
    assert env.guards == []
    with pytest.raises(ValueError, match="can never hold: no"):
        env.add_assertion(u > 7, "no")
    with pytest.raises(ValueError, match="assertion False can never hold"):
        env.add_assertion(False)
    env.add_assertion(True)


def test_unbacked_is_replaced_by_backed(env):
    (n,) = sizes(env, 8)
    u = env.create_unbacked()
    env.add_assertion(u == n)
    assert u.hint == 8
    assert (u - n) == 0


def test_division_by_zero(env):
    n, m = sizes(env, 8, 0)
    with pytest.raises(ZeroDivisionError, match="division by s1, which is 0"):
        n // m
    assert str(8 // n) == "8 // s0"
    assert guards(env)[-1] == "s0 != 0"


def test_hash_and_dictionary_keys(env):
    n, m = sizes(env, 8, 8)
    table = {n: "n", n + 1: "n+1"}
    assert table[1 + n] == "n+1"
    assert hash(SymInt(3, env)) == hash(3)
    assert {n, m, n + 0} == {n, m} or env.guards  # sets may ask whether n == m
    assert hash(n > 3) == hash(n > 3)


def test_float(env):
    (n,) = sizes(env, 16)
    scale = 1.0 / sym_sqrt(n)
    assert isinstance(scale, SymFloat)
    assert scale.hint == 0.25
    assert env.guards == []
    assert float(scale) == 0.25
    assert guards(env) == ["s0 == 16"]
    assert sym_float(3) == 3.0
    assert sym_sqrt(4) == 2.0
    assert scale.evaluate({env.symbol("s0"): 4}) == 0.5
    assert (2 - scale * 2 + n / n) == 2.5
    assert scale < 0.3 <= 2 * scale


def test_wrong_operands(env):
    (n,) = sizes(env, 8)
    assert (n == "8") is False
    with pytest.raises(TypeError):
        n + "1"
    with pytest.raises(TypeError):
        n < None  # noqa: B015


def test_specs(env):
    n, m = sizes(env, 8, 8)
    spec = TensorSpec((n * 2, 4), float32)
    assert repr(spec) == "float32[2*s0, 4]"
    assert spec == TensorSpec((2 * n, 4), float32)
    assert hash(spec) == hash(TensorSpec((2 * n, 4), float32))
    assert spec != TensorSpec((2 * m, 4), float32)
    assert spec != TensorSpec((16, 4), float32)
    assert spec != TensorSpec((2 * n, 4), float32, device=Device("cuda:0"))
    assert spec.device == CPU
    assert str(contiguous_strides((3, n, m))) == "(s0*s1, s1, 1)"
    assert str(spec.numel()) == "8*s0"
    assert spec.is_contiguous()
    turned = TensorSpec((4, n), float32, (1, 4))
    assert repr(turned) == "float32[4, s0]@(1, 4)"
    assert not turned.is_contiguous()
    assert env.guards == []
    assert n == m
    assert spec == TensorSpec((2 * m, 4), float32)
