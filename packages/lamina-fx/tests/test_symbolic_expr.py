"""Expressions: what simplifies to what, ranges, divisibility, printing and parsing."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from lamina_fx.symbolic import (
    FALSE,
    TRUE,
    And,
    Eq,
    FloorDiv,
    Integer,
    Lt,
    Max,
    Min,
    Mod,
    Ne,
    Not,
    Or,
    Symbol,
    divides,
    exact_quotient,
    known_divisor,
    parse_expr,
    range_with,
    to_c,
    to_python,
)

i, j, q = Symbol("i", 0, 99), Symbol("j", 0, 31), Symbol("q", 0, 7)
x, y = Symbol("x"), Symbol("y")
n, m = Symbol("n", 1), Symbol("m", 1)
k = Symbol("k", 0, n - 1)
e = Symbol("e", 0, divisor=8)


SIMPLIFIED = [
    # index splitting and joining
    ((32 * i + j) // 32, "i"),
    ((32 * i + j) % 32, "j"),
    ((64 * i + 8 * q + 3) // 16, "4*i + q // 2"),
    ((16 * i + Symbol("r", 0, 15)) // 32, "i // 2"),
    ((31 - j) // 32, "0"),
    ((31 - j) % 32, "-j + 31"),
    (32 * (x // 32) + x % 32, "x"),
    (8 * ((x // 8) % 4) + x % 8, "x % 32"),
    (32 * (x // 32) + 8 * ((x // 8) % 4) + x % 8, "x"),
    ((x % 32) // 8, "x // 8 % 4"),
    ((x % 32) % 8, "x % 8"),
    ((x // 4) // 8, "x // 32"),
    ((x // 4 + 3) // 8, "(x + 12) // 32"),
    ((5 * x + x % 6) % 3, "0"),
    ((7 * x + 10) // 4, "x + (3*x + 2) // 4 + 2"),
    # multiples and cancellation
    (FloorDiv(x * n, n), "x"),
    (Mod(x * n + 3, n), "3 % n"),
    (FloorDiv(n * x * m, n * m), "x"),
    (FloorDiv(n * x, n * m), "x // m"),
    (FloorDiv(6 * x, 4 * m), "3*x // (2*m)"),
    (FloorDiv((n + 1) * m, n + 1), "m"),
    (Mod((n + 1) * m, n + 1), "0"),
    ((x * n + k) // n, "x"),
    ((x * n + k) % n, "k"),
    (x // x, "1"),
    (x - x, "0"),
    (x * 0, "0"),
    ((x + y) * (x - y), "x*x - y*y"),
    (3 * (x + 2 * y) - 6 * y, "3*x"),
    # divisibility
    (e % 8, "0"),
    (e % 4, "0"),
    ((e + 3) % 8, "3"),
    ((e + 3) // 8, "e // 8"),
    (8 * (e // 8), "e"),
    # negative divisors and constants
    (x // -1, "-x"),
    (Integer(-7) // 2, "-4"),
    (Integer(-7) % 2, "1"),
    (x // -3, "(-x) // 3"),
    (i // 100, "0"),
    (i % 100, "i"),
    (i % 1, "0"),
    # extrema
    (Min(i, 200), "i"),
    (Max(i, 0, -3), "i"),
    (Min(x, x + 1), "x"),
    (Max(x, Max(y, x)), "max(x, y)"),
    (Max(5, 3), "5"),
    # comparisons
    (i < 100, "True"),
    (i >= 100, "False"),
    (2 * x + 2 < 2 * y, "x + 2 <= y"),
    (Lt(x, x + 1), "True"),
    (Eq(2 * x, 8), "x == 4"),
    (Eq(2 * x, 7), "False"),
    (Eq(x, y), "x == y"),
    (Eq(y, x), "x == y"),
    (Ne(i, 100), "True"),
    (x % n < n, "True"),
    (n <= x % n, "False"),
    (k < n, "True"),
    (k + x % m + 2 <= n + m, "True"),
    (k + 1 < n, "k + 2 <= n"),
    (x % n < m, "x % n < m"),
    (Not(x < y), "y <= x"),
    (Not(Eq(x, y)), "x != y"),
    (x > 4, "5 <= x"),
    (And(x < y, TRUE), "x < y"),
    (And(x < y, y <= x), "False"),
    (Or(x < y, y <= x), "True"),
    (And(x < y, And(x < 3, x < y)), "x < y and x <= 2"),
    (Not(And(x < y, x < 3)), "y <= x or 3 <= x"),
]


@pytest.mark.parametrize(("expr", "text"), SIMPLIFIED, ids=[t for _, t in SIMPLIFIED])
def test_canonical_form(expr, text):
    assert str(expr) == text
    assert parse_expr(text, {s.name: s for s in (i, j, q, x, y, n, m, k, e)}) is expr


def test_interning():
    assert x + y is y + x
    assert (x + 1) - 1 is x
    assert Symbol("x") is x
    assert Symbol("x", 0) is not x
    assert pickle.loads(pickle.dumps((x + y) * 3 // 7)) is (x + y) * 3 // 7
    assert copy.deepcopy(x * y) is x * y
    assert Integer(3) == 3
    assert hash(Integer(3)) == hash(3)
    assert {Integer(3): 1}[3] == 1


def test_same_order_in_every_process():
    code = (
        "from lamina_fx.symbolic import *; a, b, c = map(Symbol, ('s10', 's9', 's2'));"
        "{}; print((c*a + b//3 + a - b + max_)//7)"
    )
    texts = set()
    for first in ("max_ = Max(a, b)", "junk = [a*b, b//3, c*a - b]; max_ = Max(b, a)"):
        run = subprocess.run([sys.executable, "-c", code.format(first)], capture_output=True, text=True, check=True)
        texts.add(run.stdout)
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("expr", "want"),
    [
        (3 * i + 1, (1, 298)),
        (i - j, (-31, 99)),
        (-i // 2, (-50, 0)),
        (i * j, (0, 99 * 31)),
        (n * m, (1, None)),
        (x * x, (0, None)),
        (-x * x, (None, 0)),
        (x % 8, (0, 7)),
        (i % 200, (0, 99)),
        (x // 2, (None, None)),
        (Min(i, j), (0, 31)),
        (Max(x, 3), (3, None)),
        (k, (0, None)),
        (e // 8, (0, None)),
        (Symbol("f", 3, 20, 8), (8, 16)),
        (Symbol("neg", -5, -2) * Symbol("pos", 2, 3), (-15, -4)),
        (Symbol("neg", None, -2) * Symbol("pos", 2), (None, -4)),
    ],
    ids=str,
)
def test_range(expr, want):
    assert expr.range() == want


def test_range_with_tighter_bounds():
    assert range_with(2 * x + i, {x: (1, 3)}) == (2, 105)
    assert range_with(i, {x: (1, 3)}) == (0, 99)


def test_divisibility():
    assert divides(8 * x + 16, 8)
    assert not divides(8 * x + 4, 8)
    assert divides(x * n, n)
    assert divides(e + 16, 4)
    assert known_divisor(e * 6) == 48
    assert known_divisor(Integer(0)) == 0
    assert divides(Integer(0), 5)
    assert exact_quotient((x + 1) * (y - 2), x + 1) is y - 2
    assert exact_quotient(x * x + 1, x + 1) is None


@pytest.mark.parametrize("low", [0, 2])
def test_positions_of_a_collapsed_tensor(low):
    """An index below n * m splits into a row below n and a column; an axis that may be empty has no index."""
    n, m = Symbol("n", low), Symbol("m", low)
    i = Symbol("i", 0, n * m - 1)
    row, column = i // m, i % m
    assert row % n is row and row // n == 0
    assert (row % n) * m + column is i
    j = Symbol("j", 0, 4 * n * m * m - 1)
    assert j // (m * m) // (4 * n) == 0 and (j // (4 * m * m)) % n is j // (4 * m * m)
    for values in ({n: a, m: b} for a in range(1, 5) for b in range(1, 5)):
        for x in range(4 * values[n] * values[m] ** 2):
            at = {**values, j: x}
            quotient = x // (4 * values[m] ** 2)
            assert ((j // (4 * m * m)) % n).evaluate(at) == quotient % values[n]
            assert ((j - 4 * n * m * m) // (m * m)).evaluate(at) == (x - 4 * values[n] * values[m] ** 2) // values[
                m
            ] ** 2


@pytest.mark.parametrize("shift", [-3, -1, 0, 1])
def test_division_just_below_a_multiple(shift):
    n, m = Symbol("n", 0), Symbol("m", 0)
    for a in range(1, 5):
        for b in range(1, 5):
            values = {n: a, m: b}
            assert ((n * m + shift) // m).evaluate(values) == (a * b + shift) // b
            assert ((n * m + shift) % m).evaluate(values) == (a * b + shift) % b


def test_zero_divisor():
    with pytest.raises(ZeroDivisionError, match=r"x // 0"):
        x // 0
    with pytest.raises(ZeroDivisionError, match=r"x % 0"):
        x % 0


def test_truth_of_unknown():
    with pytest.raises(TypeError, match="x <= 4 holds is not known"):
        bool(x < 5)
    assert bool(TRUE)
    assert not FALSE


def test_bad_operands():
    with pytest.raises(TypeError):
        x + 1.5
    with pytest.raises(TypeError, match="expected an expression or an int, got str"):
        Max(x, "y")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be an identifier"):
        Symbol("a b")
    with pytest.raises(ValueError, match="must be positive"):
        Symbol("a", divisor=0)


def test_substitute():
    expr = (x + 3) // 4 + y
    assert expr.substitute({x: 4 * y + 1}) is 2 * y + 1
    assert expr.substitute({x: y, y: x}) is (y + 3) // 4 + x
    assert expr.substitute({(x + 3) // 4: 0}) is y
    assert (x < y).substitute({x: 3, y: 4}) is TRUE
    assert expr.substitute({}) is expr
    assert expr.free_symbols == {x, y}


def test_evaluate_needs_values():
    with pytest.raises(KeyError, match="no value for the symbol y"):
        (x + y).evaluate({x: 1})


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (i // 8 + 1, "i / 8 + 1"),
        (x // 8, "lamina_floor_div(x, 8)"),
        (x % 8 * 3, "3*lamina_floor_mod(x, 8)"),
        (3 * (i % 8), "3*(i % 8)"),
        (Min(x, y, 3), "lamina_min(lamina_min(x, y), 3)"),
        (And(i < 5, x < y), "x < y && i <= 4"),
        (Or(i < 5, And(x < y, Eq(y, 3))), "i <= 4 || y == 3 && x < y"),
        (x + 2**40, "x + 1099511627776LL"),
        (TRUE, "1"),
        (-x, "-x"),
        (x - -3 * y, "x + 3*y"),
        (Integer(-3) * n // (m + 1), "lamina_floor_div(-3*n, m + 1)"),
    ],
    ids=str,
)
def test_to_c(expr, text):
    assert to_c(expr) == text


def test_names_and_overflow():
    assert to_c(x + y, {x: "sizes[0]"}) == "sizes[0] + y"
    assert to_python(x + y, lambda s: s.name.upper()) == "X + Y"
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        to_c(x + 2**70)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x +", "expected a number, a name or"),
        ("x $ 2", r"cannot read '\$ 2'|cannot read ' \$ 2'"),
        ("(x", r"expected '\)' before"),
        ("x y", "unexpected 'y'"),
        ("x ** y", "a power must be a number"),
    ],
)
def test_parse_errors(text, message):
    with pytest.raises(ValueError, match=message):
        parse_expr(text, {"x": x, "y": y})
    with pytest.raises(KeyError):
        parse_expr("zz", {"x": x})


def test_parse_python_forms():
    names = {"x": x, "y": y}
    assert parse_expr("not x < y", names) is (y <= x)
    assert parse_expr("x**2 - 3", names) is x * x - 3
    assert parse_expr("x > 3 and x >= y or True", names) is TRUE
    assert parse_expr("-x // 2", names) is -x // 2
    assert parse_expr("x - y - 1", names) is x - y - 1
