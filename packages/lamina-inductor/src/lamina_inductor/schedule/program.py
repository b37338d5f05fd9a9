"""From a graph to a program: lower, fuse, write the kernels, order the steps, plan memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lamina_fx import DType, Graph, TensorSpec

from ..ir.loops import Value
from ..ir.program import Buffer, Check, CopyBuffer, Program, Result
from ..lower.externs import dense_strides
from ..lower.graph import LoweredGraph, lower_graph
from ..lower.layout import choose_layouts
from ..lower.scatters import ScatterPlan
from ..lower.table import elementwise_only, size_of, sizes_of
from .changed import changed_values, may_wait, viewed_results
from .emitter import Unfusable
from .epilogues import attach_epilogues, row_shape
from .fuse import Fusion, fuse
from .groups import Group
from .kernels import BuiltKernel, Target, build_kernel, build_scatter, safe_in_place
from .materialize import materialize
from .order import StepList, order_steps, readers_of
from .row_values import merge_row_values
from .signature import check_of, device_of, size_sources
from .steps import extern_step, whole
from .style import CPU_LOOPS, LoopStyle
from .trace import numel, same_size

__all__ = ["build_program"]


def build_program(
    graph: Graph,
    *,
    name: str = "graph",
    supports: Callable[[str, DType], bool] = elementwise_only,
    loops: LoopStyle = CPU_LOOPS,
) -> Program:
    """Compile a graph of strict primitives to kernels and steps.

    ``supports(op, dtype)``: can the backend print this elementwise operator; what it cannot runs by the operator's
    reference. ``loops``: the loops that the kernels are made of.
    """
    apart: frozenset[int] = frozenset()
    while True:
        try:
            return _build(graph, name, supports, loops, apart)
        except Unfusable as error:  # loops were joined that cannot be: each of their values gets a kernel
            if error.members <= apart:
                return _build(graph, name, supports, replace(loops, fuse_limit=1), apart)
            apart |= error.members


def _build(
    graph: Graph, name: str, supports: Callable[[str, DType], bool], loops: LoopStyle, apart: frozenset[int]
) -> Program:
    lowered = lower_graph(graph, supports=supports)
    choose_layouts(lowered.values, lowered.outputs, loops.images_last)
    fusion = fuse(lowered, fuse_limit=loops.fuse_limit, late=loops.late, apart=apart, row_scans=loops.row_scans)
    materialize(fusion, loops.again)
    if loops.tiles:
        merge_row_values(fusion)
    return _Assembly(name, lowered, fusion, loops).run()


class _Assembly:
    """Gives values buffers and turns groups and external steps into steps."""

    def __init__(self, name: str, lowered: LoweredGraph, fusion: Fusion, loops: LoopStyle) -> None:
        self.name = name
        self.loops = loops
        self.lowered = lowered
        self.fusion = fusion
        self.buffers: dict[str, Buffer] = {}
        self.place: dict[Value, Target] = {}
        self.targets: dict[Value, list[Target]] = {}
        self.results: list[Result] = []
        self.checks: list[Check] = []
        self.copies: list[CopyBuffer] = []
        self.temporaries = 0
        self.epilogues: dict[int, Any] = {}
        self.partners: dict[int, Group] = {}
        self.built: dict[int, BuiltKernel] = {}
        self.changed = changed_values(fusion)
        self.waiting: dict[Value, list[Any]] = {}
        self.done: set[int] = set()
        self.written: dict[Value, list[int]] = {}
        for number, value in lowered.writes:
            self.written.setdefault(value, []).append(number)

    def run(self) -> Program:
        self._inputs()
        self._outputs()
        self._views()
        steps = StepList(self.fusion)
        order, sinks = order_steps(self.fusion, self.loops.tiles)
        order, self.epilogues = attach_epilogues(order, sinks)
        groups = {group.number: group for group in self.fusion.groups}
        self.partners = {step.number: groups[number] for number, step in self.epilogues.items()}
        position = {item.number: k for k, item in enumerate(order)}
        writes = self._direct_writes(position)
        for item in order:
            self._add_step(steps, item, writes)
        for number, value in self.lowered.writes:
            if writes.get(number) is not value:
                self._copy_back(number, value)
        return self._finish(steps)

    # -- buffers ---------------------------------------------------------------------------------------

    def _inputs(self) -> None:
        for value in self.lowered.values:
            if value.kind == "buffer":
                kind, number = value.attrs
                self._buffer(value, value.buffer, kind, value.strides, number)

    def _buffer(self, value: Value, name: str, storage: str, strides: Any, index: int = 0) -> Target:
        self.buffers[name] = Buffer(name, value.dtype, value.shape, strides, storage, index)
        target = Target(name, value.dtype, strides)
        self.place.setdefault(value, target)
        return target

    def _outputs(self) -> None:
        """Each result has memory of its own: equal values, or an input's, are copied (the caller may write to them)."""
        number = 0
        for value, spec in zip(self.lowered.outputs, self.lowered.output_specs, strict=True):
            if type(value) is not Value:
                self.results.append(Result("scalar", value))
            else:
                self._output(number, value, spec)
                number += 1

    def _output(self, number: int, value: Value, spec: TensorSpec) -> None:
        name = f"out{number}"
        strides = sizes_of(spec.strides)
        target = self._buffer(value, name, "output", strides, number)
        self.results.append(Result("buffer", name))
        if value.kind == "buffer":  # a constant or an input
            source = whole(self.place[value], value)
            self.copies.append(CopyBuffer(source, whole(target, value)))
        else:
            self.targets.setdefault(value, []).append(target)

    def _views(self) -> None:
        """Scatters whose results are given away reshaped lie there at once."""
        results = {v: t[0] for v, t in self.targets.items() if len(t) == 1 and v not in self.written}
        for value, group in viewed_results(self.fusion, results).items():
            if value in self.place:
                continue
            (result,) = group.stored
            self.place[value] = Target(self.place[result].buffer, value.dtype, dense_strides(value))
            self.done.add(group.number)

    def _temporary(self, value: Value) -> Target:
        self.temporaries += 1
        return self._buffer(value, f"t{self.temporaries}", "workspace", dense_strides(value))

    def _new_place(self, value: Value) -> Target:
        """A place for what no output is: that of the scatter that changes it, or a temporary."""
        last = value
        while last in self.changed:
            last = self.changed[last]
        if last is value or last not in self.place:
            target = self._temporary(value)
        else:
            target = self.place[value] = self.place[last]
        while value in self.changed:
            value = self.changed[value]
            self.place[value] = target
        return target

    def _input_target(self, number: int) -> Target:
        return self.place[self.lowered.inputs[number]]

    # -- write-backs -----------------------------------------------------------------------------------

    def _direct_writes(self, position: dict[int, int]) -> dict[int, Value]:
        """Write-backs whose value's kernel may store into the input at once: nothing reads the input later."""
        readers = readers_of(self.fusion)
        result: dict[int, Value] = {}
        for number, value in self.lowered.writes:
            home = self.fusion.where.get(value)
            input = self.lowered.inputs[number]
            if type(home) is not Group or value not in home.stored or number in result:
                continue
            last = max((position[r.number] for r in readers.get(input, ())), default=-1)
            if last <= position[home.number]:
                result[number] = value
        return result

    def _copy_back(self, number: int, value: Value) -> None:
        target = whole(self._input_target(number), self.lowered.inputs[number])
        place = self.place[value]
        self.copies.append(CopyBuffer(whole(place, value), target))

    # -- steps -----------------------------------------------------------------------------------------

    def _add_step(self, steps: StepList, item: Any, writes: dict[int, Value]) -> None:
        if type(item) is Group:
            if item.number not in self.done:
                self._add_group(steps, item, writes)
            return
        partner = self.partners.get(item.number)
        if partner is not None:
            self._share_memory(item, partner, writes)
        for value in (item.value, *item.value.outputs):
            if value not in self.place and not value.outputs and self._is_read(value):
                self._new_place(value)
        if type(item.value.attrs) is ScatterPlan:
            self._add_scatter(steps, item)
        else:
            steps.add(item, extern_step(item.value, self.place, self.targets, self.fusion))

    def _is_read(self, value: Value) -> bool:
        """A result of a step with several that nothing reads gets no memory."""
        return value.kind != "item" or bool(value.users) or any(v is value for _, v in self.lowered.writes)

    def _add_group(self, steps: StepList, group: Group, writes: dict[int, Value]) -> None:
        built = self.built.pop(group.number, None) or self._build(group, writes)
        follows = bool(steps.final) and hasattr(steps.final[-1], "epilogue")  # and not a copy of the product
        fits = group.number in self.epilogues and follows and self._is_epilogue(group, built)
        if self.loops.tiles and not fits and self.epilogues.pop(group.number, None) is not None:
            built = self._build(group, writes)
        for source, dim in built.checks:
            self.checks.append(check_of(len(self.checks) + 1, source, dim))
        if fits:
            product = self.epilogues[group.number]
            buffer = self.place[product.value].buffer
            stored = {t.buffer for v in group.stored for t in self.targets.get(v, ())}
            private = len(product.consumers) == 1 and (self.loops.tiles or buffer not in stored)
            steps.add_epilogue(group, built, scratch=private and product.value not in self.targets)
        else:
            steps.add_kernel(group, built, self.partial_buffer)

    def _share_memory(self, step: Any, group: Group, writes: dict[int, Value]) -> None:
        """Let a product that only its epilogue reads lie where the epilogue stores a result of the same size."""
        value = step.value
        if len(step.consumers) != 1 or value in self.place:
            return
        self._assign(group, writes)
        for result in group.stored:
            for target in self.targets.get(result, ()):
                dense = target.strides == dense_strides(result) and same_size(numel(result.shape), numel(value.shape))
                if dense and target.dtype is value.dtype:
                    self.place[value] = Target(target.buffer, value.dtype, dense_strides(value))
                    built = self._build(group, writes)
                    if safe_in_place(built, target.buffer):
                        self.built[group.number] = built
                    else:
                        del self.place[value]
                    return

    def _add_scatter(self, steps: StepList, item: Any) -> None:
        value = item.value
        known = set[Value]()
        for step in (*self.waiting.get(value, ()), item):
            known.update(self.fusion.roots_of(step.value), step.sources)

        def place(item: Value) -> Target | None:
            return self.place.get(item) if item in known else None

        before = self.waiting.pop(value, [])
        following = self.changed.get(value)
        if following is not None and self.loops.tiles and may_wait(self.fusion, value, following, len(before)):
            self.waiting[following] = [*before, item]
            return
        values = tuple([step.value for step in before])
        in_place = self.changed.get((*values, value)[0].inputs[0]) is not None
        built = build_scatter(
            value, place, self.place[value], len(self.checks) + 1, self.loops.scatter, in_place, values
        )
        for source, dim in built.checks:
            self.checks.append(check_of(len(self.checks) + 1, source, dim))
        steps.add_kernel(item, built, self.partial_buffer)
        for target in self.targets.get(value, ()):
            if target.buffer != self.place[value].buffer:
                steps.add(item, [CopyBuffer(whole(self.place[value], value), whole(target, value))])

    def _is_epilogue(self, group: Group, built: BuiltKernel) -> bool:
        """Also: other rows or tiles of the product may still read what the kernel would overwrite."""
        value = self.epilogues[group.number].value
        operands = {self.place[self.fusion.roots[value, item]].buffer for item in value.inputs}
        params = zip(built.kernel.params, built.buffers, strict=True)
        if any(p.role != "in" and b in operands for p, b in params):
            return False
        shape = row_shape(value)
        return shape is not None and self.loops.epilogue(built, self.place[value].buffer, *shape)

    def _direct(self, group: Group, writes: dict[int, Value]) -> dict[Value, list[Target]]:
        result: dict[Value, list[Target]] = {}
        for value in group.stored:
            numbers = [n for n in self.written.get(value, ()) if writes.get(n) is value]
            if numbers:
                result[value] = [self._input_target(n) for n in numbers]
        return result

    def _assign(self, group: Group, writes: dict[int, Value]) -> None:
        """Give what the group stores a place: an output or input that it is written to anyway, or a temporary."""
        direct = self._direct(group, writes)
        for value in group.stored:
            if value not in self.place:
                if value in direct:
                    self.place[value] = direct[value][0]
                else:
                    self.targets[value] = [self._new_place(value)]

    def _build(self, group: Group, writes: dict[int, Value]) -> BuiltKernel:
        """The group's kernel; write-backs that are not safe in place are struck off ``writes`` and copied at the
        end. So are those of a kernel with index checks: a bad index must leave the inputs as they were."""
        self._assign(group, writes)
        direct = self._direct(group, writes)
        product = self.epilogues.get(group.number)
        shape = None if product is None else row_shape(product.value)
        columns = None if shape is None else shape[1]
        built = build_kernel(
            group,
            self.place.get,
            lambda value: self.targets.get(value, []) + direct.get(value, []),
            len(self.checks) + 1,
            columns,
            self.loops.nest,
        )
        unsafe = {
            n
            for v in direct
            for n in self.written[v]
            if writes.get(n) is v and (built.checks or not safe_in_place(built, self._input_target(n).buffer))
        }
        if not unsafe:
            return built
        for number in unsafe:
            value = writes.pop(number)
            if self.place[value].buffer == self._input_target(number).buffer:
                del self.place[value]
        return self._build(group, writes)

    def partial_buffer(self, dtype: DType, size: Any) -> str:
        """A temporary for partial results."""
        self.temporaries += 1
        name = f"t{self.temporaries}"
        self.buffers[name] = Buffer(name, dtype, (size_of(size),), (1,), "workspace")
        return name

    # -- the end ---------------------------------------------------------------------------------------

    def _finish(self, steps: StepList) -> Program:
        for copy in self.copies:
            steps.add_copy(copy)
        buffers, workspace = steps.plan_memory(self.buffers)
        return Program(
            name=self.name,
            inputs=tuple([self.buffers[v.buffer] if type(v) is Value else None for v in self.lowered.inputs]),
            buffers=buffers,
            sizes=size_sources(self.lowered),
            steps=tuple(steps.final),
            outputs=tuple(self.results),
            workspace=workspace,
            device=device_of(self.lowered),
            constants=tuple([array for _, array in self.lowered.constants]),
            checks=tuple(self.checks),
            writes=tuple(dict.fromkeys(number for number, _ in self.lowered.writes)),
            meta={"reasons": tuple(self.fusion.reasons), "calls": tuple(steps.calls)},
        )
