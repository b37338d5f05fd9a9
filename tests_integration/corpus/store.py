"""Store the graphs of a few programs, at each level, under the present versions of the interfaces.

    python tests_integration/corpus/store.py

Files that exist are left alone: what was once written must stay readable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lamina
import lamina.nn.functional as F
import lamina_fx
from lamina_fx import parse, print_graph, to_json

HERE = Path(__file__).parent


def mlp(x: Any, w: Any, b: Any) -> Any:
    """A product with a fused epilogue."""
    return F.gelu(x @ w + b)


def normalised(x: Any, w: Any) -> Any:
    """Reductions along rows, and a slice."""
    y = F.layer_norm(x, (x.shape[-1],), w)
    return F.softmax(y[:, 1:], dim=-1), y.amax(0)


def loss(x: Any, y: Any) -> Any:
    """Indexing by data."""
    return F.cross_entropy(x, y, label_smoothing=0.1)


def written(x: Any, y: Any) -> Any:
    """Writes to an input, through a view."""
    x[0].mul_(y)
    return x.sum()


PROGRAMS: dict[str, tuple[Any, Any]] = {
    "mlp": (mlp, lambda: (lamina.ones(4, 3), lamina.ones(3, 5).requires_grad_(), lamina.ones(5))),
    "normalised": (normalised, lambda: (lamina.ones(4, 6), lamina.ones(6).requires_grad_())),
    "loss": (loss, lambda: (lamina.ones(4, 7).requires_grad_(), lamina.tensor([0, 3, 6, 2]))),
    "written": (written, lambda: (lamina.ones(3, 4), lamina.ones(4))),
}


def main() -> None:
    """Compile each program and write the graphs of its stages."""
    version = lamina_fx.PROVIDES["graph"]
    for name, (function, make) in PROGRAMS.items():
        lamina.compiler.reset()
        result = lamina.compile(function, backend="reference")(*make())
        first = result[0] if isinstance(result, tuple) else result
        if first.requires_grad:
            first.sum().backward()
        (record,) = lamina.compiler.records()
        for stage, graph in record.stages.items():
            part = stage.replace(record.name, "forward").replace("forward_backward", "backward").replace(":", "-")
            path = HERE / f"v{version}-{name}-{part}.graph"
            if not path.exists():
                text = print_graph(graph, sources=False)
                path.write_text(text + "\n")
                path.with_suffix(".json").write_text(to_json(parse(text)))


if __name__ == "__main__":
    main()
