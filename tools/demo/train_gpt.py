"""The demo: train a character-level GPT on the text of the machine's Python library, eager and compiled.

The first steps run both ways from the same seed and are compared; then the compiled step, which is one graph with
forward, backward and AdamW, goes on. Writes report.html.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from gpt import GPT, GPTConfig
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import lamina

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = Console()


def main() -> int:
    """Run the demo; returns 0 when eager and compiled agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", type=int, default=50, help="steps run both ways")
    parser.add_argument("--steps", type=int, default=300, help="compiled steps after that")
    parser.add_argument("--report", type=Path, default=ROOT / "report.html")
    options = parser.parse_args()
    text = library_text(1 << 20)
    vocabulary = sorted(set(text))
    lookup = {c: k for k, c in enumerate(vocabulary)}
    data = np.fromiter((lookup[c] for c in text), np.int64, len(text))
    config = GPTConfig(vocabulary=len(vocabulary))
    CONSOLE.print(f"text: {len(text):,} characters, {len(vocabulary)} different ones; {config}")
    CONSOLE.print(
        f"{options.compare} steps eager, the same {options.compare} compiled, then {options.steps} more compiled: "
        "with the default numbers about a minute on two cores"
    )

    begin = time.perf_counter()
    eager_losses, eager_rate, _ = train(config, data, options.compare, compiled=False)
    lamina.compiler.clear_records()
    losses, rate, state = train(config, data, options.compare, compiled=True)
    difference = max(abs(a - b) for a, b in zip(eager_losses, losses, strict=True))
    CONSOLE.print(f"largest difference of the {options.compare} losses, eager and compiled: {difference:.2e}")
    more, rate, _ = train(config, data, options.steps, compiled=True, state=state)
    last = more[-10:] or losses[-10:]
    CONSOLE.print(
        f"loss, compiled: {losses[0]:.3f} in the first step, {losses[-1]:.3f} in step {len(losses)}, "
        f"{np.mean(last):.3f} in the last {len(last)} steps (mean; {len(losses) + len(more)} steps in all)"
    )
    summary(eager_rate, rate, state)
    sample(state["model"], vocabulary)
    lamina.compiler.write_report(options.report, lamina.compiler.records()[:2], measure=True)
    CONSOLE.print(f"report: {options.report}; the demo took {time.perf_counter() - begin:.0f} s")
    return 0 if difference < 1e-2 else 1


def library_text(limit: int) -> str:
    """Python's own standard library, as far as it is plain ASCII."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    parts: list[str] = []
    size = 0
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="ignore")
        if text.isascii():
            parts.append(text)
            size += len(text)
        if size >= limit:
            break
    return "".join(parts)[:limit]


def make_state(config: GPTConfig, compiled: bool) -> dict[str, Any]:
    """Model, optimizer and the step function, from seed 0."""
    lamina.manual_seed(0)
    model = GPT(config)
    optimizer = lamina.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

    def step(x: Any, y: Any) -> Any:
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    run = lamina.compile(step) if compiled else step
    return {"model": model, "run": run, "rng": np.random.default_rng(0), "first": []}


def train(
    config: GPTConfig, data: np.ndarray, steps: int, *, compiled: bool, state: dict[str, Any] | None = None
) -> tuple[list[float], float, dict[str, Any]]:
    """Run steps; returns the losses, steps per second (the first two are left out) and the state."""
    state = state or make_state(config, compiled)
    losses: list[float] = []
    times: list[float] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("loss {task.fields[loss]}"))
    with Progress(*columns, TimeRemainingColumn(), console=CONSOLE) as progress:
        title = "compiled" if compiled else "eager"
        task = progress.add_task(title, total=steps, loss="")
        for _ in range(steps):
            at = state["rng"].integers(0, len(data) - config.context - 1, config.batch)
            window = np.stack([data[k : k + config.context + 1] for k in at])
            x, y = lamina.from_numpy(window[:, :-1].copy()), lamina.from_numpy(window[:, 1:].copy())
            start = time.perf_counter()
            loss = state["run"](x, y)
            times.append(time.perf_counter() - start)
            state["first"].append(times[-1])
            losses.append(float(loss))
            progress.update(task, advance=1, loss=f"{losses[-1]:.3f}")
            if not CONSOLE.is_terminal and len(losses) % max(1, steps // 5) == 0:  # no bar there: a line now and then
                CONSOLE.print(f"{title}: step {len(losses)} of {steps}, loss {losses[-1]:.3f}")
    rate = 1.0 / float(np.median(times[2:])) if len(times) > 2 else float("nan")
    return losses, rate, state


def summary(eager_rate: float, rate: float, state: dict[str, Any]) -> None:
    """Print what was compiled and how fast it runs."""
    told = lamina.compiler.summary()
    CONSOLE.print(f"steps per second: eager {eager_rate:.2f}, compiled {rate:.2f} ({rate / eager_rate:.2f}x)")
    first, second = state["first"][:2]
    again = (
        f"; a second graph, in the second call, {second:.1f} s" if told.graphs > 1 else f", the second {second:.2f} s"
    )
    CONSOLE.print(f"first call, with capture, derivatives, code generation and the C++ compiler: {first:.1f} s{again}")
    CONSOLE.print(str(told), markup=False, highlight=False)
    for record in lamina.compiler.records():
        CONSOLE.print(
            f"  {record.name}: {len(record.stages['captured'].nodes)} operators, {len(record.kernels)} kernels"
        )
    if told.graphs > 1:
        CONSOLE.print("  two graphs: in the first step the parameters have no gradients or optimizer's state yet")


def sample(model: Any, vocabulary: list[str], length: int = 300) -> None:
    """Print text that the model makes."""
    model.eval()
    config = model.config
    tokens = [vocabulary.index("\n")]
    with lamina.no_grad():
        for _ in range(length):
            window = tokens[-config.context :]
            logits = model(lamina.tensor([window]))
            chances = lamina.softmax(logits[0, -1] / 0.8, dim=-1)
            tokens.append(int(lamina.multinomial(chances, 1).item()))
    CONSOLE.rule("sample")
    CONSOLE.print("".join(vocabulary[t] for t in tokens), markup=False, highlight=False)
    CONSOLE.rule()


if __name__ == "__main__":
    sys.exit(main())
