"""Recurrent layers over packed sequences: the batch shrinks as the sequences end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..namespace import root
from ..tensor import Tensor
from . import functional as F
from .utils.rnn import PackedSequence

__all__ = ["run_packed"]

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], State]


def run_packed(module: Any, packed: PackedSequence, states: State) -> tuple[PackedSequence, State]:
    """All layers and directions of a recurrent module.

    ``states`` are (h,) or (h, c), each (layers * directions, B, hidden) in the order of the sequences that were
    packed; returns the packed outputs and the last states in that order.
    """
    if packed.sorted_indices is not None:
        states = tuple(s.index_select(1, packed.sorted_indices) for s in states)
    counts = packed.batch_sizes.tolist()
    x, finals = packed.data, []
    for layer in range(module.num_layers):
        steps, sides = list(x.split(counts, 0)), []
        for direction in range(module.directions):
            at = layer * module.directions + direction
            run = _backwards if direction else _forwards
            outs, final = run(module._packed_step(layer, direction), steps, tuple(s[at] for s in states))
            sides.append(root.cat(outs, 0))
            finals.append(final)
        x = sides[0] if len(sides) == 1 else root.cat(sides, -1)
        if module.dropout and layer < module.num_layers - 1:
            x = F.dropout(x, module.dropout, module.training)
    last = tuple(root.stack(list(column), 0) for column in zip(*finals, strict=True))
    if packed.unsorted_indices is not None:
        last = tuple(s.index_select(1, packed.unsorted_indices) for s in last)
    return packed._replace(data=x), last


def _forwards(step: Step, steps: list[Tensor], state: State) -> tuple[list[Tensor], State]:
    outs, ended = [], []
    for x in steps:
        rows = x.shape[0]
        if rows < state[0].shape[0]:  # sequences have ended: their states are final
            ended.append(tuple(s[rows:] for s in state))
            state = tuple(s[:rows] for s in state)
        state = step(x, state)
        outs.append(state[0])
    ended.append(state)
    return outs, tuple(root.cat(list(column), 0) for column in zip(*ended[::-1], strict=True))


def _backwards(step: Step, steps: list[Tensor], first: State) -> tuple[list[Tensor], State]:
    outs: list[Tensor] = []
    state: State | None = None
    for x in reversed(steps):
        rows = x.shape[0]
        if state is None:
            state = tuple(s[:rows] for s in first)
        elif rows > state[0].shape[0]:  # sequences that end here start here
            begun = state[0].shape[0]
            state = tuple(root.cat([s, f[begun:rows]], 0) for s, f in zip(state, first, strict=True))
        state = step(x, state)
        outs.append(state[0])
    assert state is not None
    return outs[::-1], state
