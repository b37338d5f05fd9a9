"""Grids whose second or third dimension may be too long: a device takes 65535 programs there, but any number along the
first. All programs are numbered along that one then, in the order in which they run.

    k[(tiles, heads)]                 k[(tiles * heads,)]
    start = tl.program_id(0) * 64     start = (tl.program_id(0) % n_programs0) * 64
    head = tl.program_id(1)           head = (tl.program_id(0) // n_programs0)
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lamina_fx.symbolic import Expr

from ..program import TritonKernel, TritonLaunch
from ..tiles import constant

__all__ = ["MOST", "with_flat_grid"]

MOST = 65535
"""Programs along the second and the third dimension of a grid."""


def with_flat_grid(launch: TritonLaunch) -> TritonLaunch:
    """The same work in a grid of any size."""
    if not any(map(_may_be_long, launch.grid[1:])):
        return launch
    lengths = {f"n_programs{d}": size for d, size in enumerate(launch.grid[:-1])}
    texts = [name if constant(size) is None else str(constant(size)) for name, size in lengths.items()]
    source, behind, programs = launch.kernel.source, "tl.program_id(@)", launch.grid[0]
    for d, size in enumerate(launch.grid):
        last = d == len(launch.grid) - 1
        source = source.replace(f"tl.program_id({d})", f"({behind})" if last else f"({behind} % {texts[d]})")
        if not last:
            source = source.replace(f"tl.num_programs({d})", texts[d])
            behind = f"{behind} // {texts[d]}"
        programs = programs * size if d else size
    source = source.replace("tl.program_id(@)", "tl.program_id(0)")
    asked = {name: size for name, size in lengths.items() if constant(size) is None}
    kernel = _with_sizes(replace(launch.kernel, source=source), list(asked))
    return replace(launch, kernel=kernel, sizes=(*launch.sizes, *asked.values()), grid=(programs,))


def _with_sizes(kernel: TritonKernel, names: list[str]) -> TritonKernel:
    """With these parameters behind its own, but in front of the error word."""
    integer = "i64" if any(kind == "i64" for _, kind in kernel.parameters) else "i32"
    end = len(kernel.parameters) - kernel.checks
    parameters = (*kernel.parameters[:end], *[(name, integer) for name in names], *kernel.parameters[end:])
    more = "".join([f", {name}" for name in names])
    source = re.sub(r"((?:, error)?(?:, \w+: tl\.constexpr)*\):\n)", rf"{more}\1", kernel.source, count=1)
    return replace(kernel, source=source, parameters=parameters)


def _may_be_long(programs: Any) -> bool:
    most = constant(programs.range()[1]) if isinstance(programs, Expr) else programs
    return most is None or most > MOST
