"""The order of a program's steps: after what they read, updates of inputs last and together, small things early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_graphs import draw
from test_write_backs import build, floats, updated
from tracing import trace

from lamina_inductor.ir.kernel import Kernel
from lamina_inductor.ir.program import Gemm, KernelCall, Launch, Program
from lamina_inductor.schedule.program import build_program
from lamina_prims import ops

BIG = 1 << 17
"""Elements: two kernels of this size do not share a launch only because they are small."""


def roles(call: KernelCall) -> tuple[set[str], set[str]]:
    """Buffers that a kernel reads and writes."""
    kernel: Kernel = call.kernel
    pairs = list(zip(call.buffers, kernel.params, strict=True))
    return {b for b, p in pairs if p.role != "out"}, {b for b, p in pairs if p.role != "in"}


def calls(program: Program) -> list[list[KernelCall]]:
    return [list(step.parts) for step in program.steps if type(step) is Launch]


def written_first(program: Program) -> None:
    """Every kernel reads only what is an input or was written by an earlier step; parts of a launch are independent."""
    known = {b.name for b in program.buffers.values() if b.storage in ("input", "constant")}
    for step in program.steps:
        if type(step) is not Launch:
            return  # external steps are not followed here
        made: set[str] = set()
        for call in step.parts:
            reads, writes = roles(call)
            assert reads - writes <= known, (call.kernel.name, reads - known)
            assert not (reads | writes) & made
            made |= writes
        known |= made


@pytest.mark.parametrize("seed", range(40))
def test_everything_comes_after_what_it_reads(seed: int) -> None:
    function, arrays, _ = draw(np.random.default_rng(seed), 10)
    written_first(build_program(trace(function, *arrays)[0]))


def test_a_kernel_that_overwrites_an_input_comes_after_its_readers() -> None:
    def f(x: Any, y: Any) -> Any:
        updates = [(x, ops.mul(x, 2.0))]  # the first in the graph
        return (ops.sum(ops.mul(ops.exp(x), y), 0),), updates

    arrays = [floats(300, 500), floats(300, 500)]
    program, after, _, wanted = updated(f, arrays)
    np.testing.assert_allclose(after[0], wanted[0])
    order = [call for launch in calls(program) for call in launch]
    places = [k for k, call in enumerate(order) if program.inputs[0].name in roles(call)[0]]
    writer = [k for k, call in enumerate(order) if program.inputs[0].name in roles(call)[1]]
    assert writer == [max(places)]


def test_equal_updates_share_the_last_launch() -> None:
    def f(*tensors: Any) -> Any:
        parameters, gradients = tensors[:4], tensors[4:]
        pairs = zip(parameters, gradients, strict=True)
        return (), [(p, ops.sub(p, ops.mul(ops.tanh(g), 0.1))) for p, g in pairs]

    arrays = [floats(BIG) for _ in range(8)]
    program = build(f, arrays)
    [launch] = calls(program)
    assert len(launch) == 4 and len({call.kernel.name for call in launch}) == 1


def test_updates_go_behind_other_work() -> None:
    def f(p: Any, g: Any, x: Any) -> Any:
        updates = [(p, ops.sub(p, g))]
        return (ops.sum(ops.exp(x), 1), ops.sum(ops.sin(x), 0)), updates

    program = build(f, [floats(BIG), floats(BIG), floats(512, 512)])
    last = calls(program)[-1]
    assert [program.inputs[0].name in roles(call)[1] for call in last] == [True]


def test_tiny_values_do_not_hold_up_others() -> None:
    """The corrections of an optimizer are made before the kernels between which they stand in the graph."""

    def f(count: Any, x: Any, y: Any) -> Any:
        large = ops.sum(ops.exp(x), 1)
        tiny = ops.rsqrt(ops.sum(ops.exp(count), 0))
        return large, ops.mul(ops.cumsum(y, 0), tiny)

    program = build_program(trace(f, floats(9), floats(512, 512), floats(BIG))[0])
    first = calls(program)[0][0]
    reads, _ = roles(first)
    assert reads == {program.inputs[0].name}


def test_an_update_that_can_be_a_products_epilogue_follows_it() -> None:
    def f(w: Any, a: Any, b: Any, x: Any) -> Any:
        gradient = ops.matmul(a, b)
        later = ops.sum(ops.exp(x), 1)
        return (later,), [(w, ops.sub(w, ops.mul(gradient, 0.1)))]

    program = build(f, [floats(96, 128), floats(96, 64), floats(64, 128), floats(512, 512)])
    products = [step for step in program.steps if type(step) is Gemm]
    assert len(products) == 1
    place = program.steps.index(products[0])
    behind = products[0].epilogue
    if behind is None:
        behind = program.steps[place + 1].parts[0]
    assert program.inputs[0].name in roles(behind)[1]
