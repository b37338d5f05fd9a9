"""One HTML page, no server and no network, of everything that was compiled: graphs at each stage, kernels, sources."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from lamina_fx import Graph, print_graph

from .records import GraphRecord, records
from .summary import summary

__all__ = ["write_report"]

_STYLE = """
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;color:#222;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #ccc}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #eee}
td.n{text-align:right;font-variant-numeric:tabular-nums}
pre{background:#f6f6f4;padding:.7rem;overflow:auto;max-height:32rem;font:12px/1.4 ui-monospace,monospace}
summary{cursor:pointer;padding:.2rem 0}details{margin-left:.5rem}.dim{color:#777}
"""


def write_report(path: str | Path, chosen: Iterable[GraphRecord] | None = None) -> Path:
    """Write the page; returns its path. ``chosen`` defaults to every record kept."""
    shown = list(records() if chosen is None else chosen)
    told = summary()
    parts = [
        "<!doctype html><meta charset='utf-8'><title>Lamina report</title>",
        f"<style>{_STYLE}</style><h1>Lamina report</h1>",
        f"<p>{told.graphs} graphs, {told.breaks} breaks, {told.recompiles} recompiles, {told.kernels} kernels</p>",
    ]
    parts += [f"<p class='dim'>break: {escape(reason)}</p>" for reason in told.break_reasons]
    parts += [_record(record) for record in shown]
    target = Path(path)
    target.write_text("\n".join(parts), encoding="utf-8")
    return target


def _record(record: GraphRecord) -> str:
    seconds = ", ".join(f"{name} {value * 1e3:.0f} ms" for name, value in record.seconds.items())
    parts = [f"<h2>{escape(record.name)}</h2><p class='dim'>{escape(seconds)}</p>"]
    parts += [_graph(stage, graph) for stage, graph in record.stages.items()]
    for part, artifact in record.artifacts.items():
        parts.append(_kernels(part, getattr(artifact, "kernels", ())))
        source = getattr(artifact, "source", None)
        if source:
            parts.append(_fold(f"source of {part}", source))
    return "\n".join(parts)


def _graph(stage: str, graph: Graph) -> str:
    return _fold(f"{stage}: {len(graph.nodes)} nodes", print_graph(graph, strict=False))


def _kernels(part: str, kernels: Iterable[Any]) -> str:
    rows = []
    for kernel in kernels:
        fused = ", ".join(operator for _, operator, _ in kernel.origins)
        lines = sorted({line for _, _, line in kernel.origins if line})
        where = "<br>".join(escape("/".join(line.split("/")[-2:])) for line in lines)
        cells = (escape(kernel.name), escape(kernel.note), escape(fused), where, _fold("code", kernel.source))
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    if not rows:
        return ""
    head = "<tr><th>kernel</th><th>kind</th><th>fused operators</th><th>lines</th><th></th></tr>"
    return f"<p>Kernels of {escape(part)}:</p><table>{head}{''.join(rows)}</table>"


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>" if text else ""
