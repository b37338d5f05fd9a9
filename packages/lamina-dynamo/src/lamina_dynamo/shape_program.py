"""Conditions over sizes as postfix words for csrc/shapes.cpp.

>>> shape_words("s0 // 2 <= s1", ("s0", "s1"))
[(0, 0), (1, 2), (5, 0), (0, 1), (14, 0)]
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

__all__ = ["shape_words"]

_WORDS = {
    name: number
    for number, name in enumerate((
        "input", "number", "add", "sub", "mul", "floordiv", "mod", "pow", "neg", "min", "max", "eq", "ne", "lt",
        "le", "gt", "ge", "and", "or", "not",
    ))
}  # fmt: skip
_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow"}
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_FUNCTIONS = {"min": "min", "max": "max", "Min": "min", "Max": "max"}


def shape_words(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Compile an expression to (word, operand) pairs; `names` are its inputs in order.

    Raises:
        ValueError: the text has something that sizes do not need, or an integer beyond 64 bits.
    """
    words: list[tuple[int, int]] = []
    _write(ast.parse(text.strip(), mode="eval").body, {name: k for k, name in enumerate(names)}, words, text)
    return words


def _write(node: ast.expr, names: dict[str, int], words: list[tuple[int, int]], text: str) -> None:
    def put(word: str, operand: int = 0) -> None:
        words.append((_WORDS[word], operand))

    def sub(child: ast.expr) -> None:
        _write(child, names, words, text)

    match node:
        case ast.Name(id=name) if name in names:
            put("input", names[name])
        case ast.Constant(value=value) if isinstance(value, int) and abs(value) < 2**63:
            put("number", int(value))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            sub(left)
            sub(right)
            put(_BINARY[type(op)])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            sub(operand)
            put("neg")
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            sub(operand)
            put("not")
        case ast.BoolOp(op=op, values=values):
            _fold(values, "and" if isinstance(op, ast.And) else "or", sub, put)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS and arguments:
            _fold(arguments, _FUNCTIONS[name], sub, put)
        case ast.Compare(left=left, ops=ops, comparators=right) if all(type(op) in _COMPARE for op in ops):
            for k, (op, a, b) in enumerate(zip(ops, [left, *right], right, strict=False)):
                sub(a)
                sub(b)
                put(_COMPARE[type(op)])
                if k:
                    put("and")
        case _:
            raise ValueError(f"{ast.unparse(node)!r} in {text!r} is no condition over sizes")


def _fold(values: Sequence[ast.expr], word: str, sub, put) -> None:  # type: ignore[no-untyped-def]
    sub(values[0])
    for value in values[1:]:
        sub(value)
        put(word)
