"""What is known of sizes, and that answers hold for every input that passes the guards."""

from __future__ import annotations

import itertools
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina_fx.symbolic import (
    And,
    Eq,
    Facts,
    Integer,
    Or,
    ShapeEnv,
    Symbol,
    SymInt,
    sym_max,
    sym_min,
)


@pytest.fixture
def env():
    return ShapeEnv()


a, b = Symbol("a", 0), Symbol("b", 0)


@pytest.mark.parametrize(
    ("known", "question", "answer"),
    [
        ([a < b], a < b + 3, True),
        ([a < b], b < a, False),
        ([a < b], Eq(a, b), False),
        ([a < b], b > 0, None),
        ([a <= b, Eq(b, 4)], a <= 4, True),
        ([a < 5, b < 5], a + b < 9, True),
        ([a < 5], Or(a < 7, b < 3), True),
        ([a < 5], And(a < 7, b < 3), None),
        ([a < 5], And(a > 7, b < 3), False),
        ([Eq(a, 2 * b)], Eq(a % 2, 0), True),
        ([Eq(a * b, 12)], Eq(2 * a * b, 24), True),
        ([~Eq(a, 0)], a >= 1, True),
        ([And(a < 5, b < 5)], b < 6, True),
        ([Eq(a, b), b < 3], a < 3, True),
    ],
    ids=str,
)
def test_facts(known, question, answer):
    facts = Facts()
    for fact in known:
        facts.learn(fact)
    assert facts.decide(question) is answer
    for va, vb in itertools.product(range(14), range(14)):  # never wrong
        point = {a: va, b: vb}
        if all(fact.evaluate(point) for fact in known) and answer is not None:
            assert bool(question.evaluate(point)) == answer
            assert facts.simplify(a + 3 * b).evaluate(point) == va + 3 * vb


def test_constant_symint_guards_nothing(env):
    three = SymInt(Integer(3), env)
    assert three == 3
    assert int(three) == 3
    assert env.guards == []


_terms = st.recursive(
    st.one_of(st.sampled_from("abc"), st.integers(0, 9)),
    lambda t: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), t, t),
        st.tuples(st.sampled_from(["//", "%"]), t, st.integers(1, 6)),
    ),
    max_leaves=4,
)
_questions = st.lists(st.tuples(st.sampled_from(["<", "<=", "==", "!="]), _terms, _terms), min_size=1, max_size=5)
_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "max": sym_max, "min": sym_min, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _value(term, values):
    if isinstance(term, int):
        return term
    if isinstance(term, str):
        return values[term]
    return _BINARY[term[0]](_value(term[1], values), _value(term[2], values))


@settings(max_examples=150, deadline=None)
@given(st.tuples(*[st.integers(0, 7)] * 3), _questions, _terms)
def test_answers_hold_for_all_inputs_that_pass_the_guards(hints, questions, extra):
    env = ShapeEnv()
    values = {name: env.create_symbol(hint, name) for name, hint in zip("abc", hints, strict=True)}
    answers = [bool(_value(q, values)) for q in questions]
    assert answers == [_value(q, dict(zip("abc", hints, strict=True))) for q in questions]
    before = len(env.guards)
    assert [bool(_value(q, values)) for q in questions] == answers
    assert len(env.guards) == before  # nothing is asked twice
    known = _value(extra, values)
    symbols = [env.symbol(f"s{i}") for i in range(3)]
    for point in itertools.product(range(0, 8), repeat=3):
        numbers = dict(zip(symbols, point, strict=True))
        plain = dict(zip("abc", point, strict=True))
        if all(g.expr.evaluate(numbers) for g in env.guards):
            assert [_value(q, plain) for q in questions] == answers
            assert (known.expr.evaluate(numbers) if isinstance(known, SymInt) else known) == _value(extra, plain)
