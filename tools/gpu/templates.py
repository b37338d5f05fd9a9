"""Check and time the Triton backend's templates alone, on a GPU: ``python tools/gpu/templates.py [--only WORD]``.

Needs a GPU, triton and PyTorch (which gives memory, clocks, references and the rival), and ``PYTHONPATH`` with the
sources of lamina-fx, lamina-prims and lamina-inductor, whose C extensions it does not use. Every case is printed by
each of its candidates, compared with a reference in float32, and timed; the table comes last.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import triton
from template_cases import BACKWARD, FORWARD, Case, attention_cases, convolution_cases, product_cases
from triton.backends.compiler import GPUTarget
from triton.testing import do_bench

from lamina_fx import Graph, GraphBuilder, TensorSpec, bool_
from lamina_inductor.backends.triton.backend import TritonBackend
from lamina_inductor.backends.triton.compile import load_function
from lamina_inductor.backends.triton.emit import emit_program
from lamina_inductor.backends.triton.program import Scratch, TensorDescriptor, TritonKernel, TritonProgram
from lamina_inductor.backends.triton.templates.planner import TemplatePlanner
from lamina_inductor.backends.triton.worker import source_kind
from lamina_inductor.ir.program import Operand
from lamina_inductor.tune.candidates import AttentionCandidate, Candidate, label
from lamina_inductor.tune.model import estimate, rank
from lamina_inductor.tune.tables import candidates as all_candidates
from lamina_prims import decompose

TYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float16": torch.float16, "bool": torch.bool,
         "int64": torch.int64}  # fmt: skip


def graph_of(case: Case) -> Graph:
    graph = Graph()
    builder = GraphBuilder(graph)
    values = [builder.proxy(graph.placeholder(f"x{k}", spec=s)) for k, s in enumerate(case.specs)]
    result = case.fn(*values)
    graph.output(tuple(r.node for r in (result if isinstance(result, tuple) else (result,))))
    return decompose(graph, level="prims", keep=TritonBackend.keep)


# -- running ---------------------------------------------------------------------------------------------


def compiled(kernel: TritonKernel) -> Any:
    """What triton makes of a kernel; found in its cache when ``compile_kernels`` has seen it."""
    names = [name for name, _ in kernel.parameters]
    signature = dict(kernel.parameters) | dict.fromkeys(kernel.constants, "constexpr")
    constants = {(len(names) + k,): value for k, value in enumerate(kernel.constants.values())}
    attributes = {(k,): [["tt.divisibility", 16]] for k, name in enumerate(names) if name in kernel.aligned}
    source = source_kind(load_function(kernel))(load_function(kernel), signature, constants, attributes)
    options = kernel.options | {"enable_fp_fusion": True}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


class Run:
    """A program's launches over PyTorch tensors."""

    def __init__(self, program: TritonProgram, inputs: list[torch.Tensor]) -> None:
        self.program = program
        self.memory: dict[str, torch.Tensor] = {}
        for buffer in program.program.buffers.values():
            if buffer.storage == "input":
                self.memory[buffer.name] = inputs[buffer.index]
            else:
                shape, strides = [tuple(map(int, s)) for s in (buffer.shape, buffer.strides)]
                dtype = TYPES[buffer.dtype.name]
                extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
                flat = torch.full((extent,), 7, dtype=dtype, device="cuda")
                self.memory[buffer.name] = flat.as_strided(shape, strides)
        size = max([int(b.offset + b.bytes) for x in program.launches for b in x.buffers if type(b) is Scratch] or [1])
        self.scratch = torch.zeros(size + 256, dtype=torch.uint8, device="cuda")
        self.error = torch.zeros(1, dtype=torch.int64, device="cuda")
        self.calls = [self._call(launch) for launch in program.launches]

    def _call(self, launch: Any) -> tuple[Any, list[Any]]:
        kinds = [kind for _, kind in launch.kernel.parameters]
        arguments = [self._argument(b, k) for b, k in zip(launch.buffers, kinds, strict=False)]
        arguments += [*map(int, launch.sizes), *([self.error] if launch.kernel.checks else [])]
        grid = (*map(int, launch.grid), 1, 1)[:3]
        return compiled(launch.kernel)[grid], [*arguments, *launch.kernel.constants.values()]

    def _argument(self, value: Any, kind: str) -> Any:
        if isinstance(value, Scratch):
            name = {"*bf16": "bfloat16", "*fp32": "float32", "*fp16": "float16", "*i32": "int32"}[kind]
            return self.scratch[int(value.offset) :].view(getattr(torch, name))
        if isinstance(value, TensorDescriptor):
            from triton.tools.tensor_descriptor import TensorDescriptor as HostDescriptor

            shape, strides = list(map(int, value.operand.shape)), list(map(int, value.operand.strides))
            return HostDescriptor(self._argument(value.operand, ""), shape, strides, list(value.block))
        if isinstance(value, Operand) and value.buffer == "scratch":
            return self.scratch.view(TYPES[value.dtype.name])[int(value.offset) :]
        if isinstance(value, Operand):
            base = self.memory[value.buffer]
            return base.as_strided((base.untyped_storage().nbytes() // base.itemsize,), (1,))[int(value.offset) :]
        return self.memory[value]

    def __call__(self) -> None:
        for call, arguments in self.calls:
            call(*arguments)

    def results(self) -> list[torch.Tensor]:
        return [self.memory[r.value] for r in self.program.program.outputs]


def difference(got: torch.Tensor, want: torch.Tensor) -> float:
    if got.dtype == torch.bool:
        return float((got != want).float().mean())
    got, want = got.float(), want.float()
    return float((got - want).norm() / want.norm().clamp_min(1e-30))


def _is_main(case: Case, problem: Any) -> bool:
    return "backward" not in case.name or problem.backward


def plan(case: Case) -> tuple[Any, list[tuple[Candidate, float]]]:
    """The program, and what is tried: what the model ranks first, then the case's own."""
    backend = TritonBackend()
    program = backend.program(graph_of(case))
    found: dict[str, tuple[Candidate, float]] = {}

    def choose(problem: Any, ranked: list[Candidate], show: Any) -> Candidate:
        gpu = TemplatePlanner().gpu
        chosen = [c for c in rank(problem, all_candidates(problem), gpu) if "library" not in label(c)]
        for c in [*chosen[: case.best], *case.tries] if _is_main(case, problem) else ():
            found.setdefault(label(c), (c, estimate(problem, c, gpu)))
        return chosen[0]

    emit_program(program, TemplatePlanner(choose=choose))
    return program, list(found.values()) or [(c, 0.0) for c in case.tries]  # the planner did not ask


def _fitting(problem: Any, candidate: Candidate) -> Candidate:
    """The candidate for what it is meant for: a forward pass in front of a backward pass has its own."""
    backward = isinstance(candidate, AttentionCandidate) and candidate in BACKWARD
    return FORWARD[0] if backward and not problem.backward else candidate


def programs_of(case: Case) -> list[tuple[Candidate, float, TritonProgram]]:
    """(candidate, the model's seconds, program) for all that is tried."""
    program, tries = plan(case)
    result = []
    for candidate, guess in tries:
        planner = TemplatePlanner(choose=lambda problem, ranked, show, c=candidate: _fitting(problem, c))
        result.append((candidate, guess, emit_program(program, planner)))
    return result


def run_case(case: Case, programs: list[tuple[Candidate, float, TritonProgram]], seed: int) -> list[dict[str, Any]]:
    torch.manual_seed(seed)
    inputs = [_random(s) for s in case.specs]
    with torch.no_grad():
        wanted = case.rival(*[x.float() if x.is_floating_point() else x for x in inputs])
        wanted = [w for w in (wanted if isinstance(wanted, tuple) else (wanted,))]
        rival = do_bench(lambda: case.rival(*inputs), warmup=10, rep=40, return_mode="median")
    rows = [{"case": case.name, "who": "torch", "us": rival * 1e3, "tflops": case.flops / rival / 1e9}]
    for candidate, guess, emitted in programs:
        row: dict[str, Any] = {"case": case.name, "who": label(candidate), "guess_us": guess * 1e6}
        try:
            run = Run(emitted, inputs)
            run()
            torch.cuda.synchronize()
            row["error"] = max(difference(g, w) for g, w in zip(run.results(), wanted, strict=False) if w is not None)
            row["bad"] = not row["error"] <= case.tolerance
            taken = do_bench(run, warmup=10, rep=40, return_mode="median")
            row |= {"us": taken * 1e3, "tflops": case.flops / taken / 1e9}
        except Exception as error:  # noqa: BLE001 - reported in the table
            row["failed"] = f"{type(error).__name__}: {error}"[:160]
        rows.append(row)
    return rows


def _random(s: TensorSpec) -> torch.Tensor:
    shape = tuple(map(int, s.shape))
    if s.dtype is bool_:
        return torch.ones(shape, dtype=torch.bool, device="cuda").tril()
    if s.dtype.name == "int64":
        return torch.tensor([77, 5], device="cuda")
    made = torch.randn(shape, device="cuda").to(TYPES[s.dtype.name])
    strides = tuple(map(int, s.strides))
    if made.stride() == strides:
        return made
    return torch.empty_strided(shape, strides, dtype=made.dtype, device="cuda").copy_(made)


def compile_all(kernels: list[TritonKernel]) -> None:
    """In processes of their own, into triton's cache; what fails is seen when it is run."""
    code = "import sys, pickle, templates as t; [t.quietly(k) for k in pickle.load(sys.stdin.buffer)]"
    folder = str(Path(__file__).parent)
    jobs = []
    for part in range(14):
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r}); {code}"]
        jobs.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        jobs[-1].stdin.write(pickle.dumps(kernels[part::14]))  # type: ignore[union-attr]
        jobs[-1].stdin.close()  # type: ignore[union-attr]
    for job in jobs:
        job.wait()


