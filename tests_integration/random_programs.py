"""Random Python functions over tensors, grown statement by statement: what raises in eager is not kept.

``random_program(rng, number)`` gives a ``Program``: source text whose names carry the number, so that several
programs fit in one function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lamina

__all__ = ["Program", "join", "random_program"]

LIMIT = 100.0
"""Statements whose results grow beyond this are not kept, so that results can be compared."""

_UNARY = (
    "{a}.sin()", "{a}.cos()", "{a}.tanh()", "{a}.sigmoid()", "{a}.relu()", "{a}.abs()", "-{a}", "{a}.tanh().exp()",
    "{a}.square()", "{a} * {s}", "{a} + {s}", "{s} - {a}", "{a} / 3.0", "{a}.erf()", "{a}.clamp(-0.7, 0.8)",
    "lamina.nn.functional.gelu({a})", "lamina.nn.functional.silu({a})", "{a}.abs().sqrt()", "{a}.clone()",
    "{a}.detach()", "{a}.double()", "{a}.float()", "lamina.zeros_like({a})", "lamina.ones_like({a}) * {s}",
)  # fmt: skip
_BINARY = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "lamina.maximum({a}, {b})", "lamina.where({a} > {b}, {a}, {s})",
    "{a} / ({b}.abs() + 1.5)", "({a} < {b}).float()", "lamina.where({a} > 0.1, {b}, {a})",
)  # fmt: skip
_VIEW = (
    "{a}.t()", "{a}.transpose(0, -1)", "{a}.reshape(-1)", "{a}.unsqueeze(0)", "{a}.unsqueeze(-1)", "{a}[0]", "{a}[1:]",
    "{a}[..., ::2]", "{a}[:, -1]", "{a}.expand(3, *{a}.shape)",
    "{a}.chunk(2)[0]", "{a}.unbind(-1)[0]", "{a}.squeeze(0)",
    "{a}.flip(0)", "{a}.contiguous()", "{a}.view(-1)", "{a}.narrow(0, 0, 1)", "{a}.diagonal()", "{a}.movedim(0, -1)",
)  # fmt: skip
_REDUCE = (
    "{a}.sum()", "{a}.sum(0)", "{a}.sum(-1, keepdim=True)", "{a}.mean()", "{a}.mean(-1)", "{a}.amax(0)", "{a}.amin(-1)",
    "{a}.max(-1)[0]", "{a}.softmax(-1)", "{a}.softmax(0)", "{a}.cumsum(0)", "{a}.logsumexp(-1)", "{a}.var(0)",
    "{a}.cumsum(-1)", "{a}.flip(0).cumsum(0).flip(0)", "{a}.cummax(-1)[0]", "{a}.logcumsumexp(0)",
    "{a}.prod(-1)", "lamina.nn.functional.layer_norm({a}, {a}.shape[-1:])", "{a}.norm()", "{a}.log_softmax(-1)",
)  # fmt: skip
_MATMUL = ("{a} @ {b}", "{a} @ {a}.t()", "{a}.t() @ {b}", "{a} @ {b}.t()", "lamina.outer({a}, {b})")
_COMBINE = (
    "lamina.cat([{a}, {b}])", "lamina.stack([{a}, {b}], -1)", "lamina.cat([{a}, {a}], -1)",
    "lamina.nn.functional.pad({a}, (1, 2))", "{a}[lamina.tensor([0, -1, 0], device={a}.device)]",
    "{a}[{a} > 0.0].sum()", "lamina.index_select({a}, 0, lamina.tensor([0, 0], device={a}.device))",
    "{a}.gather(0, {a}.argmax(0, keepdim=True))",
    "{a}.tril()", "{a}.roll(1, 0)", "{a}.sort(-1)[0]", "{a}.topk(1)[0]", "{a}.masked_fill({b} > 0.2, {s})",
)  # fmt: skip
_INTEGER = (
    "({a} * 7).to(lamina.int32).float()", "(({a} * 9).to(lamina.int64) // 4 % 3).float()", "{a}.argmax(-1).float()",
    "(({a} * 50).to(lamina.int8) * 3).float()", "({a} > 0).sum(-1).float()", "(({a} > 0) & ({b} < 0)).any().float()",
    "lamina.arange({a}.shape[0], device={a}.device) * {a}.sum()",
    "lamina.nn.functional.one_hot(({a} > 0).long(), 2).float()",
)  # fmt: skip
_WRITE = (
    "{a}.add_({s})", "{a}.mul_({b})", "{a}.add_({b}, alpha=0.5)", "{a}[0] = {s}", "{a}[..., -1] = {b}.sum()",
    "{a}.clamp_(-0.5, 0.6)", "{a}.copy_({b})", "{a}.zero_()", "{a}.sub_({a} * 0.5)", "{a}[1:].mul_(2.0)",
    "{a}.t().sub_({s})", "{a}.fill_({s})", "{a} += {b}", "{a} *= {s}", "{a}.view(-1)[::2].add_({s})", "{a}.relu_()",
    "{a}.masked_fill_({a} > 0.3, {s})", "{a}.diagonal().add_({s})",
)  # fmt: skip
_KINDS = (
    (_UNARY, 4), (_BINARY, 4), (_VIEW, 4), (_REDUCE, 3), (_MATMUL, 2), (_COMBINE, 2), (_INTEGER, 1), (_WRITE, 4),
)  # fmt: skip


@dataclass
class Program:
    """``lines`` compute ``results`` from ``inputs`` (arrays; those in ``leaves`` are differentiated by)."""

    inputs: dict[str, np.ndarray[Any, Any]]
    leaves: frozenset[str]
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def tensors(self, device: str = "cpu") -> list[Any]:
        """Fresh inputs; those in ``leaves`` require a gradient."""
        return [lamina.tensor(v, device=device).requires_grad_(k in self.leaves) for k, v in self.inputs.items()]

    def __str__(self) -> str:
        return join([self])


def join(programs: list[Program]) -> str:
    """The source of one function ``program`` over all their inputs; it returns a tuple of results for each."""
    names = ", ".join(name for p in programs for name in p.inputs)
    body = "\n".join(f"    {line}" for p in programs for line in p.lines)
    results = ", ".join(f"({', '.join(p.results)},)" for p in programs)
    return f"def program({names}):\n{body}\n    return ({results},)\n"


def random_program(rng: np.random.Generator, number: int) -> Program:
    """A program of 3 to 12 statements that eager code runs without an error."""
    shapes = [tuple(int(n) for n in rng.choice((1, 2, 3, 5, 7), rng.integers(1, 4))) for _ in range(2)]
    square = int(rng.choice((2, 3, 5)))
    shapes += [shapes[0], (square, square), (square, square)]
    inputs = {f"x{number}_{k}": rng.uniform(-1, 1, shape).astype(np.float32) for k, shape in enumerate(shapes)}
    program = Program(inputs, frozenset(name for name in inputs if rng.random() < 0.6))
    wanted, tries = int(rng.integers(3, 13)), 0
    names = list(inputs)
    while len(program.lines) < wanted and tries < 200:
        tries += 1
        line, made = _statement(rng, names, number, len(program.lines))
        if _runs(program, line, made):
            program.lines.append(line)
            if made is not None:
                names.append(made)
    program.results = [n for n in names if n not in inputs][-4:] or names[:1]
    return program


def _statement(rng: np.random.Generator, names: list[str], number: int, place: int) -> tuple[str, str | None]:
    weights = np.array([w for _, w in _KINDS], float)
    templates = _KINDS[int(rng.choice(len(_KINDS), p=weights / weights.sum()))][0]
    template = templates[int(rng.integers(len(templates)))]
    late = [names[len(names) - 1 - min(int(rng.exponential(3.0)), len(names) - 1)] for _ in range(2)]
    text = template.format(a=late[0], b=late[1], s=round(float(rng.uniform(-1.5, 1.5)), 2))
    if templates is _WRITE:
        return text, None
    made = f"v{number}_{place}"
    return f"{made} = {text}", made


def _runs(program: Program, line: str, made: str | None) -> bool:
    """Does the program with this line at its end run in eager, with results of moderate size, and its backward."""
    space = dict(zip(program.inputs, program.tensors(), strict=True), lamina=lamina)
    try:
        exec("\n".join([*program.lines, line]), space)
        values = [v for v in space.values() if isinstance(v, lamina.Tensor)]
        if any(v.numel() and not bool((v.detach().abs() < LIMIT).all()) for v in values):
            return False
        roots = [v for v in values if v.requires_grad and not v.is_leaf]
        grads = []
        if roots:
            leaves = [v for v in values if v.requires_grad and v.is_leaf]
            grads = lamina.autograd.grad(sum(r.sum() for r in roots), leaves, allow_unused=True)
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        return False
    return all(g is None or bool((g.abs() < LIMIT * 10).all()) for g in grads)
