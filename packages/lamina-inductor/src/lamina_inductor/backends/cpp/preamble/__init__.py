"""The C++ text in front of every unit: only the sections that the unit mentions.

Sections live in the ``.h`` files of this folder and start with ``///@ name``. A section is included when the unit, or a
section that is included, mentions something the section defines. Parsing the text costs the compiler about 2 ms.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files

__all__ = ["preamble"]

_FILES = ("scalar.h", "math.h", "special.h", "complex.h", "host.h", "steps.h")
_WORD = re.compile(r"\b(?:lm_\w+|LM_\w+|f16|bf16|f8e4m3|f8e5m2|c64|c128|lamina_\w+)\b")
_DEFINES = re.compile(
    r"^(?:template\s*<[^>]*>\s*)?(?:LM_INLINE|LM_SPECIAL|LM_NOINLINE|typedef|struct|#define)\b[^\n;{]*", re.MULTILINE
)
_ALWAYS = ("types",)


@dataclass(frozen=True)
class _Section:
    name: str
    text: str
    defines: frozenset[str]
    mentions: frozenset[str]


@functools.cache
def _sections() -> tuple[_Section, ...]:
    found: list[_Section] = []
    for file in _FILES:
        text = files(__package__).joinpath(file).read_text()
        for part in text.split("///@ ")[1:]:
            name, _, body = part.partition("\n")
            found.append(_section(name.strip(), body.strip() + "\n"))
    return tuple(found)


def _section(name: str, body: str) -> _Section:
    words = frozenset(_WORD.findall(body))
    defined: set[str] = set()
    for head in _DEFINES.findall(body):
        signature = head.partition("(")[0] if not head.startswith("typedef") else head
        names = [n for n in _WORD.findall(signature) if n != "lm_name"]
        defined.update(names[-1:])
    defined.update(re.findall(r"^(?:typedef struct \{.*)?\} (\w+);", body, re.MULTILINE))
    defined.update(f"lm_{n}" for n in re.findall(r"LM_(?:UNARY|BINARY)\(\w+, (\w+)\)", body))
    return _Section(name, body, frozenset(defined), words)


@functools.cache
def _owner() -> dict[str, int]:
    table: dict[str, int] = {}
    for number, section in enumerate(_sections()):
        for word in section.defines:
            table.setdefault(word, number)
    return table


def preamble(unit: str, *, libmvec: bool) -> str:
    """The text that ``unit`` needs in front of it; ``libmvec``: glibc's vector math may be called."""
    sections, owner = _sections(), _owner()
    pending = set(_WORD.findall(unit))
    wanted = {i for i, s in enumerate(sections) if s.name in _ALWAYS}
    while pending:
        number = owner.get(pending.pop())
        if number is not None and number not in wanted:
            wanted.add(number)
            pending |= sections[number].mentions
    head = "#define LM_LIBMVEC 1\n" if libmvec else ""
    return head + "".join(sections[i].text for i in sorted(wanted))
