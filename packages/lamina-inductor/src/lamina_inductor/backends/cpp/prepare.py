"""What is done to a program between scheduling and printing: passes over its kernels, each once, whoever calls them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir.kernel import Kernel
from ...ir.program import KernelCall, Launch, Program
from ...schedule.index_matches import narrow_index_matches
from .arg_searches import split_arg_searches
from .peepholes import rewrite_small
from .random_blocks import block_random
from .split_sums import split_sums
from .streams import stream_results
from .transposes import find_transposes

__all__ = ["prepare_kernel", "prepare_program"]


def prepare_kernel(kernel: Kernel) -> Kernel:
    """The kernel as it is printed."""
    kernel = split_arg_searches(block_random(find_transposes(kernel)))
    return split_sums(rewrite_small(narrow_index_matches(kernel)))


def prepare_program(program: Program) -> Program:
    """``program`` with every kernel prepared."""
    done: dict[int, Kernel] = {}

    def call(item: KernelCall) -> KernelCall:
        kernel = done.get(id(item.kernel))
        if kernel is None:
            kernel = done[id(item.kernel)] = prepare_kernel(item.kernel)
        return item if kernel is item.kernel else replace(item, kernel=kernel)

    def step(item: Any) -> Any:
        if type(item) is Launch:
            return Launch(tuple([call(part) for part in item.parts]))
        epilogue = getattr(item, "epilogue", None)
        return item if epilogue is None else replace(item, epilogue=call(epilogue))

    return stream_results(replace(program, steps=tuple([step(s) for s in program.steps])))
