"""The command ``lamina``: look at the machine and at the cache."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys

from rich.console import Console
from rich.table import Table

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

    table = Table(show_header=False, box=None)
    table.add_row("python", f"{platform.python_version()} ({sys.executable})")
    for name in _PACKAGES:
        table.add_row(f"lamina-{name}", importlib.import_module(f"lamina_{name}").__version__)
    found = toolchain()
    table.add_row("compiler", "none found: compiled functions run interpreted" if found is None else str(found))
    table.add_row("cores", str(os.cpu_count()))
    table.add_row("cache", str(cache_info()))
    Console().print(table)
    return 1 if found is None else 0


def cache_command(action: str) -> int:
    """Show or empty the cache."""
    from lamina_inductor import cache_info, clear_cache  # loaded only for this command

    if action == "clear":
        clear_cache()
    Console().print(str(cache_info()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
