"""Canonical floor division and remainder.

With an integer divisor ``k`` the numerator is split into ``k * quotient + rest``: coefficients of the rest are
smaller than ``k``, its constant is in ``[0, k)``. When the range of the rest shows one quotient only, nothing is
left to divide.
"""

# pyright: reportPrivateUsage=false
# (what is remembered of an expression)

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from .divisibility import exact_quotient, known_divisor, monomial_quotient
from .expr import Expr, ExprLike, Integer, Symbol
from .operations import FloorDiv, Mod, Product
from .simplify import Terms, add, from_terms, linear, multiply, scale, subtract, sum_of

__all__ = ["floor_div", "mod"]

_CACHE_LIMIT = 200_000
_quotients: dict[tuple[Expr, ExprLike], Expr] = {}
_remainders: dict[tuple[Expr, ExprLike], Expr] = {}


def floor_div(a: Expr, b: Expr) -> Expr:
    """a // b.

    Raises:
        ZeroDivisionError: b is the constant 0.
    """
    ident = (a, b.value if type(b) is Integer else b)
    result = _quotients.get(ident)
    if result is None:
        result = _by_integer(a, b.value) if type(b) is Integer else _by_expression(a, b)
        if len(_quotients) > _CACHE_LIMIT:
            _quotients.clear()
        _quotients[ident] = result
    return result


def mod(a: Expr, b: Expr) -> Expr:
    """a % b.

    Raises:
        ZeroDivisionError: b is the constant 0.
    """
    ident = (a, b.value if type(b) is Integer else b)
    result = _remainders.get(ident)
    if result is None:
        result = _modulo_integer(a, b.value) if type(b) is Integer else _modulo_expression(a, b)
        if len(_remainders) > _CACHE_LIMIT:
            _remainders.clear()
        _remainders[ident] = result
    return result


# -- by an integer ---------------------------------------------------------------------------------------


