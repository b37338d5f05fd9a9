"""Convolutions as the Triton backend prints them: where operands lie, what is computed on their tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from triton_convolutions import CONVOLUTIONS
from triton_templates import BF16, SMALL, emit_with, floats, kept_graph

from lamina_fx import bfloat16, float32
from lamina_inductor.backends.triton import CompiledKernel
from lamina_inductor.backends.triton.gpu_plan import make_plan
from lamina_inductor.schedule.program import build_program
from lamina_inductor.schedule.style import CPU_LOOPS
from lamina_prims import ops


def test_packed_operands_are_described_where_they_lie() -> None:
    """Both operands are copied to scratch memory first; descriptors begin where the copies do."""
    fn, inputs, candidates = CONVOLUTIONS["3x3 with everything"]
    program = emit_with(kept_graph(fn, inputs), candidates[1])
    compiled = []
    for kernel in program.kernels:
        count = sum(kind.startswith("tensordesc") for _, kind in kernel.parameters)
        made = ((9, 3, 2, (32, 32)),) * count
        compiled.append(CompiledKernel(kernel.name, 90, "", b"", 0, 4, None, None, 1, 0, made))
    plan = make_plan(program, compiled)
    pack_input, pack_weight, main = [step[2] for kind, step in plan.steps if kind == "launch"]
    described = [argument for argument in main if argument[0] == 6]

    def place(argument: Any) -> tuple[int, int]:
        return argument[1], plan.slots[argument[2]] if argument[2] >= 0 else 0

    assert [place(a) for a in described] == [place(p[1]) for p in (pack_input, pack_weight)]
    sizes = [[plan.slots[k] for k in plan.descriptors[n][3]] for n in (0, 1)]
    assert sizes == [[2, 6, 6, 32], [48, 9 * 32]]


def test_images_between_convolutions_have_their_channels_last() -> None:
    """No copy packs them, whether the first ones come so or not; on the CPU they lie as they did."""

    def block(x: Any, v: Any, w: Any) -> Any:
        convolve = CONVOLUTIONS["1x1"][0]
        return ops.relu(ops.add(convolve(ops.relu(convolve(x, v)), w), x))

    x, v, w = (floats(*shape, dtype=BF16) for shape in ((2, 32, 7, 5), (32, 32, 1, 1), (32, 32, 1, 1)))
    last = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
    for images in (x, last):
        graph = kept_graph(block, (images, v, w))
        program = emit_with(graph, SMALL)
        assert [k.name for k in program.kernels] == ["t0_convolution_maximum", "t1_convolution_add_maximum"]
        between: Any = program.launches[1].buffers[0]
        assert between.buffer.startswith("t") and between.strides == (1120, 1, 160, 32)
        outside = build_program(graph, loops=CPU_LOOPS).buffers
        assert all(b.strides == (1120, 35, 5, 1) for b in outside.values() if b.storage == "workspace")


def test_a_scale_of_channels_is_computed_on_the_tiles() -> None:
    def fn(x: Any, w: Any, variance: Any) -> Any:
        scale = ops.rsqrt(ops.add(ops.convert_element_type(variance, float32), 1e-5))
        y = ops.convert_element_type(CONVOLUTIONS["1x1"][0](x, w), float32)
        return ops.convert_element_type(ops.relu(ops.mul(y, ops.reshape(scale, (1, 48, 1, 1)))), bfloat16)

    graph = kept_graph(fn, tuple(floats(*s, dtype=BF16) for s in ((2, 32, 7, 8), (48, 32, 1, 1), (48,))))
    (kernel,) = emit_with(graph, SMALL).kernels
    assert "rsqrt" in kernel.source
