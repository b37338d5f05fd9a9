"""Measures compiled programs on a GPU: ``python tools/gpu/bench.py [--rows adamw,softmax] [--rival torch]``.

Each row: the first call (compilation in it), results checked against the same program in float32 on fresh random
inputs, then the median of timed calls, by events; with the fewest bytes that it must move, the bandwidth that this is,
or its arithmetic. ``--rival torch`` measures torch in a process of its own: eager, compiled, ``--autotune`` too. The
table comes last, with the ratios of the rival's compiled times to lamina's and their geometric mean.
``--table kernels`` has other rows: running sums, sorts, transposed reads.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel_rows import KERNEL_ROWS
from rows import ROWS, Row

TABLES = {"programs": ROWS, "kernels": KERNEL_ROWS}


def timed(T: Any, run: Any, repeats: int, budget: float = 1.0) -> float:
    """Median microseconds of a call on the device, queued behind each other; tiny programs: of the host, too."""
    for _ in range(3):
        run()
    T.cuda.synchronize()
    begin = time.perf_counter()
    run()
    T.cuda.synchronize()
    one = time.perf_counter() - begin
    count = max(5, min(repeats, int(budget / max(one, 1e-6))))
    events = [(T.cuda.Event(enable_timing=True), T.cuda.Event(enable_timing=True)) for _ in range(count)]
    for start, end in events:
        start.record()
        run()
        end.record()
    T.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in events) * 1000


def host_time(T: Any, run: Any, count: int = 2000) -> float:
    """Microseconds that a call costs the host."""
    best = float("inf")
    for _ in range(5):
        T.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count // 5):
            run()
        best = min(best, (time.perf_counter() - begin) / (count // 5))
        T.cuda.synchronize()
    return best * 1e6


def error_of(T: Any, row: Row, results: Any) -> float:
    """Largest relative distance (by norm) of the results from those of the same program in float32, or, where it has
    parameters of its own, in eager."""
    wide = (
        row.inputs
        if row.own_parameters
        else tuple(
            (i.detach().float().requires_grad_(i.requires_grad) if i.is_floating_point() else i) for i in row.inputs
        )
    )
    wanted = row.run(*wide)
    pairs = zip(_flat(results), _flat(wanted), strict=True)
    return max(
        [float(((a.float() - b.float()).norm() / (b.float().norm() + 1e-20)).item()) for a, b in pairs], default=0.0
    )


def _flat(value: Any) -> list[Any]:
    return (
        [v.detach() for v in value] if isinstance(value, (tuple, list)) else [] if value is None else [value.detach()]
    )


def measure(T: Any, name: str, variant: str, check: bool) -> tuple[dict[str, Any], Any]:
    """One row of one library, and the call that was timed."""
    T.cuda.reset_peak_memory_stats()
    T.compiler.reset()  # rows share code: without it, sizes of the later ones would be symbols
    row = (ROWS | KERNEL_ROWS)[name](T)
    longest = "max-autotune" if T.__name__ == "lamina" else "max-autotune-no-cudagraphs"
    options = {} if variant != "autotune" else {"mode": longest}
    if variant == "graphs":
        options = {"mode": "reduce-overhead"}
    run = row.run if variant == "eager" else T.compile(row.run, **options)
    begin = time.perf_counter()
    results = run(*row.inputs)
    T.cuda.synchronize()
    found: dict[str, Any] = {"first_s": time.perf_counter() - begin}
    if check and variant != "eager" and (row.check or (row.inputs and not row.trains)):
        found["error"] = row.check() if row.check else error_of(T, row, results)
        found["right"] = found["error"] <= row.tolerance
    if row.trains:
        found["losses"] = [float(r.item()) for r in (results, *(run(*row.inputs) for _ in range(3)))]
        found["memory"] = T.cuda.max_memory_allocated()
    del results
    call = (lambda: run(*row.inputs)) if row.inputs else run
    found["us"] = timed(T, call, 50 if name != "tiny call" else 500)
    found["host_us"] = host_time(T, call, 5000 if name == "tiny call" else 200 if found["us"] < 4000 else 25)
    if name == "tiny call":
        found["us"] = found["host_us"]
    found["tokens_s"] = row.tokens / found["us"] * 1e6
    found |= {name: getattr(row, name) for name in ("moved", "formula", "operations", "target", "ceiling")}
    return found, call


def profiled(T: Any, name: str, variant: str, check: bool) -> dict[str, Any]:
    """One row of lamina, and a table of its kernels on standard error."""
    from step_times import recorded, table, timing

    with recorded() as programs:
        found, call = measure(T, name, variant, check)
    del programs[1:]  # those of a check
    with timing(programs):
        for _ in range(5):
            call()
    print(table(programs), file=sys.stderr, flush=True)
    return found


def run_rows(library: str, variants: list[str], names: list[str], arguments: Any) -> dict[str, Any]:
    """Every row, variant by variant; what fails says so, and what is not begun in time is left out."""
    T = importlib.import_module(library)
    profile, check = arguments.profile and library == "lamina", not arguments.no_check
    end = time.monotonic() + arguments.seconds if arguments.seconds else float("inf")
    results: dict[str, Any] = {}
    for variant in variants:
        for name in names:
            key = f"{name}|{library} {variant}"
            if variant == "autotune" and any(part in name for part in arguments.untuned.split(",") if part):
                continue
            if time.monotonic() > end:
                print(f"# {key}: left out, the time is over", file=sys.stderr, flush=True)
                continue
            try:
                if profile:
                    results[key] = profiled(T, name, variant, check)
                else:
                    results[key] = measure(T, name, variant, check)[0]
            except Exception as error:  # noqa: BLE001 - one row that fails does not end the others
                results[key] = {"failed": f"{type(error).__name__}: {error}"[:300]}
                traceback.print_exc()
            print(f"# {key}: {_short(results[key])}", file=sys.stderr, flush=True)
            T.cuda.empty_cache()
    return results


def _short(found: dict[str, Any]) -> str:
    if "failed" in found:
        return found["failed"]
    text = f"{found['us']:.1f} us, first {found['first_s']:.2f} s, host {found['host_us']:.1f} us"
    text += f", error {found['error']:.1e}" if "error" in found else ""
    if found.get("tokens_s"):
        losses = ", ".join(f"{loss:.5f}" for loss in found.get("losses", ()))
        text += f", {found['tokens_s']:.0f} tokens/s, losses {losses}, {found.get('memory', 0) / 2**30:.1f} GiB at most"
    return text


def table(results: dict[str, Any], names: list[str]) -> str:
    """The table for people."""
    columns = list(dict.fromkeys(key.partition("|")[2] for key in results))
    width = max(map(len, names), default=0) + 1
    lines = [
        f"{'row':{width}s} {'target':>8s} "
        + " ".join(f"{c[:18]:>18s}" for c in columns)
        + "   ratio, TB/s or TFLOP/s, first call"
    ]
    ratios: list[float] = []
    for name in names:
        found = [results.get(f"{name}|{c}", {}) for c in columns]
        cells = [
            f"{f['us']:14.1f}{'' if f.get('right', True) else ' BAD'} us" if "us" in f else f"{'-':>18s}" for f in found
        ]
        first = next((f for f in found if "us" in f), {})
        rate = ""
        if first.get("moved"):
            rate = f"{first['moved'] / first['us'] / 1e6:.2f} TB/s ({first['formula']})"
        elif first.get("operations"):
            rate = f"{first['operations'] / first['us'] / 1e6:.0f} TFLOP/s"
        lines.append(
            f"{name:{width}s} {first.get('target', 0):8.0f} "
            + " ".join(f"{c:>18s}" for c in cells)
            + f"   {_ratio(results, name, ratios)} {rate}, {first.get('first_s', 0):.2f} s"
        )
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"compiled by the rival / by lamina: geometric mean {mean:.2f}, least {min(ratios):.2f}")
    return "\n".join(lines)


def _ratio(results: dict[str, Any], name: str, ratios: list[float]) -> str:
    """The rival's compiled time over lamina's, also kept in ``ratios``; empty when one is missing, and for ceilings."""
    found = results.get(f"{name}|lamina compiled", {})
    own = None if found.get("ceiling") else found.get("us")
    rival = next(
        (
            f["us"]
            for k, f in results.items()
            if k.endswith(" compiled") and k.startswith(f"{name}|") and "|lamina" not in k and "us" in f
        ),
        None,
    )
    if not own or not rival:
        return ""
    ratios.append(rival / own)
    return f"{ratios[-1]:.2f},"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="programs", choices=list(TABLES), help="which rows (default: programs)")
    parser.add_argument("--rows", default="", help="names or parts of names, with commas; all without")
    parser.add_argument("--rival", default="", help="torch: measured too")
    parser.add_argument("--autotune", action="store_true", help="both with their longest tuning, too")
    parser.add_argument("--untuned", default="", help="rows, or parts of names, that are not tuned")
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="no row of a library begins after so long; 0: all do"
    )
    parser.add_argument("--graphs", action="store_true", help="lamina's mode reduce-overhead, too")
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--no-eager", action="store_true", help="the rival is measured compiled only")
    parser.add_argument("--profile", action="store_true", help="a table of lamina's kernels for each row")
    parser.add_argument("--library", default="", help=argparse.SUPPRESS)
    parser.add_argument("--variants", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    parts = [p for p in arguments.rows.split(",") if p]
    names = [n for n in TABLES[arguments.table] if not parts or any(p in n for p in parts)]
    if arguments.library:
        print(json.dumps(run_rows(arguments.library, arguments.variants.split(","), names, arguments)))
        return
    tuned = ["autotune"] if arguments.autotune else []
    results = _process("lamina", ["compiled", *(["graphs"] if arguments.graphs else []), *tuned], arguments)
    if arguments.rival:
        eager = [] if arguments.no_eager else ["eager"]
        results |= _process(arguments.rival, ["compiled", *eager, *tuned], arguments)
    print(table(results, names))


def _process(library: str, variants: list[str], arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "--library", library, "--variants", ",".join(variants)]
    for name in ("table", "rows", "untuned", "seconds"):
        command += [f"--{name}", str(getattr(arguments, name))]
    result = subprocess.run(
        command + [f"--{name.replace('_', '-')}" for name in ("no_check", "profile") if getattr(arguments, name)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=dict(os.environ, LAMINA_CACHE_DIR=tempfile.mkdtemp()),  # first calls compile
    )
    return json.loads(result.stdout.strip().splitlines()[-1]) if result.stdout.strip() else {}


if __name__ == "__main__":
    main()
