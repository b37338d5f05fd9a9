"""Simplification never changes a value: brute force, SymPy and C as oracles."""

from __future__ import annotations

import itertools
import shutil
import subprocess

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from work import count_calls

from lamina_fx.symbolic import (
    C_PRELUDE,
    Eq,
    Expr,
    Integer,
    Le,
    Lt,
    Max,
    Min,
    Mod,
    Ne,
    Not,
    Sum,
    Symbol,
    known_divisor,
    parse_expr,
    to_c,
    to_python,
)

i, j, q = Symbol("i", 0, 99), Symbol("j", 0, 31), Symbol("q", 0, 7)
x, y = Symbol("x"), Symbol("y")
n, m = Symbol("n", 1), Symbol("m", 1)


a, b, c = Symbol("a", -4, 9), Symbol("b", 0, 7), Symbol("c", 1, 6)
GRID = [{a: va, b: vb, c: vc} for va, vb, vc in itertools.product((-4, -1, 0, 3, 9), (0, 1, 4, 7), (1, 2, 6))]


def _trees(depth=4):
    """Python functions of (a, b, c), as nested tuples."""
    leaf = st.one_of(st.sampled_from("abc"), st.integers(-20, 40))
    return st.recursive(
        leaf,
        lambda sub: st.one_of(
            st.tuples(st.sampled_from(["+", "-", "*", "min", "max"]), sub, sub),
            st.tuples(st.sampled_from(["//", "%"]), sub, st.one_of(st.integers(1, 40), st.just("c"), st.just(-3))),
            st.tuples(st.just("//c8"), sub, sub),
        ),
        max_leaves=10,
    )


def _build(tree, env, low, high):
    if isinstance(tree, str):
        return env[tree]
    if isinstance(tree, int):
        return tree
    op, left, right = tree
    left, right = _build(left, env, low, high), _build(right, env, low, high)
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//":
            return left // right
        case "%":
            return left % right
        case "min":
            return low(left, right)
        case "max":
            return high(left, right)
        case _:
            return (8 * left + right % 8) // 8 * 16 + (left * 8 + right) % 16


@settings(max_examples=400, deadline=None)
@given(_trees())
def test_simplification_keeps_values(tree):
    expr = _build(tree, {"a": a, "b": b, "c": c}, Min, Max)
    if isinstance(expr, int):
        return
    low, high = expr.range()
    again = parse_expr(str(expr), {"a": a, "b": b, "c": c})
    divisor = known_divisor(expr)
    for point in GRID:
        value = _build(tree, {s.name: v for s, v in point.items()}, min, max)
        assert expr.evaluate(point) == value
        assert again.evaluate(point) == value
        assert low is None or low <= value
        assert high is None or value <= high
        assert value == 0 if divisor == 0 else value % divisor == 0
        assert eval(to_python(expr), {"min": min, "max": max}, {s.name: v for s, v in point.items()}) == value


@settings(max_examples=200, deadline=None)
@given(_trees(), _trees(), st.sampled_from(["<", "<=", "==", "!="]))
def test_comparisons_keep_values(left, right, op):
    symbols = {"a": a, "b": b, "c": c}
    sides = [Integer(v) if isinstance(v, int) else v for v in (_build(t, symbols, Min, Max) for t in (left, right))]
    kinds = {"<": Lt, "<=": Le, "==": Eq, "!=": Ne}
    expr = kinds[op](*sides)
    opposite = Not(expr)
    assert Not(opposite) is expr
    for point in GRID:
        values = {s.name: v for s, v in point.items()}
        one, two = (_build(t, values, min, max) for t in (left, right))
        want = {"<": one < two, "<=": one <= two, "==": one == two, "!=": one != two}[op]
        assert bool(expr.evaluate(point)) == want
        assert bool(opposite.evaluate(point)) != want


