"""The order of steps: what is ready, nearest to its place in the program; kernels that end in write-backs go last,
together."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from ..ir.kernel import BindIndex, walk
from ..ir.loops import Value
from ..ir.program import Attention, AttentionBackward, Buffer, CopyBuffer, Gemm, HostCall, KernelCall, Launch, Operand
from ..memory.plan import Lifetime, plan_workspace
from .groups import Group
from .kernels import BuiltKernel
from .share import KernelPool, with_size_parameter
from .trace import numel, same_size

__all__ = ["StepList", "order_steps", "readers_of"]

SMALL_BYTES = 1 << 18
"""Kernels that move less than this are merged with independent neighbours into one launch."""

TINY = 64
"""Elements of a value that may be computed at any time: keeping it costs nothing."""


def order_steps(fusion: Any, conversions_first: bool = False) -> tuple[list[Any], dict[int, list[Group]]]:
    """Groups and external steps so that everything comes after what it reads, and a kernel that only updates inputs
    after their readers.

    Such kernels (optimizer updates) go last, side by side, so that equal ones share a launch; but one that can be the
    epilogue of a product follows it, which frees what the product read. ``conversions_first``: inputs that are kept
    for the backward in another dtype are converted at the start, together. Returns the order and, per number, the
    kernels that overwrite an input that this one reads.
    """
    items = [*fusion.groups, *fusion.steps]
    early = {g.number for g in fusion.groups if _converts_for_backward(g)} if conversions_first else set()
    sinks = {g.number: g for g in fusion.groups if not g.consumers and _writes_back(fusion, g)}
    after = _readers_before_writers(fusion, sinks)
    waiting = {item.number: len(item.producers) for item in items}
    for followers in after.values():
        for follower in followers:
            waiting[follower.number] += 1
    ready: list[tuple[Any, int, Any]] = []
    for item in items:
        if not waiting[item.number]:
            heappush(ready, (_rank(item, sinks, early), item.number, item))
    result = []
    while ready:
        _, _, item = heappop(ready)
        result.append(item)
        for consumer in (*item.consumers.values(), *after.get(item.number, ())):
            waiting[consumer.number] -= 1
            if not waiting[consumer.number]:
                heappush(ready, (_rank(consumer, sinks, early), consumer.number, consumer))
    if len(result) != len(items):
        raise AssertionError("the kernels depend on each other in a circle")
    return result, after


def _converts_for_backward(group: Group) -> bool:
    """Does it no more than convert inputs, for steps of the backward among others?"""
    if group.inner or any(m.op != "convert_element_type" or m.inputs[0].kind != "buffer" for m in group.members):
        return False
    return any(type(c) is not Group and c.value.backward for c in group.consumers.values())


def _rank(item: Any, sinks: dict[int, Group], early: set[int]) -> tuple[int, float]:
    """A kernel's place is that of the first value it stores: an update that was fused behind it may stand far later.
    Tiny ones (an optimizer's corrections) go as soon as they can: large ones that wait for them keep their place then.
    """
    order = min(v.order for v in item.stored) if type(item) is Group else item.value.order
    if item.number in early:
        return (-1, order)
    if item.number not in sinks:
        tiny = type(item) is Group and all(_is_tiny(v) for v in item.stored)
        return (-1 if tiny else 0), order
    size = numel(item.sizes)
    products = [p.value for p in item.producers.values() if type(p) is not Group]
    same = [v.order for v in products if same_size(numel(v.shape), size)]
    return (0, max(same) + 0.5) if same else (1, order)


def _is_tiny(value: Any) -> bool:
    count = numel(value.shape)
    return type(count) is int and count <= TINY


def _writes_back(fusion: Any, group: Group) -> bool:
    written = fusion.written()
    return all(v in written for v in group.stored)


def readers_of(fusion: Any) -> dict[Any, list[Any]]:
    """Value in memory -> groups and steps that read it."""
    readers: dict[Any, list[Any]] = {}
    for group in fusion.groups:
        for source in group.sources:
            readers.setdefault(source, []).append(group)
    for (value, _), root in fusion.roots.items():
        readers.setdefault(root, []).append(fusion.where[value])
    for step in fusion.steps:
        for source in step.sources:
            readers.setdefault(source, []).append(step)
    return readers


def _readers_before_writers(fusion: Any, sinks: dict[int, Group]) -> dict[int, list[Group]]:
    """Per reader's number: the sinks that overwrite an input it reads."""
    result: dict[int, list[Group]] = {}
    readers = readers_of(fusion)
    for number, value in fusion.lowered.writes:
        home = fusion.where.get(value)
        if type(home) is Group and home.number in sinks:
            for reader in readers.get(fusion.lowered.inputs[number], ()):
                if reader is home or reader.number in sinks:
                    continue
                result.setdefault(reader.number, []).append(home)
                if type(reader) is not Group:  # what may become its epilogue too, so that the reader may move to it
                    for consumer in reader.consumers.values():
                        if type(consumer) is Group and consumer is not home and consumer.number not in sinks:
                            result.setdefault(consumer.number, []).append(home)
    return result


class _OpenLaunch:
    """Calls that are independent of each other and alike, or small: what they touch together. checks: has one of them
    index checks?"""

    def __init__(self) -> None:
        self.calls: list[KernelCall] = []
        self.names: set[str] = set()
        self.largest = 0
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.checks = False

    def takes(self, kernel: Any, size: int, reads: set[str], writes: set[str]) -> bool:
        """May a call of ``kernel`` join?"""
        if not (self.names <= {kernel.name} or max(size, self.largest) < SMALL_BYTES):
            return False
        return not (reads & self.writes or writes & self.reads or writes & self.writes)

    def add(self, call: KernelCall, size: int, reads: set[str], writes: set[str], checks: bool) -> None:
        """One more."""
        self.calls.append(call)
        self.names.add(call.kernel.name)
        self.largest = max(self.largest, size)
        self.reads |= reads
        self.writes |= writes
        self.checks = self.checks or checks


class StepList:
    """Collects steps, merges neighbouring launches, and plans the workspace."""

    def __init__(self, fusion: Any) -> None:
        self.fusion = fusion
        self.pool = KernelPool()
        self.final: list[Any] = []
        self.calls: list[tuple[str, Any]] = []
        self._open = _OpenLaunch()
        self._inputs = {v.buffer for v in fusion.lowered.inputs if type(v) is Value}

    def add(self, item: Any, steps: list[Any]) -> None:
        """An external step (with its copies)."""
        self._close()
        self.final.extend(steps)

    def add_epilogue(self, group: Group, built: BuiltKernel, scratch: bool) -> None:
        """A kernel that runs on the rows of the product that was added last."""
        shared, sizes = with_size_parameter(built)
        kernel = self.pool.add(shared)
        self.calls.append((kernel.name, group))
        call = KernelCall(kernel, tuple([b for b in built.buffers if type(b) is str]), sizes)
        step = replace(self.final[-1], epilogue=call)
        self.final[-1] = replace(step, scratch=True) if scratch else step

    def add_copy(self, copy: CopyBuffer) -> None:
        """A copy at the end of the program."""
        self._close()
        self.final.append(copy)

    def add_kernel(self, group: Group, built: BuiltKernel, partial_buffer: Any) -> None:
        """A kernel; it joins the open launch when it is independent of it and alike or small."""
        buffers = tuple([b if type(b) is str else partial_buffer(b.dtype, b.size) for b in built.buffers])
        shared, sizes = with_size_parameter(built)
        kernel = self.pool.add(shared)
        call = KernelCall(kernel, buffers, sizes)
        self.calls.append((kernel.name, group))
        reads = {b for b, p in zip(buffers, kernel.params, strict=True) if p.role != "out"}
        writes = {b for b, p in zip(buffers, kernel.params, strict=True) if p.role != "in"}
        size, checks = _bytes(group), _has_checks(kernel)
        # a bad index must leave the inputs as they were
        risky = (checks or self._open.checks) and not self._inputs.isdisjoint(writes | self._open.writes)
        if risky or not self._open.takes(kernel, size, reads, writes):
            self._close()
        self._open.add(call, size, reads, writes, checks)

    def _close(self) -> None:
        if self._open.calls:
            first: dict[str, int] = {}
            for call in self._open.calls:
                first.setdefault(call.kernel.name, len(first))
            self.final.append(Launch(tuple(sorted(self._open.calls, key=lambda c: first[c.kernel.name]))))
            self._open = _OpenLaunch()

    def plan_memory(self, buffers: dict[str, Buffer]) -> tuple[dict[str, Buffer], Any]:
        """Offsets in the workspace; buffers that nothing uses disappear."""
        self._close()
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for number, step in enumerate(self.final):
            for name in _buffers_of(step):
                first.setdefault(name, number)
                last[name] = number
        lifetimes = []
        for name, buffer in buffers.items():
            if buffer.storage == "workspace" and name in first:
                size = numel(buffer.shape) * buffer.dtype.itemsize
                lifetimes.append(Lifetime(name, size, first[name], last[name]))
        offsets, total = plan_workspace(lifetimes)
        result = {}
        for name, buffer in buffers.items():
            if buffer.storage != "workspace":
                result[name] = buffer
            elif name in offsets:
                result[name] = replace(buffer, offset=offsets[name])
        return result, total


def _has_checks(kernel: Any) -> bool:
    return any(type(s) is BindIndex and s.size is not None for s in walk(kernel.body))


def _bytes(group: Group) -> int:
    total = 0
    for value in (*group.stored, *group.sources) if type(group) is Group else (group.value, *group.value.inputs):
        count = numel(value.shape)
        total += count * value.dtype.itemsize if type(count) is int else SMALL_BYTES
    return total


def _buffers_of(step: Any) -> list[str]:
    if type(step) is Launch:
        return [b for call in step.parts for b in call.buffers]
    if type(step) is CopyBuffer:
        return [step.source.buffer, step.target.buffer]
    if type(step) is HostCall:
        return [o.buffer for o in _operands((step.args, [v for _, v in step.kwargs], step.outs))]
    if type(step) in (Attention, AttentionBackward):
        return [o.buffer for o in step.operands]
    names = [step.left.buffer, step.right.buffer] if type(step) is Gemm else [step.input.buffer, step.weight.buffer]
    return [*names, step.out.buffer, *(step.epilogue.buffers if step.epilogue else ())]


def _operands(value: Any) -> list[Operand]:
    if type(value) is Operand:
        return [value]
    if type(value) in (tuple, list):
        return [o for item in value for o in _operands(item)]
    return []
