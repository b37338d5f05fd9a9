"""Run every operator's samples with device="cuda" and compare with the CPU: values, dtypes, devices, gradients.

    python tools/gpu/eager.py --build            build lamina_tensor's extension here first
    python tools/gpu/eager.py --jobs 8           in eight processes (CuPy compiles a kernel at each first use)
    python tools/gpu/eager.py --only add matmul  some operators only
    python tools/gpu/eager.py --stub             on the stub device, where there is no GPU

Needs a GPU with a driver for CUDA 13, cupy-cuda13x, numpy, ml_dtypes and safetensors; to build, a C compiler, Python's
headers and setuptools. The packages are used from source: nothing is installed. Counts and what failed are printed
last; the exit status is 1 when something failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [str(ROOT / "packages" / name / "src") for name in ("lamina-fx", "lamina-prims", "lamina-tensor")]
sys.path[:0] = [*(SOURCES if importlib.util.find_spec("lamina_tensor") is None else ()), str(Path(__file__).parent)]

from factorisations import FACTORISATIONS, certain  # noqa: E402

TOLERANCES = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}
MAY_LEAVE = ("device_put", "to.device", "to.other")


@dataclass
class Result:
    """What became of one operator."""

    id: str
    samples: int = 0
    gradients: int = 0
    seconds: float = 0.0
    failures: tuple[str, ...] = ()


def build() -> None:
    """The extension of lamina_tensor, in place."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES)}
    folder = ROOT / "packages" / "lamina-tensor"
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, env=environment, check=True
    )


def flat(value: Any) -> list[Any]:
    """The leaves of nested lists and tuples."""
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def on_device(value: Any, device: str, gradient: bool) -> Any:
    """Arrays as tensors on a device; floating ones ask for gradients where that is wanted."""
    import numpy as np

    import lamina_tensor as lt

    if isinstance(value, np.ndarray):
        made = lt.tensor(value, device=device)
        return made.requires_grad_() if gradient and made.dtype.is_floating_point else made
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(v, device, gradient) for v in value)
    return {k: on_device(v, device, gradient) for k, v in value.items()} if isinstance(value, dict) else value


def compare(got: Any, want: Any, what: str, may_leave: bool, values: bool = True, least: float = 0.0) -> None:
    """Raise AssertionError where a result is not the CPU's. ``least``: the tolerance of the arguments' dtypes."""
    import numpy as np

    import lamina_tensor as lt

    if not isinstance(want, lt.Tensor):
        assert got is want or got == want, f"{what}: {got} instead of {want}"
        return
    assert got.device.type == "cuda" or may_leave, f"{what}: on {got.device}"
    assert got.dtype is want.dtype, f"{what}: {got.dtype} instead of {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {tuple(got.shape)} instead of {tuple(want.shape)}"
    if not values:
        return
    a, b = got.detach().cpu().numpy(), want.detach().numpy()
    if a.dtype.num >= 256:
        a, b = a.astype(np.float32), b.astype(np.float32)
    allowed = TOLERANCES.get(want.dtype.name, 0.0)
    allowed = max(allowed, least) if allowed else allowed
    scale = float(np.max(np.abs(np.where(np.isfinite(b), b, 0)), initial=0.0)) if b.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(a, b, rtol=allowed, atol=allowed * max(1.0, scale), equal_nan=True, err_msg=what)


def run_call(op: Any, sample: Any, device: str, gradient: bool) -> tuple[list[Any], list[Any]]:
    """Results of a call and the tensors that it was given."""
    from lamina_tensor.creator import creating_tensors

    args, kwargs = on_device(sample.args, device, gradient), on_device(sample.kwargs, device, gradient)
    given = [v for v in flat([*args, *kwargs.values()]) if hasattr(v, "requires_grad")]
    if not given and any(p.name == "device" for p in op.schema.parameters):
        kwargs = {**kwargs, "device": device}
    with creating_tensors():
        return flat(op(*args, **kwargs)), given


def gradients(results: list[Any], given: list[Any]) -> list[Any]:
    """Gradients of the sum of squares of what is differentiable."""
    import lamina_tensor as lt

    leaves = [t for t in given if t.requires_grad]
    outs = [r for r in results if isinstance(r, lt.Tensor) and r.requires_grad and r.dtype.is_floating_point]
    if not leaves or not outs:
        return []
    loss = sum(((o.double() * o.double()).sum() for o in outs), lt.zeros((), dtype=lt.float64, device=outs[0].device))
    return list(lt.autograd.grad(loss, leaves, allow_unused=True))


def compare_factors(op: Any, got: list[Any], want: list[Any], least: float) -> None:
    """Shapes and dtypes of the factors, and what two right factorisations have in common."""
    import numpy as np

    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        compare(a, b, f"factor {index}", False, False)
    pairs = zip(certain(op.id, [t.cpu().numpy() for t in got]), certain(op.id, [t.numpy() for t in want]), strict=True)
    for index, (a, b) in enumerate(pairs):
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=least, atol=least * scale, err_msg=f"certain {index}")


