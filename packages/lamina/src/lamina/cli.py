"""The command ``lamina``: look at the machine and at the cache."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lamina_fx.cuda_messages import INSTALL, driver_problem

__all__ = ["main"]

_PACKAGES = ("fx", "prims", "tensor", "dynamo", "aot", "inductor")


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand; returns the exit status."""
    parser = argparse.ArgumentParser(prog="lamina", description="Lamina's compiler stack on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="versions, compiler, vector units, cache; status 1 when compiling cannot work")
    cache = commands.add_parser("cache", help="the disk cache of compiled graphs")
    cache.add_argument("action", choices=("info", "clear"))
    options = parser.parse_args(argv)
    return doctor() if options.command == "doctor" else cache_command(options.action)


def doctor() -> int:
    """Print what the stack finds here."""
    from lamina_inductor import cache_info, toolchain  # loaded only for this command

    found = toolchain()
    rows = [("python", f"{platform.python_version()} ({sys.executable})")]
    rows += [(f"lamina-{name}", importlib.import_module(f"lamina_{name}").__version__) for name in _PACKAGES]
    if found is None:
        rows.append(("compiler", "none found, so functions run interpreted: install g++ or clang++, or set LAMINA_CXX"))
    else:
        rows.append(("compiler", f"{found.path} ({found.version_line})"))
        rows.append(("vector math", "libmvec" if found.has_libmvec else "none (glibc 2.35 or later on x86-64 has it)"))
    rows.append(("vector units", _vector_units()))
    rows.append(("cores", str(os.cpu_count())))
    rows.append(("cache", str(cache_info())))
    _print_rows([*rows, *_gpu_rows()])
    return 1 if found is None else 0


def _vector_units() -> str:
    from lamina_inductor.backends.cpp.toolchain import cpu_flags  # as above

    wanted = ("avx512f", "avx2", "fma", "asimd")
    return ", ".join(name for name in wanted if name in cpu_flags()) or "unknown"


def _gpu_rows() -> list[tuple[str, str]]:
    """What GPU tensors and kernels need, asked of the driver and of the installed packages: nothing is imported."""
    from lamina_inductor import triton_version  # as above
    from lamina_tensor.cuda.availability import driver_state, library_version, missing

    wrong, version, count = driver_state()
    usable = "can be used" if missing() is None else "cannot be used"
    if os.environ.get("LAMINA_CUDA_PROVIDER") == "stub":
        usable = "a stub that runs eager code only (LAMINA_CUDA_PROVIDER=stub)"
    found = f"CUDA {version // 1000}.{version % 1000 // 10}, {count} {'GPU' if count == 1 else 'GPUs'}"
    return [
        ("GPU driver", driver_problem(wrong, version, count) or found),
        ("cupy", library_version() or f"not installed: {INSTALL}"),
        ("triton", triton_version() or f"not installed: {INSTALL}"),
        ("device cuda", usable),
    ]


def _print_rows(rows: list[tuple[str, str]]) -> None:
    table = Table(show_header=False, box=None)
    for name, value in rows:
        table.add_row(escape(name), escape(value))
    Console().print(table)


def cache_command(action: str) -> int:
    """Show or empty the cache."""
    from lamina_inductor import cache_info, clear_cache  # loaded only for this command

    if action == "clear":
        print(f"removed {clear_cache()}")
    else:
        print(cache_info())
    return 0


if __name__ == "__main__":
    sys.exit(main())
