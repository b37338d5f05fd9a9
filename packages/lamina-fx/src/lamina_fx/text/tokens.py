"""Cuts the text form into tokens."""

from __future__ import annotations

import json
import re

__all__ = ["NAME", "NUMBER", "PUNCTUATION", "STRING", "WORD", "ParseError", "Tokens"]

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_TOKEN = re.compile(
    r"(?:\s+|#[^\n]*)*(?:(%\w+)|([A-Za-z_]\w*(?:\.\w+)*)|(-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf\b|nan\b))|"
    r'("(?:[^"\\]|\\.)*")|(\.\.\.|[-(){}\[\],:=!@?]))'
)
NAME, WORD, NUMBER, STRING, PUNCTUATION = 1, 2, 3, 4, 5
"""Kinds of token: ``%x``, ``add.alpha``, ``-1.5``, ``"text"``, ``(``."""


class ParseError(ValueError):
    """The text is no graph; the message has line, column and the text there."""


class Tokens:
    """A text and a position in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.start = 0

    def next(self) -> tuple[int, str]:
        """The next token as (kind, text); (0, "") at the end."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            space = _SPACE.match(self.text, self.position)
            self.start = space.end() if space else self.position
            if self.start < len(self.text):
                raise self.error("cannot read")
            return 0, ""
        kind = match.lastindex or 0
        self.start = match.start(kind)
        self.position = match.end()
        return kind, match[kind]

    def peek(self) -> str:
        """The text of the next token, which stays next."""
        saved = self.position
        _, text = self.next()
        self.position = saved
        return text

    def take(self, token: str) -> bool:
        """Skip ``token`` if it comes next."""
        saved = self.position
        if self.next()[1] == token:
            return True
        self.position = saved
        return False

    def expect(self, token: str) -> None:
        """Skip ``token``; it is an error when another comes."""
        if self.next()[1] != token:
            raise self.error(f"expected {token!r}")

    def error(self, message: str) -> ParseError:
        """An error that names the place of the last token."""
        line = self.text.count("\n", 0, self.start) + 1
        column = self.start - self.text.rfind("\n", 0, self.start)
        rest = self.text[self.start : self.start + 30].partition("\n")[0]
        return ParseError(f"line {line}, column {column}: {message} at {rest!r}")

    def word(self) -> str:
        """The next token, a dotted name or a string."""
        kind, text = self.next()
        if kind == WORD:
            return text
        if kind == STRING:
            return json.loads(text)
        raise self.error("expected a name")

    def integer(self) -> int:
        """The next token, an integer."""
        kind, text = self.next()
        if kind != NUMBER or not text.lstrip("-").isdigit():
            raise self.error("expected an integer")
        return int(text)

    def until(self, close: str) -> str:
        """The text up to the ``close`` that matches, which is skipped."""
        depth = 0
        for index in range(self.position, len(self.text)):
            char = self.text[index]
            if char == close and depth == 0:
                found = self.text[self.position : index].strip()
                self.position = index + 1
                return found
            depth += (char in "([") - (char in ")]")
        self.start = self.position
        raise self.error(f"no {close!r} follows")
