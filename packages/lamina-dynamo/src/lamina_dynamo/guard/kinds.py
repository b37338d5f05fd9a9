"""The kinds of guards, in the order of their cost."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["GuardKind"]


class GuardKind(IntEnum):
    """What a guard compares.

    The number is the order of evaluation: cheap first; the C++ program uses the same numbers.
    """

    ID = 0
    TYPE = 1
    NONE = 2
    CODE = 3
    CELL = 4
    LENGTH = 5
    EQUALS = 6
    TENSOR = 7
    DICT_HAS = 8
    DICT_KEYS = 9
    NAME_ABSENT = 10
    ATTR = 11
    AMBIENT = 12
    ARRAY = 13
    SAME = 14
    DISTINCT = 15
    NO_OVERLAP = 16
    OVERLAP = 17
    SHAPE = 18
    PYTHON = 19
