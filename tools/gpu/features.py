"""What a user does with ``device="cuda"``, one line each: ``python tools/gpu/features.py [--stub] [--only NAME ...]``.

Every feature is a function (of ``features_*.py``) that raises when something is wrong. On a GPU, CuPy and PyTorch
(where they are installed) are the other side of exchanges. ``--stub`` runs them on the stub device with two GPUs;
those that need what is not there say so and count as left out. The counts come last; the exit status is 1 when a
feature fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent)]

import features_devices  # noqa: E402, F401  (each adds to the list)
import features_operators  # noqa: E402, F401
import features_training  # noqa: E402, F401
from feature_list import FEATURES, LeftOut, raises  # noqa: E402

__all__ = ["FEATURES", "LeftOut", "raises", "run"]


def run(only: list[str]) -> tuple[int, int, int]:
    """Run them, a line each: how many were right, failed, left out."""
    right = failed = left = 0
    for name, function in FEATURES.items():
        if only and name not in only:
            continue
        start = time.perf_counter()
        try:
            said = function()
            right, text = right + 1, "right" + (f": {said}" if said else "")
        except LeftOut as error:
            left, text = left + 1, f"left out: needs {error}"
        except Exception as error:  # noqa: BLE001  (whatever goes wrong on the device is a finding)
            where = traceback.extract_tb(error.__traceback__)[-1]
            at = [f.lineno for f in traceback.extract_tb(error.__traceback__) if "feature" in f.filename]
            failed, text = (
                failed + 1,
                (
                    f"FAILED {type(error).__name__} line {at[-1] if at else '?'}, "
                    f"{Path(where.filename).name}:{where.lineno}: {' '.join(str(error).split())[:300]}"
                ),
            )
        print(f"{name:<28} {time.perf_counter() - start:6.2f} s  {text}", flush=True)
    return right, failed, left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stub", action="store_true", help="use the stub device")
    parser.add_argument("--only", nargs="*", default=[], help="names of features")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if importlib.util.find_spec("lamina_tensor") is None:  # not installed: from source
        sys.path[:0] = [str(ROOT / "packages" / f"lamina-{name}" / "src") for name in ("fx", "prims", "tensor")]
    if options.stub:
        os.environ["LAMINA_CUDA_PROVIDER"] = "stub"
        from lamina_tensor import cuda
        from lamina_tensor.cuda.stub_provider import StubProvider

        cuda.use_provider(StubProvider(devices=2, memory=1 << 28))
    start = time.perf_counter()
    right, failed, left = run(options.only)
    print(f"features: {right} right, {failed} failed, {left} left out, {time.perf_counter() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