def quietly(kernel: TritonKernel) -> None:
    """Compile."""
    with contextlib.suppress(Exception):
        compiled(kernel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases with this word in their names (several: a,b)")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    cases = [*product_cases(), *attention_cases(), *convolution_cases()]
    cases = [c for c in cases if any(word in c.name for word in options.only.split(","))]
    start = time.perf_counter()
    programs = {case.name: programs_of(case) for case in cases}
    kernels = {k: k for found in programs.values() for _, _, p in found for k in p.kernels}
    print(f"{len(kernels)} kernels printed in {time.perf_counter() - start:.1f} s", flush=True)
    compile_all(list(kernels.values()))
    print(f"compiled after {time.perf_counter() - start:.1f} s", flush=True)
    rows: list[dict[str, Any]] = []
    for seed, case in enumerate(cases):
        try:
            rows.extend(run_case(case, programs[case.name], seed))
        except Exception as error:  # noqa: BLE001 - the other cases go on
            rows.append({"case": case.name, "who": "-", "failed": f"{type(error).__name__}: {error}"[:300]})
        print(f"{case.name}: done after {time.perf_counter() - start:.1f} s", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows))
    for row in rows:
        numbers = (
            f"{row.get('us', 0):9.1f} us {row.get('tflops', 0):7.1f} TFLOP/s {row.get('guess_us', 0):9.1f} guessed"
        )
        tail = row.get("failed") or f"error {row.get('error', 0):.1e}{'  WRONG' if row.get('bad') else ''}"
        print(f"{row['case']:26} {row['who']:44} {numbers}  {tail}")


if __name__ == "__main__":
    main()
