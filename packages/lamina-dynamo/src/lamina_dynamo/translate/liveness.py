"""Which locals may still be read: the others need not be rebuilt at a break."""

from __future__ import annotations

from types import CodeType
from typing import Any

from .instructions import decode

__all__ = ["live_locals"]

_CACHE: dict[int, tuple[CodeType, list[frozenset[str]]]] = {}
_ENDS = frozenset(
    (
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
    )
)


def live_locals(code: CodeType, index: int) -> frozenset[str]:
    """Locals that the instruction at ``index`` or one after it may read."""
    found = _CACHE.get(id(code))
    if found is None or found[0] is not code:
        if len(_CACHE) > 1000:
            _CACHE.clear()
        found = _CACHE[id(code)] = (code, _analyse(code))
    return found[1][index]


def _analyse(code: CodeType) -> list[frozenset[str]]:
    decoded = decode(code)
    instructions = decoded.instructions
    count = len(instructions)
    uses, kills = [], []
    for ins in instructions:
        use, kill = _effects(ins)
        uses.append(use)
        kills.append(kill)
    successors = []
    for index, ins in enumerate(instructions):
        following = [] if ins.name in _ENDS or index + 1 >= count else [index + 1]
        if ins.target >= 0:
            following.append(ins.target)
        entry = decoded.handler_of(index)
        if entry is not None:
            following.append(entry.target)
        successors.append(following)
    live: list[frozenset[str]] = [frozenset()] * count
    changed = True
    while changed:
        changed = False
        for index in range(count - 1, -1, -1):
            after: frozenset[str] = frozenset().union(*[live[s] for s in successors[index]])
            now = uses[index] | (after - kills[index])
            if now != live[index]:
                live[index] = now
                changed = True
    return live


def _effects(ins: Any) -> tuple[frozenset[str], frozenset[str]]:
    name, value = ins.name, ins.value
    none: frozenset[str] = frozenset()
    if "_FAST" not in name:
        return none, none
    if isinstance(value, tuple):
        first, second = value
        if name == "STORE_FAST_STORE_FAST":
            return none, frozenset(value)
        if name == "STORE_FAST_LOAD_FAST":
            return frozenset((second,)) - {first}, frozenset((first,))
        return frozenset(value), none
    names = frozenset((value,))
    if name in ("STORE_FAST", "STORE_FAST_MAYBE_NULL"):
        return none, names
    if name == "LOAD_FAST_AND_CLEAR":
        return names, names
    return names, none