def run_sample(op: Any, sample: Any, result: Result) -> None:
    """One sample: values, then gradients."""
    values = "nondeterministic" not in op.tags
    factors = op.id in FACTORISATIONS
    want, given = run_call(op, sample, "cpu", False)
    least = max((TOLERANCES.get(t.dtype.name, 0.0) for t in given), default=0.0)
    got, _ = run_call(op, sample, "cuda", False)
    assert len(got) == len(want), f"{len(got)} results instead of {len(want)}"
    if factors:
        compare_factors(op, got, want, least)
        return
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        compare(a, b, f"result {index}", op.id in MAY_LEAVE, values, least)
    if not values or not getattr(sample, "gradient", True) or op.id in MAY_LEAVE:
        return
    try:
        wanted = gradients(*run_call(op, sample, "cpu", True))
    except (RuntimeError, NotImplementedError):
        return  # no derivative there either
    for index, (a, b) in enumerate(zip(gradients(*run_call(op, sample, "cuda", True)), wanted, strict=True)):
        assert (a is None) == (b is None), f"gradient {index}: {a} instead of {b}"
        if b is not None:
            compare(a, b, f"gradient {index}", False, True, least)
            result.gradients += 1


def run_operator(id: str) -> Result:
    """All samples of an operator; failures are said, not raised."""
    import numpy as np

    from lamina_prims import operator

    op, result, failures = operator(id), Result(id), []
    start = time.perf_counter()
    for number, sample in enumerate(op.samples(np.random.default_rng(0))):
        result.samples += 1
        try:
            run_sample(op, sample, result)
        except Exception as error:  # noqa: BLE001  (whatever goes wrong on the device is a finding)
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())[:200]
            failures.append(f"[{number}] {type(error).__name__} {Path(where.filename).name}:{where.lineno}: {text}")
    result.failures, result.seconds = tuple(failures), time.perf_counter() - start
    return result


def sampled(only: list[str]) -> list[str]:
    """The operators with samples."""
    from lamina_prims.registry import operators

    found = [id for id, op in operators().items() if op.samples is not None and not op.effect]
    return [id for id in found if not only or id in only]


def quiet() -> None:
    """In each process: warnings of NumPy about special values are no news."""
    import warnings

    warnings.simplefilter("ignore")


def run_all(ids: list[str], jobs: int, seconds: float) -> list[Result]:
    """All operators, in several processes when asked; those that the time does not suffice for are left out."""
    end = time.monotonic() + seconds
    if jobs == 1:
        return [run_operator(id) for id in ids if time.monotonic() < end]
    results: list[Result] = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, quiet) as pool:
        waiting = pool.imap_unordered(run_operator, ids)
        try:
            while True:
                results.append(waiting.next(max(end - time.monotonic(), 0.01)))
        except StopIteration:
            pass
        except multiprocessing.TimeoutError:
            pool.terminate()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true", help="build the extension first")
    parser.add_argument("--stub", action="store_true", help="use the stub device")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=500, help="stop after this many seconds")
    parser.add_argument("--only", nargs="*", default=[], help="ids of operators")
    parser.add_argument("--programs", action="store_true", help="only the programs of eager_programs.py")
    parser.add_argument("--log", help="write all results to this JSON file")
    options = parser.parse_args()
    if options.stub:
        os.environ["LAMINA_CUDA_PROVIDER"] = "stub"
    if options.build:
        build()
    quiet()
    start = time.monotonic()
    ids = [] if options.programs else sampled(options.only)
    results = run_all(ids, options.jobs, options.seconds)
    import eager_programs

    programs = [] if options.only else eager_programs.run()
    missing = sorted(set(ids) - {r.id for r in results})
    bad = [r for r in results if r.failures]
    if options.log:
        Path(options.log).write_text(json.dumps([asdict(r) for r in results] + [asdict(p) for p in programs], indent=1))
    print(f"{time.monotonic() - start:.0f} s; slowest:", *(f"{r.id} {r.seconds:.1f}" for r in slowest(results)))
    print(f"operators {len(results)} of {len(ids)}, samples {sum(r.samples for r in results)}, "
          f"gradients {sum(r.gradients for r in results)}; programs {len(programs)}")  # fmt: skip
    if missing:
        print("not run:", *missing)
    for program in programs:
        print(f"  program {program.name:<28} {program.outcome}")
    for result in bad:
        print(f"FAILED {result.id}: {len(result.failures)} of {result.samples}")
        for failure in result.failures[:2]:
            print(f"    {failure}")
    wrong = len(bad) + sum(not p.good for p in programs)
    print(f"{wrong} failing" if wrong else "all good")
    return 1 if wrong or missing else 0


def slowest(results: list[Result]) -> list[Result]:
    """The five that took longest."""
    return sorted(results, key=lambda r: -r.seconds)[:5]


if __name__ == "__main__":
    raise SystemExit(main())