@settings(max_examples=150, deadline=None)
@given(_trees(), _trees())
def test_substitution_commutes_with_evaluation(tree, inner):
    symbols = {"a": a, "b": b, "c": c}
    expr = _build(tree, symbols, Min, Max)
    new = _build(inner, symbols, Min, Max)
    if not isinstance(expr, Expr):
        return
    free = Symbol("free")  # no range: what is put in need not stay within a's
    generic = _build(tree, {"a": free, "b": b, "c": c}, Min, Max)
    if not isinstance(generic, Expr):
        return
    result = generic.substitute({free: new})
    for point in GRID[::7]:
        value = new if isinstance(new, int) else new.evaluate(point)
        assert result.evaluate(point) == generic.evaluate({**point, free: value})


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(-5, 5)), max_size=5))
def test_polynomials_agree_with_sympy(parts):
    ours: Expr = Integer(0)
    theirs = sympy.Integer(0)
    names = {s: sympy.Symbol(s) for s in "abc"}
    for u, v, factor in parts:
        ours = ours * (1 + parse_expr(u, {"a": a, "b": b, "c": c})) + factor * parse_expr(v, {"a": a, "b": b, "c": c})
        theirs = theirs * (1 + names[u]) + factor * names[v]
    assert sympy.expand(theirs - sympy.sympify(str(ours))) == 0
    assert (ours is Integer(0)) == (sympy.expand(theirs) == 0)


def test_c_agrees_with_python(tmp_path):
    compiler = shutil.which("cc") or shutil.which("g++") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on PATH")
    exprs = [x // 7 + y % 5, Min(x, y) % 3, (3 * x - y) // n, Max(x - y, 3) * (i // 8), Mod(x, -4), (x % 32) // 8]
    free = [x, y, n, i]
    lines = [C_PRELUDE, "#include <stdio.h>", "int main(void) { long long x, y, n, i;"]
    lines.append('while (scanf("%lld %lld %lld %lld", &x, &y, &n, &i) == 4) printf("')
    lines[-1] += (
        "%lld " * len(exprs) + '\\n", ' + ", ".join(f"(long long)({to_c(expr)})" for expr in exprs) + "); return 0; }"
    )
    source = tmp_path / "t.c"
    source.write_text("\n".join(lines))
    subprocess.run([compiler, "-x", "c", str(source), "-o", str(tmp_path / "t")], check=True)
    points = list(itertools.product((-9, -1, 0, 4, 13), (-6, 0, 5), (1, 3), (0, 17, 99)))
    text = "\n".join(" ".join(map(str, p)) for p in points)
    run = subprocess.run([str(tmp_path / "t")], input=text, capture_output=True, text=True, check=True)
    for point, line in zip(points, run.stdout.splitlines(), strict=True):
        values = dict(zip(free, point, strict=True))
        assert [int(v) for v in line.split()] == [expr.evaluate(values) for expr in exprs]


def test_large_products_stay_products():
    wide = [Sum(*[Symbol(f"w{r}_{col}") for col in range(12)]) for r in range(3)]
    product = wide[0] * wide[1] * wide[2]
    values = {s: index for index, s in enumerate(sorted(product.free_symbols, key=lambda s: s.key))}
    want = 1
    for factor in wide:
        want *= factor.evaluate(values)
    assert product.evaluate(values) == want
    assert len(str(product)) < 1000


def test_work_of_typical_indices():
    def simplify(rows):
        for outer in range(rows):
            width = 32 + outer % 7
            p0, p1, p2 = (Symbol(f"p{outer % 50}_{d}", 0, size - 1) for d, size in enumerate((8, 16, width)))
            flat = (p0 * 16 + p1) * width + p2
            for inner in (flat + step for step in range(5)):
                assert inner // 4 % 8 is not None
                assert inner % width is not None
                assert (inner < 100 + outer) is not None

    few, many = count_calls(lambda: simplify(50)), count_calls(lambda: simplify(500))
    assert many < 11 * few
    assert many / (500 * 20) < 120, f"{many / 10_000:.0f} calls a simplification"
