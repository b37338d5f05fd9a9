"""Texts of Gluon kernels whose groups of warps do different things: each is a function, told from the others by
``who`` where several run the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .kernel_text import ANONYMOUS, KernelText

__all__ = ["function_of", "specialise", "written"]


def written(text: KernelText, write: Callable[[], None]) -> list[str]:
    """The lines that ``write`` would add to the text."""
    before, text.lines = text.lines, []
    write()
    lines, text.lines, text.depth = text.lines, before, 0
    return lines


def function_of(text: KernelText, name: str, given: Sequence[str], lines: Sequence[str]) -> str:
    """The function ``name`` of a kernel; behind ``given`` it has the kernel's constants as parameters."""
    parameters = [f"{g}: gl.constexpr" if g == "who" else g for g in given]
    parameters += [f"{word}: gl.constexpr" for word in text.blocks]
    body = "\n".join([f"    {line}" for line in lines])
    return f"@gluon.jit\ndef {ANONYMOUS}_{name}({', '.join(parameters)}):\n{body}\n"


def specialise(
    text: KernelText, groups: Sequence[tuple[str, Sequence[str]]], loads: Sequence[str], registers: tuple[int, int]
) -> None:
    """Lines that start two groups of four warps, by name and arguments of their functions, and a warp that ``loads``.

    registers: of a thread in the second group, and in the warp that loads; the first group has what is left.
    """
    constants = list(text.blocks)
    parts = [*groups, ("loads", loads)]
    text.add(
        "gl.warp_specialize(",
        "    [",
        *[f"        ({ANONYMOUS}_{name}, ({', '.join([*given, *constants])}))," for name, given in parts],
        f"    ], [4, 1], [{registers[0]}, {registers[1]}],",
        ")",
    )
