"""Names of kernel IR in C++: kept, unless they are words of the language or of the generated code."""

from __future__ import annotations

from lamina_fx.symbolic import Symbol

__all__ = ["c_name", "symbol_name"]

_RESERVED = frozenset((
    "alignas", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "class", "compl",
    "const", "continue", "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern",
    "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "not",
    "operator", "or", "private", "protected", "public", "register", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typename", "union", "unsigned",
    "using", "virtual", "void", "volatile", "while", "xor", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64",
    "f16", "bf16", "f32", "f64", "c64", "c128", "begin", "end", "context", "call", "linux", "unix",
))  # fmt: skip


def c_name(name: str) -> str:
    """``name`` as an identifier that hides nothing."""
    return f"{name}_" if name in _RESERVED or name.startswith(("lm_", "lamina_")) else name


def symbol_name(symbol: Symbol) -> str:
    """How a size or loop symbol is spelt in C++."""
    return c_name(symbol.name)
