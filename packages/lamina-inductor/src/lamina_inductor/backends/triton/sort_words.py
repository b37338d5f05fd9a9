"""Words that are sorted in place of elements: lines and expressions of a kernel.

Elements become whole numbers that have their order: a float's bits, the lower ones turned in negative numbers, both
zeros 0 and every NaN the greatest. With its place behind it such a key is a *word*, of which no two in a row are equal,
so that any way to sort them is stable. A word is an int32 for keys of at most 16 bits and an int64 for those of 32; its
last bit says that a zero was negative, so that the element can be made of the word again, and nothing else is moved.
Descending rows have the complements of their keys.
"""

from __future__ import annotations

from lamina_fx import DType

__all__ = ["element_text", "key_bits", "key_lines", "place_text", "word_text"]

_INFINITY = {"float16": 0x7C00, "float64": 0x7FF0000000000000}
"""Bits of the number behind which only NaN come."""


def key_bits(dtype: DType) -> int:
    """Bits of an element's key: 16, 32 or 64."""
    return 16 if dtype.itemsize <= 2 else dtype.itemsize * 8


def key_lines(name: str, value: str, dtype: DType, descending: bool) -> list[str]:
    """Lines that define ``{name}_bits`` and ``{name}_key`` for the tile ``value``."""
    key, bits = f"{name}_bits", _bits(value, dtype)
    if dtype.name in ("float32", "bfloat16"):
        number = f"{value}.to(tl.float32)" if dtype.itemsize == 2 else value
        key, bits = f"lm_number_key({number})", f"{number}.to(tl.int32, bitcast=True)"
        key += " >> 16" if dtype.itemsize == 2 else ""
    elif dtype.kind == "float":
        key = f"lm_float_key({name}_bits, {_most(dtype)}, {_INFINITY[dtype.name]})"
    if descending:
        key = f"({key}) ^ -1"
    return [f"{name}_bits = {bits}", f"{name}_key = {key}"]


def place_text(name: str, place: str, dtype: DType) -> str:
    """The int32 behind the key: the place, and in its last bit whether a zero is negative."""
    text = f"({place}) * 2"
    zero = -(1 << 31) if dtype.name == "bfloat16" else -_most(dtype) - 1
    return text if dtype.kind != "float" else f"{text} + ({name}_bits == {zero}).to(tl.int32)"


def word_text(key: str, place: str, narrow: bool) -> str:
    """Key and place as one number, of 32 bits for a ``narrow`` one."""
    return f"({key} << 16) | ({place})" if narrow else f"({key}.to(tl.int64) << 32) | ({place}).to(tl.int64)"


def element_text(word: str, at: str, dtype: DType, descending: bool, shift: int) -> str:
    """The element of a word whose key begins at bit ``shift``; ``at``: what has its last bit."""
    key = f"({word} >> {shift}).to(tl.int32)" if shift else word
    key = f"({key} ^ -1)" if descending else key
    if dtype.kind == "float":
        text = f"lm_key_bits({key}, {at}, {_most(dtype)})"
        return f"{text}{'.to(tl.int16)' if dtype.itemsize == 2 else ''}.to(tl.{dtype.name}, bitcast=True)"
    if dtype.kind == "bool":
        return f"{key} != 0"
    if dtype.name == "uint32":
        return f"({key} ^ {-(1 << 31)}).to(tl.uint32, bitcast=True)"
    if dtype.name == "uint64":
        return f"({key} ^ {-(1 << 63)}).to(tl.uint64, bitcast=True)"
    if dtype.itemsize == 8:
        return key
    return f"({key}{' + 32768' if dtype.name == 'uint16' else ''}).to(tl.{dtype.name})"


def _most(dtype: DType) -> int:
    return (1 << (dtype.itemsize * 8 - 1)) - 1


def _bits(value: str, dtype: DType) -> str:
    """The element as a signed number: of 64 bits, or an int32."""
    if dtype.kind == "float":
        text = f"{value}.to(tl.int{dtype.itemsize * 8}, bitcast=True)"
        return f"{text}.to(tl.int32)" if dtype.itemsize == 2 else text
    if dtype.name == "uint32":
        return f"{value}.to(tl.int32, bitcast=True) ^ {-(1 << 31)}"
    if dtype.name == "uint64":
        return f"{value}.to(tl.int64, bitcast=True) ^ {-(1 << 63)}"
    if dtype.itemsize == 8:
        return value
    return f"{value}.to(tl.int32){' - 32768' if dtype.name == 'uint16' else ''}"
