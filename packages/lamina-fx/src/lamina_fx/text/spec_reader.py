"""Reads the specs of the text form."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# (arguments of nodes are nested data of any type: what isinstance finds in Any is partly unknown)

# pyright: reportPrivateUsage=false
# (the two halves of one parser)

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..device import CPU, Device
from ..dtype import DTYPES
from ..spec import ScalarSpec, Size, Spec, TensorSpec

if TYPE_CHECKING:
    from .parser import _Parser
    from .tokens import ParseError

__all__ = ["read_spec"]

_DTYPES = {d.name: d for d in DTYPES}
_KINDS = {"bool": bool, "int": int, "float": float, "complex": complex}
_SPEC_HEAD = re.compile(r"(\w+)")
_SPEC_DEVICE = re.compile(r" ((?:cpu|cuda|meta)(?::\d+)?)")


def read_spec(parser: _Parser, text: str) -> Spec:
    """The spec that ``text`` says; sizes are read with the parser's symbols.

    Raises:
        ParseError: it says none.
    """
    return _SpecReader(parser, text).read()


class _SpecReader:
    """Reads one spec; equal texts give one object."""

    def __init__(self, parser: _Parser, text: str) -> None:
        self.parser = parser
        self.text = text.strip()
        self.position = 0

    def read(self) -> Spec:
        spec = self.spec()
        if self.text[self.position :].strip():
            raise self.error()
        return spec

    def error(self) -> ParseError:
        return self.parser.error(f"bad spec {self.text!r} at {self.text[self.position :]!r}")

    def spec(self) -> Spec:
        text = self.text
        if text.startswith("?", self.position):
            self.position += 1
            return None
        if text.startswith("(", self.position):
            self.position += 1
            return self.several()
        match = _SPEC_HEAD.match(text, self.position)
        if match is None:
            raise self.error()
        word = match[1]
        self.position = match.end()
        if word in _DTYPES and text.startswith("[", self.position):
            return self.tensor(word)
        if word not in _KINDS:
            raise self.error()
        if not text.startswith("(", self.position):
            return ScalarSpec(_KINDS[word])
        inner = self.group("(", ")")
        saved = self.parser.text, self.parser.position
        self.parser.text, self.parser.position = inner, 0
        value = self.parser.value()
        self.parser.text, self.parser.position = saved
        return ScalarSpec(_KINDS[word], value)

    def several(self) -> Spec:
        found: list[Spec] = []
        while not self.text.startswith(")", self.position):
            found.append(self.spec())
            while self.text.startswith((",", " "), self.position):
                self.position += 1
            if self.position >= len(self.text):
                raise self.error()
        self.position += 1
        return tuple(found)

    def tensor(self, dtype: str) -> TensorSpec:
        shape = self.sizes(self.group("[", "]"))
        strides = None
        if self.text.startswith("@(", self.position):
            self.position += 1
            strides = self.sizes(self.group("(", ")"))
            if len(strides) != len(shape):
                raise self.error()
        device = CPU
        match = _SPEC_DEVICE.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
            device = Device(match[1])
        return TensorSpec(shape, _DTYPES[dtype], strides, device)

    def group(self, opening: str, close: str) -> str:
        depth = 0
        for index in range(self.position, len(self.text)):
            depth += (self.text[index] == opening) - (self.text[index] == close)
            if depth == 0:
                found = self.text[self.position + 1 : index]
                self.position = index + 1
                return found
        raise self.error()

    def sizes(self, text: str) -> tuple[Size, ...]:
        parts, depth, start = [], 0, 0
        for index, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 0:
                parts.append(text[start:index])
                start = index + 1
        if text[start:].strip():
            parts.append(text[start:])
        return tuple([self.parser.size(p.strip()) for p in parts])
