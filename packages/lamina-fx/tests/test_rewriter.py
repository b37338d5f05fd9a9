"""Patterns: what matches, what does not, and that the rewritten graph computes the same."""

from __future__ import annotations

import pytest
from sample_operators import resolver

import lamina_fx as fx
from lamina_fx.rewriter import find_matches


def graph(body):
    return fx.parse("graph { %x = placeholder  %y = placeholder  " + body + " }")


def targets(g):
    return [n.target for n in g.nodes if n.op == "call_function"]


CASES = [
    # body, pattern, replacement, options, number of matches, targets afterwards
    ("%a = mul(%x, 2)  %b = add(%a, %y)  return %b", lambda p, q, r: p * q + r, lambda p, q, r: r - p, {}, 1, ["sub"]),
    ("%a = mul(%x, 2)  %b = add(%y, %a)  return %b", lambda p, q, r: p * q + r, lambda p, q, r: r, {}, 0, None),
    (
        "%a = mul(%x, 2)  %b = add(%y, %a)  return %b",
        lambda p, q, r: p * q + r, lambda p, q, r: r - p, {"commutative": frozenset({"add"})}, 1, ["sub"],
    ),
    ("%a = neg(%x)  %b = neg(%a)  return (%b, %a)", lambda p: -(0 + -p), lambda p: p, {}, 0, ["neg", "neg"]),
    # an inner node that is used outside
    ("%a = neg(%x)  %b = abs(%a)  return (%b, %a)", lambda p: abs(-p), lambda p: abs(p), {}, 0, ["neg", "abs"]),
    ("%a = neg(%x)  %b = abs(%a)  return %b", lambda p: abs(-p), lambda p: abs(p), {}, 1, ["abs"]),
    # the same wildcard twice
    ("%a = add(%x, %x)  return %a", lambda p: p + p, lambda p: p * 2, {}, 1, ["mul"]),
    ("%a = add(%x, %y)  return %a", lambda p: p + p, lambda p: p * 2, {}, 0, ["add"]),
    # constants must be equal; 1 and 1.0 may stand for each other
    ("%a = add(%x, 1.0)  return %a", lambda p: p + 1, lambda p: -p, {}, 1, ["neg"]),
    ("%a = add(%x, 2)  return %a", lambda p: p + 1, lambda p: -p, {}, 0, ["add"]),
    # conditions
    ("%a = add(%x, 2)  return %a", lambda p, k: p + k, lambda p, k: p, {"where": {"k": lambda v: v == 2}}, 1, []),
    ("%a = add(%x, 3)  return %a", lambda p, k: p + k, lambda p, k: p, {"where": {"k": lambda v: v == 2}}, 0, ["add"]),
    (
        "%a = add(%x, 3)  return %a", lambda p, k: p + k, lambda p, k: p,
        {"constraint": lambda match: match["k"] == 2}, 0, ["add"],
    ),
    # overlapping chains: from the last to the first
    (
        "%a = neg(%x) %b = neg(%a) %c = neg(%b) %d = neg(%c) %e = neg(%d) return %e",
        lambda p: -(-p), lambda p: p, {}, 2, ["neg"],  # noqa: B002
    ),
    # several results
    (
        "%a = neg(%x)  %b = abs(%x)  %c = add(%a, %b)  return %c",
        lambda p: (-p, abs(p)), lambda p: (p * 2, p * 3), {}, 1, ["mul", "mul", "add"],
    ),
    (  # a user of the first result stands before the second can be computed
        "%a = neg(%x)  %u = mul(%a, %y)  %b = abs(%u)  %c = add(%a, %b)  return %c",
        lambda p, q: (-p, abs(q)), lambda p, q: (p, q), {}, 0, ["neg", "mul", "abs", "add"],
    ),
    # a result becomes an input or a constant
    ("%a = sub(%x, %x)  return (%a, [%a])", lambda p: p - p, lambda p: 0, {}, 1, []),
    # keywords
    ("%a = sum(%x, dim=1)  return %a", fx.parse("graph { %p = placeholder %s = sum(%p, dim=1) return %s }"),
     fx.parse("graph { %p = placeholder %s = mean(%p, dim=1) return %s }"), {}, 1, ["mean"]),
    ("%a = sum(%x, dim=2)  return %a", fx.parse("graph { %p = placeholder %s = sum(%p, dim=1) return %s }"),
     fx.parse("graph { %p = placeholder %s = mean(%p, dim=1) return %s }"), {}, 0, ["sum"]),
    # alternatives
    ("%a = sub(%x, %y)  %b = mul(%a, %a)  return %b",
     fx.parse('graph { %p = placeholder %q = placeholder %s = "add|sub"(%p, %q) return %s }'),
     fx.parse("graph { %p = placeholder %q = placeholder %s = pow(%q, %p) return %s }"), {}, 1, ["pow", "mul"]),
    ("%a = sub(%x, %y)  %b = neg(%a)  return %b",
     fx.parse('graph { %p = placeholder %s = "*"(%p) return %s }'),
     fx.parse("graph { %p = placeholder %s = id(%p) return %s }"), {}, 1, ["sub", "id"]),
    # nested arguments
    ("%a = cat([%x, %y], 1)  return %a",
     fx.parse("graph { %p = placeholder %q = placeholder %s = cat([%p, %q], 1) return %s }"),
     fx.parse("graph { %p = placeholder %q = placeholder %s = cat([%q, %p], 1) return %s }"), {}, 1, ["cat"]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_replacing(case):
    body, pattern, replacement, options, count, after = case
    g = graph(body)
    matches = fx.replace_pattern(g, pattern, replacement, **options)
    assert len(matches) == count
    assert targets(g) == (targets(graph(body)) if after is None else after)
    g.lint()
    assert all(len(m.replacements) == len(m.outputs) for m in matches)


def test_specs_sources_and_regions():
    g = fx.parse(
        """graph {
          %x: float32[2] = placeholder
          %a: float32[2] = neg(%x)
          %b: float32[2] = exp(%a) in {no_grad} at "m.py":3 f
          return %b }"""
    )
    fx.replace_pattern(g, lambda p: TRACE_EXP(-p), lambda p: 1 / (p + p), resolver=resolver)
    new = [n for n in g.nodes if n.op == "call_function"]
    assert [str(n.spec) for n in new] == ["float32[2]"] * 2
    assert {n.regions for n in new} == {("no_grad",)}
    assert {n.meta["source"] for n in new} == {("m.py", 3, "f")}
    g.lint(resolver)


def TRACE_EXP(p):
    return p.builder.call_id("exp", (p,))


def test_matches():
    g = graph("%a = mul(%x, 2)  %b = add(%a, 7)  %c = mul(%b, 2)  return %c")
    matches = find_matches(g, lambda p: p * 2)
    assert [m.outputs[0].name for m in matches] == ["c", "a"]
    assert matches[1]["p"].name == "x"
    assert matches[0].inputs == matches[0].outputs[0].args[:1]
    assert [n.name for n in matches[0].nodes] == ["c"]


def test_errors():
    g = graph("return %x")
    with pytest.raises(ValueError, match="the pattern has 1 inputs, the replacement 2"):
        fx.replace_pattern(g, lambda p: -p, lambda p, q: p)
    with pytest.raises(ValueError, match="the pattern has 1 results, the replacement 2"):
        fx.replace_pattern(g, lambda p: -p, lambda p: (p, p))
    with pytest.raises(ValueError, match="each result of a pattern must be computed by it"):
        fx.replace_pattern(g, lambda p: p, lambda p: p)
