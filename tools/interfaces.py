"""Dump the interfaces between the layers to text, and compare them with the files that are kept.

    python tools/interfaces.py --check     fail when a dump differs from its file
    python tools/interfaces.py --update    write the files

Each interface has an owner and an integer version; the file is packages/<owner>/interfaces/<name>-v<N>.txt. A
difference means: bump the version (once one is released), or update the file (while it is 0).
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from dev import ROOT


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    status = 0
    for (owner, name), dump in DUMPS.items():
        path, text = path_of(owner, name), dump()
        if options.update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            status = 1
            print(differences(path, text))
    return status


def path_of(owner: str, name: str) -> Path:
    """The file that holds the dump of the owner's current version."""
    version = importlib.import_module(owner.replace("-", "_")).PROVIDES[name]
    return ROOT / "packages" / owner / "interfaces" / f"{name}-v{version}.txt"


def differences(path: Path, text: str) -> str:
    """A readable diff of a file and what the code says now."""
    old = path.read_text().splitlines() if path.exists() else []
    lines = difflib.unified_diff(old, text.splitlines(), str(path.relative_to(ROOT)), "the code", lineterm="")
    return "\n".join([*lines, "run: python tools/interfaces.py --update (and bump the version once it is released)"])


def dump_graph() -> str:
    """Node kinds, node fields, and the grammar of the text form."""
    import lamina_fx
    from lamina_fx import text

    fields = sorted(n for n in dir(lamina_fx.Node) if not n.startswith("_"))
    parts = ["node kinds: " + ", ".join(lamina_fx.node.KINDS), "node fields: " + ", ".join(fields)]
    return "\n".join(parts) + "\n\n" + inspect.getdoc(text) + "\n"


def dump_tensor_abi() -> str:
    """The C header."""
    import lamina_fx

    return (Path(lamina_fx.get_include()) / "lamina" / "tensor_abi.h").read_text()


def dump_primset() -> str:
    """Schemas of the primitives."""
    import lamina_prims

    found = [op for op in lamina_prims.operators().values() if op.is_primitive]
    lines = [f"{op.schema}{' !' + op.effect if op.effect else ''}" for op in found]
    return "\n".join(sorted(lines)) + "\n"


def dump_captured() -> str:
    """The captured graph and the Frontend protocol."""
    from lamina_dynamo.frontend import Frontend
    from lamina_dynamo.output import CapturedGraph

    return signatures(CapturedGraph, Frontend)


def dump_joint() -> str:
    """The joint graph and its parts."""
    from lamina_aot import GradUpdate, InputInfo, JointGraph, OutputInfo, Partition

    return signatures(JointGraph, InputInfo, OutputInfo, GradUpdate, Partition)


def dump_artifact() -> str:
    """What a backend provides."""
    from lamina_inductor import CppBackend
    from lamina_inductor.artifact import Artifact

    return signatures(CppBackend, Artifact)


def signatures(*classes: type) -> str:
    """Fields and public methods of classes."""
    lines = []
    for cls in classes:
        lines.append(f"class {cls.__name__}")
        lines += [f"    {name}: {kind}" for name, kind in inspect.get_annotations(cls).items() if name[0] != "_"]
        for name, member in sorted(vars(cls).items()):
            if inspect.isfunction(member) and (not name.startswith("_") or name == "__call__"):
                lines.append(f"    {name}{inspect.signature(member)}")
    return "\n".join(lines) + "\n"


DUMPS: dict[tuple[str, str], Callable[[], str]] = {
    ("lamina-fx", "graph"): dump_graph,
    ("lamina-fx", "tensor_abi"): dump_tensor_abi,
    ("lamina-prims", "primset"): dump_primset,
    ("lamina-dynamo", "captured"): dump_captured,
    ("lamina-aot", "joint"): dump_joint,
    ("lamina-inductor", "artifact"): dump_artifact,
}
"""(owner, interface) and what dumps it."""

if __name__ == "__main__":
    sys.exit(main())
