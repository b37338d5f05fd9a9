"""Kernels written by hand in kernel IR, compiled and run: every statement, accumulator and store mode."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_builders import buffer, program

from lamina_fx.dtype import bool_, dtype_of, float32, int64, uint32
from lamina_fx.symbolic import Integer, Symbol
from lamina_inductor.backends.cpp import compile_program, find_toolchain
from lamina_inductor.backends.cpp.kernel_printer import print_kernel
from lamina_inductor.backends.cpp.toolchain import cpu_flags
from lamina_inductor.ir.kernel import (
    Accumulate,
    Accumulator,
    BindIndex,
    BufferParam,
    If,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Store,
)
from lamina_inductor.ir.program import Check, KernelCall, Launch, Program, SizeSource
from lamina_prims import operator

R, C = 37, 53
r, c, c1, c2, i = (Symbol(n, 0, (R if n == "r" else C) - 1) for n in ("r", "c", "c1", "c2", "i"))


def softmax_kernel(rows: Any = None, columns: Any = None) -> Kernel:
    rows, columns = Integer(R) if rows is None else rows, Integer(C) if columns is None else columns
    params = (BufferParam("arg0", float32, "in"), BufferParam("out0", float32, "out"))
    sizes = tuple(s for s in (rows, columns) if isinstance(s, Symbol))
    top = Loop(c, columns, "simd", (Load("x", float32, "arg0", r * columns + c), Accumulate("m", "x")),
               (Accumulator("m", float32, "max"),))  # fmt: skip
    middle = (
        Load("y", float32, "arg0", r * columns + c1),
        Let("d", float32, "sub", ("y", "m")),
        Let("e", float32, "exp", ("d",)),
        Store("t", c1, "e"),
        Accumulate("s", "e"),
    )
    last = (Load("z", float32, "t", c2), Let("q", float32, "div", ("z", "s")), Store("out0", r * columns + c2, "q"))
    body = (
        Local("t", float32, 4096),
        top,
        Loop(c1, columns, "simd", middle, (Accumulator("s", float32, "sum"),)),
        Loop(c2, columns, "simd", last),
    )
    return Kernel("k0_softmax", params, sizes, (Loop(r, rows, "parallel", body, grain=Integer(8)),))


def softmax(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_program() -> Program:
    buffers = [buffer("arg0", "input", (R, C), float32), buffer("out0", "output", (R, C), float32)]
    return program("softmax", buffers, [Launch((KernelCall(softmax_kernel(), ("arg0", "out0")),))])


def test_softmax_and_its_nan() -> None:
    artifact = compile_program(softmax_program())
    x = np.random.default_rng(0).standard_normal((R, C), dtype=np.float32) * 10
    np.testing.assert_allclose(artifact(x)[0], softmax(x), rtol=2e-6)
    x[3, 5] = np.nan
    assert np.isnan(artifact(x)[0]).sum() == C


@pytest.mark.skipif("avx2" not in cpu_flags(), reason="the registers asked for are those of x86-64 with AVX2")
def test_loops_are_vectorised(tmp_path: Path) -> None:
    toolchain = find_toolchain()
    assert toolchain is not None
    artifact = compile_program(softmax_program())
    source, assembly = tmp_path / "unit.cpp", tmp_path / "unit.s"
    source.write_text(artifact.source)
    subprocess.run([toolchain.path, *toolchain.flags, "-S", str(source), "-o", str(assembly)], check=True)
    text = assembly.read_text()
    register = "zmm" if "avx512f" in cpu_flags() else "ymm"
    instructions = ["vaddps", "vmulps", "vsubps"]
    if toolchain.family == "clang":
        register = "[xyz]mm"  # by its own estimate of the loop's cost; a maximum is a comparison and a selection
    else:
        instructions.append("vmaxps")
    for instruction in instructions:
        assert re.search(rf"{instruction}[^\n]*%{register}", text), f"{instruction} on {register} is missing"
    if toolchain.has_libmvec:
        assert re.search(r"_ZGV[bed]N(16|8|4)v_expf" if toolchain.family == "clang" else r"_ZGV[ed]N(16|8)v_expf", text)


def test_golden_softmax(golden: Any) -> None:
    golden("softmax.cpp", print_kernel(softmax_kernel()))


def test_symbolic_sizes_run_at_any_size() -> None:
    s0, s1 = Symbol("s0", 1), Symbol("s1", 1)
    buffers = [buffer("arg0", "input", (s0, s1), float32), buffer("out0", "output", (s0, s1), float32)]
    rows, columns = Symbol("rows", 1), Symbol("columns", 1)
    call = KernelCall(softmax_kernel(rows, columns), ("arg0", "out0"), (s0, s1))
    artifact = compile_program(
        program("softmax_any", buffers, [Launch((call,))], sizes=(SizeSource(s0, 0, 0), SizeSource(s1, 0, 1)))
    )
    for shape in [(3, 5), (1, 1), (200, 17), (8, 4096)]:
        x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
        np.testing.assert_allclose(artifact(x)[0], softmax(x), rtol=3e-6)


def reduce_program(kind: str, dtype: Any, simd: bool, result: Any = None) -> Program:
    index = kind in ("argmax", "argmin")
    result = result or (int64 if index else dtype)
    axis_index = (IndexValue("at", int64, c),) if index else ()
    step = Accumulate("m", "x", "at" if index else None)
    inner = Loop(c, Integer(C), "simd" if simd else "serial", (Load("x", dtype, "arg0", r * C + c), *axis_index, step),
                 (Accumulator("m", dtype, kind),))  # fmt: skip
    body = (inner, Store("out0", r, "m"))
    params = (BufferParam("arg0", dtype, "in"), BufferParam("out0", result, "out"))
    kernel = Kernel(f"k0_{kind}", params, (), (Loop(r, Integer(R), "parallel", body, grain=Integer(10)),))
    buffers = [buffer("arg0", "input", (R, C), dtype), buffer("out0", "output", (R,), result)]
    return program(f"reduce_{kind}", buffers, [Launch((KernelCall(kernel, ("arg0", "out0")),))])


REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin,
    "any": np.any, "all": np.all, "xor": np.bitwise_xor.reduce,
}  # fmt: skip


@pytest.mark.parametrize("simd", [True, False], ids=["simd", "serial"])
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_accumulators(kind: str, simd: bool) -> None:
    rng = np.random.default_rng(2)
    names = {"any": ["bool"], "all": ["bool"], "xor": ["int32", "int64", "uint8"]}
    for name in names.get(kind, ["float32", "float64", "int32", "int64", "uint8", "int16"]):
        low = 0 if name in ("bool", "uint8") else -4
        x = (rng.integers(low, 2 if name == "bool" else 5, (R, C)) * (rng.random((R, 1)) > 0.2)).astype(name)
        if kind == "prod":
            x = np.where(rng.random(x.shape) < 0.9, np.ones_like(x), x)
        got = compile_program(reduce_program(kind, dtype_of(name), simd))(x)[0]
        expected = REDUCTIONS[kind](x, axis=1, **({"dtype": name} if kind in ("sum", "prod") else {}))
        np.testing.assert_array_equal(got, expected, err_msg=name)


@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin"])
def test_a_nan_wins(kind: str) -> None:
    x = np.random.default_rng(3).standard_normal((R, C)).astype(np.float32)
    x[np.arange(R), np.arange(R)] = np.nan
    x[5] = [np.nan] * C
    x[6] = -np.inf if "max" in kind else np.inf
    got = compile_program(reduce_program(kind, float32, True))(x)[0]
    np.testing.assert_array_equal(got, REDUCTIONS[kind](x, axis=1))


def gather_program(wrap: bool) -> Program:
    at = Symbol("at", 0)
    body = (
        Load("k", int64, "arg1", i),
        BindIndex(at, "k", Integer(R), wrap=wrap, check=7),
        Load("x", float32, "arg0", at * 2 + 1),
        Store("out0", i, "x"),
    )
    params = (BufferParam("arg0", float32, "in"), BufferParam("arg1", int64, "in"), BufferParam("out0", float32, "out"))
    kernel = Kernel("k0_gather", params, (), (Loop(i, Integer(C), "parallel simd", body),))
    buffers = [
        buffer("arg0", "input", (R, 2), float32),
        buffer("arg1", "input", (C,), int64, 1),
        buffer("out0", "output", (C,), float32),
    ]
    check = Check(7, "IndexError", "gather: {index} of {size} at model.py:12", R)
    return program("gather", buffers, [Launch((KernelCall(kernel, ("arg0", "arg1", "out0")),))], checks=(check,))


def test_indices_are_checked_and_wrapped() -> None:
    table = np.arange(2 * R, dtype=np.float32).reshape(R, 2)
    index = np.random.default_rng(4).integers(-R, R, C)
    artifact = compile_program(gather_program(wrap=True))
    np.testing.assert_array_equal(artifact(table, index)[0], table[index, 1])
    for bad in (R, -R - 1, 2**40):
        index[17] = bad
        with pytest.raises(IndexError, match=rf"^gather: index {bad} of {R} at model\.py:12$"):
            artifact(table, index)
    strict = compile_program(gather_program(wrap=False))
    with pytest.raises(IndexError):
        strict(table, np.full(C, -1))


def scatter_program(mode: str, atomic: bool, dtype: Any) -> Program:
    at = Symbol("at", 0)
    body = (
        Load("k", int64, "arg0", i),
        BindIndex(at, "k"),
        Load("x", dtype, "arg1", i),
        Store("arg2", at, "x", mode, atomic=atomic),
    )
    params = (BufferParam("arg0", int64, "in"), BufferParam("arg1", dtype, "in"), BufferParam("arg2", dtype, "inout"))
    kind = "parallel" if atomic else "serial"
    loop = Loop(i, Integer(1000), kind, body, grain=Integer(50)) if atomic else None
    if loop is None:
        one = Symbol("one", 0, 0)
        loop = Loop(one, Integer(1), "parallel", (Loop(i, Integer(1000), "serial", body),))
    kernel = Kernel("k0_scatter", params, (), (loop,))
    buffers = [
        buffer("arg0", "input", (1000,), int64),
        buffer("arg1", "input", (1000,), dtype, 1),
        buffer("arg2", "input", (9,), dtype, 2),
    ]
    return program("scatter", buffers, [Launch((KernelCall(kernel, ("arg0", "arg1", "arg2")),))], writes=(2,))


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64", "int8"])
@pytest.mark.parametrize("atomic", [True, False])
def test_combining_stores(atomic: bool, name: str) -> None:
    rng = np.random.default_rng(5)
    index, values = rng.integers(0, 9, 1000), rng.integers(-3, 4, 1000).astype(name)
    for mode, ufunc in [("add", np.add), ("max", np.maximum), ("min", np.minimum)]:
        target = np.zeros(9, name)
        expected = target.copy()
        ufunc.at(expected, index, values)
        compile_program(scatter_program(mode, atomic, dtype_of(name)))(index, values, target)
        np.testing.assert_array_equal(target, expected, err_msg=mode)


def test_masks_conditions_and_small_locals() -> None:
    # out[r, c] = r even ? (c < r ? x[r, c] : 9) : 0, through a masked load, a masked store and an If
    body = (
        IndexValue("even", bool_, (r % 2).__lt__(1)),
        Loop(c1, Integer(C), "simd", (Store("out0", r * C + c1, 0.0),)),
        If("even", (Loop(c, Integer(C), "simd", (
            IndexValue("below", bool_, c < r),
            Load("x", float32, "arg0", r * C + c, "below", 9.0),
            IndexValue("inside", bool_, c < C - 1),
            Store("out0", r * C + c, "x", mask="inside"),
        )),)),
    )  # fmt: skip
    params = (BufferParam("arg0", float32, "in"), BufferParam("out0", float32, "out"))
    kernel = Kernel("k0_masked", params, (), (Loop(r, Integer(R), "parallel", body),))
    buffers = [buffer("arg0", "input", (R, C), float32), buffer("out0", "output", (R, C), float32)]
    artifact = compile_program(program("masked", buffers, [Launch((KernelCall(kernel, ("arg0", "out0")),))]))
    x = np.random.default_rng(6).standard_normal((R, C)).astype(np.float32)
    row, column = np.ogrid[:R, :C]
    expected = np.where((row % 2 == 0) & (column < C - 1), np.where(column < row, x, np.float32(9)), np.float32(0))
    np.testing.assert_array_equal(artifact(x)[0], expected)


def test_several_parts_share_one_region() -> None:
    buffers, parts = [], []
    for k, n in enumerate((5, 100_000, 1, 33_000, 0)):
        j = Symbol("j", 0)
        body = (Load("x", float32, "p", j), Let("y", float32, "mul", ("x", 2.0)), Store("p", j, "y"))
        size = Symbol("n", 0)
        kernel = Kernel("k0_double", (BufferParam("p", float32, "inout"),), (size,),
                        (Loop(j, size, "parallel simd", body, grain=Integer(16384)),))  # fmt: skip
        buffers.append(buffer(f"arg{k}", "input", (n,), float32, k))
        parts.append(KernelCall(kernel, (f"arg{k}",), (n,)))
    artifact = compile_program(program("double_all", buffers, [Launch(tuple(parts))], writes=tuple(range(5))))
    arrays = [np.random.default_rng(7).standard_normal(b.shape).astype(np.float32) for b in buffers]
    expected = [a * 2 for a in arrays]
    assert artifact(*arrays) == ()
    for a, e in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(a, e)
    assert len(artifact.kernels) == 1


def test_philox_is_the_reference() -> None:
    body = (
        Load("seed", int64, "arg0", Integer(0)),
        Load("offset", int64, "arg0", Integer(1)),
        IndexValue("at", int64, i),
        Let("w", uint32, "philox", ("seed", "offset", "at")),
        Store("out0", i, "w"),
    )
    params = (BufferParam("arg0", int64, "in"), BufferParam("out0", uint32, "out"))
    kernel = Kernel("k0_philox", params, (), (Loop(i, Integer(1003), "parallel simd", body, grain=Integer(100)),))
    buffers = [buffer("arg0", "input", (2,), int64), buffer("out0", "output", (1003,), uint32)]
    artifact = compile_program(program("bits", buffers, [Launch((KernelCall(kernel, ("arg0", "out0")),))]))
    for state in ([5, 0], [-(2**61) + 3, 2**33 - 2], [7, -3]):
        array = np.array(state, np.int64)
        np.testing.assert_array_equal(artifact(array)[0], operator("philox")(array, (1003,)))


@pytest.mark.parametrize("name", ["float32", "int32", "float64"])
@pytest.mark.parametrize("rows, columns", [(32, 128), (8, 8), (13, 21), (3, 40), (1, 1)])
def test_tiles_are_filled_transposed(rows: int, columns: int, name: str) -> None:
    dtype, pitch = dtype_of(name), rows + 1
    one, a, b = Symbol("one", 0, 0), Symbol("a", 0, rows - 1), Symbol("b", 0, columns - 1)
    a2, b2 = Symbol("a2", 0, rows - 1), Symbol("b2", 0, columns - 1)
    fill = (Load("x", dtype, "arg0", a * columns + b), Store("tile", b * pitch + a, "x"))
    use = (Load("y", dtype, "tile", b2 * pitch + a2), Store("out0", b2 * rows + a2, "y"))
    body = (
        Local("tile", dtype, columns * pitch),
        Loop(a, Integer(rows), "serial", (Loop(b, Integer(columns), "simd", fill),)),
        Loop(b2, Integer(columns), "serial", (Loop(a2, Integer(rows), "simd", use),)),
    )
    params = (BufferParam("arg0", dtype, "in"), BufferParam("out0", dtype, "out"))
    kernel = Kernel("k0_turn", params, (), (Loop(one, Integer(1), "parallel", body),))
    buffers = [
        buffer("arg0", "input", (rows, columns), dtype),
        buffer("out0", "output", (columns, rows), dtype),
    ]
    artifact = compile_program(program("turn", buffers, [Launch((KernelCall(kernel, ("arg0", "out0")),))]))
    assert "lm_transpose(" in artifact.kernels[0].source
    x = np.arange(rows * columns).reshape(rows, columns).astype(name)
    np.testing.assert_array_equal(artifact(x)[0], x.T)


@pytest.mark.parametrize("columns", [1, 15, 255, 256, 257, 1000])
def test_random_rows_are_drawn_by_blocks(columns: int) -> None:
    j = Symbol("j", 0, columns - 1)
    draw = (
        Load("seed", int64, "arg0", Integer(0)),
        Load("offset", int64, "arg0", Integer(1)),
        IndexValue("at", int64, r * columns + j),
        Let("w", uint32, "philox", ("seed", "offset", "at")),
        Let("x", float32, "convert_element_type", ("w",)),
        Store("out0", r * columns + j, "x"),
        Accumulate("top", "x"),
        Accumulate("all", "x"),
    )
    accumulators = (Accumulator("top", float32, "max"), Accumulator("all", float32, "sum"))
    body = (Loop(j, Integer(columns), "simd", draw, accumulators), Store("out1", r, "top"), Store("out2", r, "all"))
    params = (BufferParam("arg0", int64, "in"), *(BufferParam(f"out{k}", float32, "out") for k in range(3)))
    kernel = Kernel("k0_draw", params, (), (Loop(r, Integer(R), "parallel", body),))
    buffers = [buffer("arg0", "input", (2,), int64), buffer("out0", "output", (R, columns), float32)]
    buffers += [buffer(f"out{k}", "output", (R,), float32, k) for k in (1, 2)]
    artifact = compile_program(
        program("draw", buffers, [Launch((KernelCall(kernel, ("arg0", "out0", "out1", "out2")),))])
    )
    state = np.array([11, 2**40 + 5], np.int64)
    words = operator("philox")(state, (R, columns)).astype(np.float32)
    drawn, top, total = artifact(state)
    np.testing.assert_array_equal(drawn, words)
    np.testing.assert_array_equal(top, words.max(1))
    np.testing.assert_allclose(total, words.sum(1), rtol=1e-5)
    assert ("lm_philox_fill" in artifact.kernels[0].source) == (columns >= 16)
