"""Which functions look at the local variables of frames: ``eval``, ``locals``, ``sys._getframe`` and the like.

Captured code keeps its values in variables of its own and drops those that nothing names any more, so such a function
would see something else than it does in Python. What is asked here is a code object and the names it can see, never a
value of the program:

    reads_own_frame(code of `lambda: eval("y + 1")`, globals, builtins)  ->  "eval"
    reads_own_frame(code of `lambda m: m.eval()`, globals, builtins)     ->  None
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

__all__ = ["reads_callers_variables", "reads_own_frame"]

_ALWAYS = {id(f): f.__name__ for f in (eval, exec, locals)}
_WITHOUT_ARGUMENTS = {id(f): f.__name__ for f in (vars, dir)}
_FRAMES = {
    id(f): f.__name__
    for f in (sys._getframe, inspect.currentframe, inspect.stack, inspect.getouterframes, inspect.getinnerframes)
}
_OWN_NAMES = ("_getframe", "currentframe")
"""Names of frame functions that nothing else has: their owner need not be known."""
_MODULES: dict[str | None, dict[int, str]] = {"builtins": {**_ALWAYS, **_WITHOUT_ARGUMENTS}, "inspect": _FRAMES}
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_BETWEEN = ("CACHE", "NOP", "PRECALL", "PUSH_NULL")


def reads_own_frame(code: CodeType, globals: Mapping[str, Any], builtins: Mapping[str, Any]) -> str | None:
    """What the code calls that looks at the frame it is called in, by name; None when nothing does."""
    for name in code.co_names:
        value = id(globals.get(name, builtins.get(name)))
        if value in _FRAMES or name in _OWN_NAMES:
            return _FRAMES.get(value, name)
        if value in _ALWAYS and any(True for _ in _loads(code, name)):  # `model.eval` has the name, too
            return _ALWAYS[value]
        if value in _WITHOUT_ARGUMENTS and any(call is True for call in _loads(code, name)):
            return _WITHOUT_ARGUMENTS[value]
    return _by_module(code)


def reads_callers_variables(code: CodeType, globals: Mapping[str, Any], builtins: Mapping[str, Any]) -> str | None:
    """What the code calls to look at the variables of functions that call it; None when nothing does."""
    word = reads_own_frame(code, globals, builtins)
    return word if word in _FRAMES.values() and "f_locals" in code.co_names else None


def _by_module(code: CodeType) -> str | None:
    """``builtins.eval(...)`` and ``inspect.stack()``: an attribute of a module that the code names."""
    if not any(module in code.co_names for module in _MODULES):
        return None
    owner: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in _ATTRIBUTE and instruction.argval in _MODULES.get(owner, {}).values():
            return instruction.argval
        if instruction.opname not in _BETWEEN:
            owner = instruction.argval if isinstance(instruction.argval, str) else None
    return None


def _loads(code: CodeType, name: str) -> Iterator[bool]:
    """For each load of a global: whether the next thing that happens is its call without arguments."""
    loaded = False
    for instruction in dis.get_instructions(code):
        if loaded and instruction.opname not in _BETWEEN:
            yield instruction.opname == "CALL" and instruction.arg == 0
            loaded = False
        if instruction.opname in _GLOBAL and instruction.argval == name:
            loaded = True
