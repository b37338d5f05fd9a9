"""How the results of a traced program are made from what its graph returns.

Results that share memory with an input, or with each other, share it again after a compiled call: such a result is
described by the view steps from the input, or from the root of the memory, which the graph returns once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lamina_fx import Node
from lamina_tensor import Tensor, is_inference_mode_enabled

from .joint import OutputInfo

__all__ = ["describe_outputs", "is_alive"]


def describe_outputs(
    tracer: Any, returned: Sequence[Any], inputs: Sequence[Any], result: Callable[[Node], int]
) -> list[OutputInfo]:
    """One description per returned value, then the roots of memory that several of them share.

    ``result(node)`` makes a node a result of the graph and returns its index.
    """
    infos: list[OutputInfo | None] = [_of_inputs(value, inputs) for value in returned]
    groups: dict[int, list[int]] = {}
    for position, (value, info) in enumerate(zip(returned, infos, strict=True)):
        if info is None:
            groups.setdefault(id(value.storage), []).append(position)
    roots: list[OutputInfo] = []
    for positions in groups.values():
        members = [returned[p] for p in positions]
        root = _root(tracer, members)
        if root is None:
            described = [_plain(tracer, member, result) for member in members]
        else:
            described, hidden = _aliases(tracer, root, members, result)
            roots += hidden
        for position, info in zip(positions, described, strict=True):
            infos[position] = info
    made = zip(returned, [info for info in infos if info is not None], strict=True)
    return [_marked(value, info) for value, info in made] + roots


def _marked(value: Any, info: OutputInfo) -> OutputInfo:
    """The description of a result that was made in an inference mode of the program's own."""
    if info.kind in ("constant", "input") or is_inference_mode_enabled() or not value.is_inference():
        return info
    return replace(info, inference=True)


def _of_inputs(value: Any, inputs: Sequence[Any]) -> OutputInfo | None:
    """A result that is no tensor, an input, or a view of one; None for others."""
    if not isinstance(value, Tensor):
        return OutputInfo("constant", value=value)
    for index, given in enumerate(inputs):
        if given is value:
            return OutputInfo("input", index)
    for index, given in enumerate(inputs):
        if isinstance(given, Tensor) and given.storage is value.storage:
            return OutputInfo("view", index, steps=value._chain or (), tracked=value.requires_grad)
    return None


def _plain(tracer: Any, value: Any, result: Callable[[Node], int]) -> OutputInfo:
    return OutputInfo("value", result(tracer.value_in_memory(value)), value=value, requires_grad=is_alive(value))


def is_alive(value: Any) -> bool:
    """Can it be differentiated: a backward inside the program has used up no part of its history."""
    if not value.requires_grad:
        return False
    ahead = [value.grad_fn]
    seen: set[int] = set()
    while ahead:
        node = ahead.pop()
        if node is None or id(node) in seen:
            continue
        if node.released:
            return False
        seen.add(id(node))
        ahead += [edge[0] for edge in node.edges if type(edge) is tuple]
    return True


def _root(tracer: Any, members: list[Any]) -> Any:
    """The tensor over the whole memory of these members, with their gradient history; None where there is none."""
    if len(members) < 2:
        return None
    tracked = [m for m in members if m.requires_grad]
    if not tracked:
        return tracer.root(members[0])
    bases = {id(base): base for base in (m._base if m._chain else m for m in tracked)}
    [root, *others] = bases.values()
    return None if others or root is None or root._chain else root


def _aliases(
    tracer: Any, root: Any, members: list[Any], result: Callable[[Node], int]
) -> tuple[list[OutputInfo], list[OutputInfo]]:
    """Descriptions of the members, and that of the root where it is no member."""
    whole = _plain(tracer, root, result)
    described = []
    shown = False
    for member in members:
        if not shown and (member is root or not (root.requires_grad or member._chain)):
            described.append(whole)
            shown = True
        else:
            tracked = member.requires_grad and whole.requires_grad
            described.append(OutputInfo("alias", whole.index, steps=member._chain or (), tracked=tracked))
    return described, [] if shown else [replace(whole, kind="root")]