def _split(a: Expr, k: int) -> tuple[dict[Expr, int], int, int, Terms]:
    """(quotient, outside, constant, terms): a = k * (quotient + outside) + constant + terms and 0 <= constant < k."""
    constant, terms = linear(a)
    quotient: dict[Expr, int] = {}
    rest: list[tuple[Expr, int]] = []
    for term, c in terms:
        whole, left = divmod(c, k)
        if left:
            if term._divisor != 1 and c * known_divisor(term) % k == 0:  # the term is a multiple of k, c is not
                common = gcd(c, k)
                whole, left = c // common, 0
                term = FloorDiv.make(term, Integer(k // common))
            elif whole < 0:  # -1 * term stays whole: its range may show that nothing is left to divide
                whole, left = whole + 1, left - k
        if whole:
            total = quotient.pop(term, 0) + whole
            if total:
                quotient[term] = total
        if left:
            rest.append((term, left))
    outside = constant // k
    return quotient, outside, constant - outside * k, tuple(rest)


def _by_integer(a: Expr, k: int) -> Expr:
    if k == 0:
        raise ZeroDivisionError(f"{a} // 0")
    if k < 0:
        return floor_div(scale(a, -1), Integer(-k))
    if k == 1:
        return a
    if type(a) is Integer:
        return Integer(a.value // k)
    parts, outside, constant, terms = _split(a, k)
    quotient = sum_of(outside, parts) if parts else Integer(outside)
    return add(quotient, _rest_quotient(constant, terms, k)) if terms else quotient


def _rest_quotient(constant: int, terms: Terms, k: int) -> Expr:
    rest = from_terms(constant, terms)
    single = _single_quotient(rest, k)
    if single is not None:
        return Integer(single)
    for g, inner, _ in _groups(constant, terms, k):
        return floor_div(inner, Integer(k // g))
    if len(terms) == 1 and terms[0][1] == 1:
        term = terms[0][0]
        m = term.args[1] if isinstance(term, (FloorDiv, Mod)) else None
        if isinstance(m, Integer):
            x = term.children()[0]
            if isinstance(term, FloorDiv):  # (x // m + c) // k
                return floor_div(add(x, Integer(constant * m.value)), Integer(k * m.value))
            if constant == 0 and m.value % k == 0:  # (x % (k*n)) // k
                return mod(floor_div(x, Integer(k)), Integer(m.value // k))
    return FloorDiv.make(rest, Integer(k))


def _single_quotient(rest: Expr, k: int) -> int | None:
    low, high = rest.range()
    if low is not None and high is not None and low // k == high // k:
        return low // k
    return None


def _groups(constant: int, terms: Terms, k: int) -> Iterator[tuple[int, Expr, Expr]]:
    """Ways to write constant + terms as g * inner + small with g dividing k and 0 <= small < g; largest g first."""
    if all(gcd(c, k) == 1 for _, c in terms):
        return
    factors = {gcd(c, k) for _, c in terms}
    factors.discard(1)
    for g in sorted(factors, reverse=True):
        multiples = tuple([(t, c // g) for t, c in terms if c % g == 0])
        others = tuple([(t, c) for t, c in terms if c % g])
        if not multiples:
            continue
        small = from_terms(constant, others)
        whole = _single_quotient(small, g)
        if whole is not None:
            yield g, from_terms(whole, multiples), subtract(small, Integer(whole * g))


def _modulo_integer(a: Expr, k: int) -> Expr:
    if k == 0:
        raise ZeroDivisionError(f"{a} % 0")
    if k < 0:
        return scale(mod(scale(a, -1), Integer(-k)), -1)
    if k == 1:
        return Integer(0)
    if type(a) is Integer:
        return Integer(a.value % k)
    _, _, constant, terms = _split(a, k)
    if not terms:
        return Integer(constant)
    rest = from_terms(constant, terms)
    single = _single_quotient(rest, k)
    if single is not None:
        return subtract(rest, Integer(single * k))
    for term, c in terms:
        if isinstance(term, Mod) and isinstance(term.args[1], Integer) and c * term.args[1].value % k == 0:
            return mod(add(rest, scale(subtract(term.args[0], term), c)), Integer(k))
    for g, inner, small in _groups(constant, terms, k):
        return add(scale(mod(inner, Integer(k // g)), g), small)
    return Mod.make(rest, Integer(k))


# -- by an expression ------------------------------------------------------------------------------------


def _divide(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """(quotient, rest) with a = quotient * b + rest, as polynomials."""
    if a is b:
        return Integer(1), Integer(0)
    constant, terms = linear(b)
    if constant or len(terms) > 1:
        exact = exact_quotient(a, b)
        return (Integer(0), a) if exact is None else (exact, Integer(0))
    [(divisor, divisor_c)] = list(terms)
    quotient: Expr = Integer(0)
    for term, c in linear(a)[1]:
        part = monomial_quotient(term, divisor)
        if part is not None and c % divisor_c == 0:
            quotient = add(quotient, scale(part, c // divisor_c))
    return quotient, subtract(a, multiply(quotient, b))


def _by_expression(a: Expr, b: Expr) -> Expr:
    if _leading_negative(b):
        return floor_div(scale(a, -1), scale(b, -1))
    quotient, rest = _divide(a, b)
    if _in_one_step(rest, b):
        return quotient
    if _is_one_below(rest, b):
        return subtract(quotient, Integer(1))
    common = _common_factor(rest, b)
    if common is not None:
        return add(quotient, floor_div(*common))
    return add(quotient, FloorDiv.make(rest, b))


def _modulo_expression(a: Expr, b: Expr) -> Expr:
    if _leading_negative(b):
        return scale(mod(scale(a, -1), scale(b, -1)), -1)
    _, rest = _divide(a, b)
    if _in_one_step(rest, b):
        return rest
    if _is_one_below(rest, b):
        return add(rest, b)
    return Mod.make(rest, b)


def _leading_negative(b: Expr) -> bool:
    terms = linear(b)[1]
    return terms[0][1] < 0


def _in_one_step(rest: Expr, b: Expr) -> bool:
    """Is 0 <= rest < b known?"""
    if isinstance(rest, Integer) and rest.value == 0:
        return True
    low, _ = rest.range()
    if low is None or low < 0:
        return False
    room, _ = subtract(b, upper_bound(rest)).range()
    return room is not None and room >= 1


def _is_one_below(rest: Expr, b: Expr) -> bool:
    """Is -b <= rest < 0 known? As in (n * s - 1) // s, which bounds i // s for i < n * s."""
    low, high = rest.range()
    if high is None or high >= 0:
        return False
    return (low == -1 and _is_positive(b)) or _in_one_step(add(rest, b), b)


def _is_positive(divisor: Expr) -> bool:
    """Nothing is divided by 0, so a size that may be 0 elsewhere (of an empty tensor) is positive as a divisor."""
    low, _ = divisor.range()
    return low is not None and low >= 0


def upper_bound(expr: Expr) -> Expr:
    """``expr`` with each symbol that has an expression as its upper bound replaced by that, where sound."""
    constant, terms = linear(expr)
    result: Expr = Integer(constant)
    for term, c in terms:
        bound = _term_bound(term) if c > 0 else None
        result = add(result, scale(term if bound is None else bound, c))
    return result


def _term_bound(term: Expr) -> Expr | None:
    if isinstance(term, Symbol) and isinstance(term.upper, Expr):
        return term.upper
    if isinstance(term, Product):
        bounds = [_term_bound(f) for f in term.args]
        if any(b is not None for b in bounds) and all(
            (f.range()[0] or -1) >= 0 or f.range()[0] == 0 for f in term.args
        ):
            return Product(*[f if b is None else b for f, b in zip(term.args, bounds, strict=True)])
    if isinstance(term, Mod) and (term.args[1].range()[0] or 0) >= 1:
        return subtract(term.args[1], Integer(1))
    if isinstance(term, FloorDiv) and _is_positive(term.args[1]):
        above = upper_bound(term.args[0])
        return None if above is term.args[0] else floor_div(above, term.args[1])
    return None


def _common_factor(a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
    """Numerator and denominator without what divides all of both, or None."""
    number = gcd(_content(a), _content(b))
    shared = _shared_factors(a, b)
    if number == 1 and not shared:
        return None
    return _without(a, number, shared), _without(b, number, shared)


def _content(expr: Expr) -> int:
    constant, terms = linear(expr)
    return gcd(constant, *[c for _, c in terms])


def _shared_factors(a: Expr, b: Expr) -> list[Expr]:
    constant_a, terms_a = linear(a)
    constant_b, terms_b = linear(b)
    if constant_a or constant_b:
        return []
    all_terms = [t for t, _ in (*terms_a, *terms_b)]
    shared: list[Expr] = []
    for factor in all_terms[0].args if isinstance(all_terms[0], Product) else (all_terms[0],):
        remaining = [_remove(t, [*shared, factor]) for t in all_terms]
        if all(r is not None for r in remaining):
            shared.append(factor)
    return shared


def _remove(term: Expr, factors: list[Expr]) -> Expr | None:
    for factor in factors:
        reduced = monomial_quotient(term, factor)
        if reduced is None:
            return None
        term = reduced
    return term


def _without(expr: Expr, number: int, factors: list[Expr]) -> Expr:
    constant, terms = linear(expr)
    result: Expr = Integer(constant // number)
    for term, c in terms:
        reduced = _remove(term, factors)
        assert reduced is not None
        result = add(result, scale(reduced, c // number))
    return result
