"""One HTML page, no server and no network, of everything that was compiled: graphs at each stage, kernels, sources.

With ``measure`` each generated program is also compiled with clocks between its steps and run on made-up inputs, so
that the page says where a call's time goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from lamina_fx import Graph, TensorSpec, print_graph

from .records import GraphRecord, events, records
from .summary import summary

__all__ = ["write_report"]

_STYLE = """
:root{--ink:#1c2330;--dim:#68707d;--line:#e3e6ea;--back:#f6f7f9;--bar:#4a7fd6;--bar2:#e0a13c}
*{box-sizing:border-box}body{font:14px/1.5 system-ui,-apple-system,sans-serif;margin:0 auto;max-width:82rem;
color:var(--ink);padding:2rem 1.5rem}
h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2.6rem 0 .4rem;padding-bottom:.3rem;
border-bottom:2px solid var(--line)}h3{font-size:1rem;margin:1.4rem 0 .3rem}.dim{color:var(--dim)}
.tiles{display:flex;flex-wrap:wrap;gap:.7rem;margin:1rem 0}.tile{background:var(--back);border:1px solid var(--line);
border-radius:6px;padding:.5rem .9rem;min-width:7rem}.tile b{display:block;font-size:1.25rem;font-weight:600}
.tile span{color:var(--dim);font-size:.82rem}table{border-collapse:collapse;margin:.4rem 0;width:100%}
td,th{padding:.28rem .6rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th{font-size:.8rem;color:var(--dim);font-weight:600;white-space:nowrap}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}
code,pre{font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,monospace}
pre{background:var(--back);border:1px solid var(--line);border-radius:6px;padding:.7rem;overflow:auto;max-height:34rem}
.chip{display:inline-block;background:#eaf0fa;border-radius:3px;padding:0 .35rem;margin:0 .2rem .15rem 0;font:12px/1.5
ui-monospace,monospace}.chip i{font-style:normal;color:var(--dim)}summary{cursor:pointer;padding:.2rem 0}
details[open]>summary{font-weight:600}.bar{background:var(--bar);height:.7rem;border-radius:2px;min-width:1px}
.bar.p{background:var(--bar2)}td.w{width:22%}.note{background:#fff6e0;border:1px solid #eedcae;border-radius:6px;
padding:.4rem .8rem;margin:.4rem 0}nav a{margin-right:1rem}
"""


def write_report(
    path: str | Path, chosen: Iterable[GraphRecord] | None = None, *, measure: bool = False, rounds: int = 3
) -> Path:
    """Write the page; returns its path.

    Args:
        path: the file.
        chosen: records to show; every record kept by default.
        measure: also time each program's steps (compiles and runs it once more; fixed sizes only).
        rounds: calls per measured program.
    """
    shown = list(records() if chosen is None else chosen)
    told = summary()
    seconds = sum(record.seconds.get("total", 0.0) for record in shown)
    counts = ((told.graphs, "graph"), (told.breaks, "break"), (told.recompiles, "recompile"), (told.kernels, "kernel"))
    tiles: list[tuple[object, str]] = [(number, word if number == 1 else f"{word}s") for number, word in counts]
    tiles += [(f"{seconds:.2f} s", "behind capture, all graphs")]
    links = "".join(f"<a href='#{escape(r.name)}'>{escape(r.title)}</a>" for r in shown)
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Lamina report</title>",
        f"<style>{_STYLE}</style><h1>Lamina report</h1>",
        "<p class='dim'>What was captured, what it became, and the kernels that run.</p>",
        _tiles(tiles),
        f"<nav>{links}</nav>",
    ]
    parts += [f"<p class='note'>graph break: {escape(reason)}</p>" for reason in dict.fromkeys(told.break_reasons)]
    for event in events():
        parts += [
            f"<p class='note'>{escape(event.function)} was compiled again: {escape(reason)}</p>"
            for reason in event.recompile_reasons[:3]
        ]
    parts += [_record(record, measure, rounds) for record in shown]
    target = Path(path)
    target.write_text("\n".join(parts), encoding="utf-8")
    return target


def _tiles(tiles: Iterable[tuple[object, str]]) -> str:
    cells = "".join(f"<div class='tile'><b>{value}</b><span>{escape(label)}</span></div>" for value, label in tiles)
    return f"<div class='tiles'>{cells}</div>"


def _record(record: GraphRecord, measure: bool, rounds: int) -> str:
    parts = [f"<h2 id='{escape(record.name)}'>{escape(record.title)}</h2>"]
    spent = sorted(record.seconds.items(), key=lambda item: item[0] == "total")  # the sum comes last
    parts.append(_tiles((f"{value * 1e3:.0f} ms", name) for name, value in spent))
    parts.append("<h3>Stages</h3>")
    parts += [_graph(stage, graph) for stage, graph in record.stages.items()]
    for part, artifact in record.artifacts.items():
        graph = record.stages.get(f"prims:{part}")
        measured = _measure(part, graph, artifact, rounds) if measure and graph is not None else None
        parts.append(_kernels(part, getattr(artifact, "kernels", ()), measured))
        if measured is not None:
            parts.append(_steps(part, *measured))
        source = getattr(artifact, "source", None)
        if source:
            parts.append(_fold(f"C++ of {part}: {source.count(chr(10))} lines", source))
    return "\n".join(parts)


_TITLES = {
    "captured": "captured graph, in the words of the program",
    "joint": "joint graph: with the derivatives, functional",
    "forward": "forward half",
    "backward": "backward half",
}


def _graph(stage: str, graph: Graph) -> str:
    kind, _, part = stage.partition(":")
    title = f"primitives of {part}, as the backend gets them" if kind == "prims" else _TITLES.get(stage, stage)
    return _fold(f"{title}: {len(graph.nodes):,} nodes", print_graph(graph, strict=False))


def _measure(part: str, graph: Graph, artifact: Any, rounds: int) -> tuple[Any, Sequence[Any]] | None:
    """The program and the times of its steps; None where the backend is another, sizes are symbolic, or the record
    keeps no values of a constant."""
    from lamina_inductor import CppBackend  # the code generator is loaded when something is compiled
    from lamina_inductor.artifact import Artifact
    from lamina_inductor.inspect.timing import time_steps

    if not isinstance(artifact, Artifact) or any(isinstance(v, TensorSpec) for v in graph.attributes.values()):
        return None
    program = CppBackend().program(graph, name=part)
    return None if program.sizes else (program, time_steps(program, rounds=rounds))


def _kernels(part: str, kernels: Iterable[Any], measured: tuple[Any, Sequence[Any]] | None) -> str:
    spent: dict[str, float] = {}
    calls: dict[str, int] = {}
    for step in measured[1] if measured else ():
        for name in step.kernels:
            spent[name] = spent.get(name, 0.0) + step.seconds
            calls[name] = calls.get(name, 0) + 1
    rows = []
    for kernel in kernels:
        cells = [f"<td><code>{escape(kernel.name)}</code></td><td class='dim'>{escape(kernel.note)}</td>"]
        if measured:
            cells.append(f"<td class='n'>{calls.get(kernel.name, 0)}</td>")
            cells.append(f"<td class='n'>{spent.get(kernel.name, 0.0) * 1e3:.3f}</td>")
        cells.append(f"<td>{_fused(kernel.origins)}{_lines(kernel.origins)}{_fold('code', kernel.source)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    if not rows:
        return ""
    extra = "<th class='n'>steps</th><th class='n'>ms</th>" if measured else ""
    head = f"<tr><th>kernel</th><th>kind</th>{extra}<th>fused operators, and the lines they come from</th></tr>"
    return f"<h3>Kernels of {escape(part)}: {len(rows)}</h3><table>{head}{''.join(rows)}</table>"


def _fused(origins: Iterable[tuple[str, str, str]]) -> str:
    counts: dict[str, int] = {}
    for _, operator, _ in origins:
        counts[operator] = counts.get(operator, 0) + 1
    times = {operator: f" <i>x{count}</i>" if count > 1 else "" for operator, count in counts.items()}
    return "".join(f"<span class='chip'>{escape(operator)}{times[operator]}</span>" for operator in counts)


def _lines(origins: Iterable[tuple[str, str, str]]) -> str:
    found = sorted({line for _, _, line in origins if line})
    short = ["/".join(line.split("/")[-2:]) for line in found]
    more = f" and {len(short) - 6} more" if len(short) > 6 else ""
    return f"<div class='dim'>{escape(', '.join(short[:6]))}{more}</div>" if short else ""


def _steps(part: str, program: Any, times: Sequence[Any]) -> str:
    total = sum(t.seconds for t in times) or 1e-9
    longest = max((t.seconds for t in times), default=0.0) or 1e-9
    flops = sum(t.flops for t in times)
    held = {kind: _bytes_of(program, kind) for kind in ("input", "output")}
    tiles = [(f"{total * 1e3:.2f} ms", "a call, least of the rounds"), (len(times), "steps")]
    tiles += [(f"{flops / total / 1e9:.0f} Gflop/s", "products, over the whole call")]
    tiles += [(f"{program.workspace / 1e6:.1f} MB", "workspace, one for all temporaries")]
    tiles += [(f"{held[kind] / 1e6:.1f} MB", f"{kind}s") for kind in held]
    rows = []
    for t in sorted(times, key=lambda t: -t.seconds)[:40]:
        what = t.kind + (f", then {', '.join(t.kernels)}" if t.kind.startswith("product") and t.kernels else "")
        what = ", ".join(t.kernels[:4]) if t.kind == "launch" else what
        bar = f"<div class='bar{' p' if t.flops else ''}' style='width:{100 * t.seconds / longest:.1f}%'></div>"
        speed = f"{t.gigaflops:.0f}" if t.flops else ""
        figures = (f"{t.index}", f"{t.seconds * 1e3:.3f}", f"{t.bytes / 1e6:.2f}")
        figures += (f"{t.gigabytes_per_second:.1f}", speed)
        cells = "".join(f"<td class='n'>{figure}</td>" for figure in figures)
        rows.append(f"<tr>{cells}<td class='w'>{bar}</td><td><code>{escape(what)}</code></td></tr>")
    names = ("step", "ms", "MB", "GB/s", "Gflop/s")
    head = "".join(f"<th class='n'>{name}</th>" for name in names) + "<th></th><th>what runs</th>"
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>"
    return f"<h3>Where a call of {escape(part)} spends its time</h3>{_tiles(tiles)}{table}"


def _bytes_of(program: Any, storage: str) -> int:
    total = 0
    for buffer in program.buffers.values():
        if buffer.storage == storage:
            count = buffer.dtype.itemsize
            for size in buffer.shape:
                count *= int(size)
            total += count
    return total


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>" if text else ""
