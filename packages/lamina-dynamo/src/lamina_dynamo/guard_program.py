"""From guards to the register program that C++ evaluates (csrc/guards.h).

Each source is fetched once, however many guards read it; the guards come in the order of their cost, those that may
run Python last.

>>> from .guard import GuardSet, type_is
>>> from .source import Local
>>> def f(x): pass
>>> len(compile_guards(GuardSet([type_is(Local("x"), int)]), f.__code__))
2
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from types import CodeType, GetSetDescriptorType

from lamina_fx import dtype_of

from . import _core
from .guard import Constant, Guard, GuardKind, GuardSet, Identity, TensorFacts
from .shape_program import shape_words
from .source import Source, TensorProperty, base_of, chain

__all__ = ["can_fetch", "compile_guards"]

_OPCODES = {
    name: number
    for number, name in enumerate((
        "local", "global", "builtin", "free_cell", "cell_contents", "attr", "instance_attr", "type_attr", "type",
        "item", "dict_item", "dict_keys", "get_item", "function_code", "function_globals", "function_default",
        "function_kwdefault", "function_cell", "method_function", "method_self", "const", "weak", "module",
        "tensor_property", "dict_values", "super_attr", "grad",
    ))
}  # fmt: skip
_FIRST_CHECK = 32
_PROPERTIES = {"size": 1, "stride": 2, "storage_offset": 3, "numel": 4, "ndim": 5}
_BY_NUMBER = frozenset({"item", "function_default", "function_cell"})
_DEVICE_KINDS = {"cpu": 0, "cuda": 1, "meta": 2}
_MAY_RUN_PYTHON = frozenset({GuardKind.ATTR, GuardKind.AMBIENT, GuardKind.PYTHON})


def can_fetch(source: Source) -> bool:
    """Whether a guard program can read it (not temporaries of emitted code)."""
    return all(step.opcode in _OPCODES for step in chain(source))


def compile_guards(guards: GuardSet, code: CodeType, inputs: Sequence[Source] = ()) -> _core.GuardProgram:
    """The program for frames of `code`. A failing evaluation gives the position of a guard in `guards`.

    Args:
        inputs: what the new code finds as a tuple in its first variable behind the arguments.

    Raises:
        KeyError: a guard reads a local or free variable that `code` does not have.
        TypeError: a guard can not be evaluated in C++ (a temporary, an unknown step).
    """
    learn_numpy()
    writer = _Writer(code)
    listed = list(guards)
    writer.tensors.update(g.source for g in listed if g.kind is GuardKind.TENSOR and _grad_is_a_field(g))
    order = sorted(range(len(listed)), key=lambda k: (writer.runs_python(listed[k]), listed[k].kind, k))
    for index in order:
        writer.write(listed[index], index)
    writer.program.set_inputs([writer.register(source) for source in inputs])
    return writer.program


def _grad_is_a_field(guard: Guard) -> bool:
    """Whether C++ can read the gradient of the guarded tensor from the tensor itself."""
    kind = guard.expected.kind.get()  # type: ignore[attr-defined]
    descriptor = inspect.getattr_static(kind, "grad", None)
    return isinstance(descriptor, GetSetDescriptorType) and _core.learn_tensor_type(kind)


class _Writer:
    """Writes one program: registers by source, one method per kind of check that needs more than an operand."""

    def __init__(self, code: CodeType) -> None:
        self.program = _core.GuardProgram()
        self.registers: dict[Source, int] = {}
        self.tensors: set[Source] = set()
        """Those whose gradient is a field that C++ reads."""
        self.guard = 0
        self._protocol: dict[Source, bool] = {}
        self._facts: dict[TensorFacts, int] = {}
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self.slots = {name: k for k, name in enumerate(code.co_varnames[:count])}
        self.free = {name: k for k, name in enumerate(code.co_freevars)}

    def add(
        self,
        op: int,
        dst: int = -1,
        src: int = -1,
        *,
        number: int = 0,
        value: object = None,
        weak: object = None,
        regs: tuple[int, ...] = (),
        extra: int = -1,
        keep_none: bool = False,
    ) -> None:
        """Append an instruction; `keep_none`: None is an operand, not the lack of one."""
        self.program.add(op, dst, src, self.guard, number, value, weak, list(regs), extra, keep_none)

    def runs_python(self, guard: Guard) -> bool:
        """Whether evaluating the guard may call Python code."""
        return guard.kind in _MAY_RUN_PYTHON or any(map(self._has_protocol_step, guard.sources))

    def _has_protocol_step(self, source: Source) -> bool:
        answer = self._protocol.get(source)
        if answer is None:
            base = base_of(source)
            answer = self._is_protocol(source) or (base is not None and self._has_protocol_step(base))
            self._protocol[source] = answer
        return answer

    def _is_protocol(self, step: Source) -> bool:
        return step.opcode in ("attr", "get_item") or (step.opcode == "grad" and base_of(step) not in self.tensors)

    # ---- reads -------------------------------------------------------------------------------------------------

    def register(self, source: Source) -> int:
        """The register that holds the source's value, with the code that fetches it."""
        found = self.registers.get(source)
        if found is not None:
            return found
        base = base_of(source)
        src = -1 if base is None else self.register(base)
        dst = self.registers[source] = len(self.registers)
        name, operand = source.step()
        if name == "grad" and base not in self.tensors:
            name, operand = "attr", "grad"
        op = _OPCODES[name]
        if name == "local":
            self.add(op, dst, number=self.slots[operand])  # type: ignore[index]
        elif name == "free_cell":
            self.add(op, dst, number=self.free[operand])  # type: ignore[index]
        elif name in _BY_NUMBER:
            self.add(op, dst, src, number=operand)  # type: ignore[arg-type]
        elif name == "tensor_property":
            attribute, dim = operand  # type: ignore[misc]
            self.add(op, dst, src, number=_PROPERTIES[attribute] << 32 | dim)
        else:
            text = sys.intern(operand) if type(operand) is str else operand
            self.add(op, dst, src, value=text, keep_none=name in ("const", "dict_item", "get_item"))
        return dst

    # ---- checks ------------------------------------------------------------------------------------------------

    def write(self, guard: Guard, index: int) -> None:
        """Append the instructions of one guard."""
        self.guard = index
        kind = guard.kind
        special = _SPECIAL.get(kind)
        if special is not None:
            special(self, guard)
            return
        op = _FIRST_CHECK + kind
        src = self.register(guard.sources[0])
        expected = guard.expected
        if isinstance(expected, Identity):
            self.identity(op, src, expected)
        elif kind is GuardKind.EQUALS:
            self.add(op, src=src, value=expected.value, keep_none=True)  # type: ignore[attr-defined]
        elif kind is GuardKind.PYTHON:
            self.add(op, src=src, value=expected)
        else:  # NONE, CELL, LENGTH
            self.add(op, src=src, number=int(expected))  # type: ignore[call-overload]

    def identity(self, op: int, src: int, expected: Identity, extra: int = -1) -> None:
        """A check of an address, with the weak reference that keeps the address from meaning another object."""
        value = expected.get()
        if value is None and expected.weak:  # freed before it was compiled: a check that never holds
            value = expected.held
        self.add(op, src=src, value=value, weak=expected.held if expected.weak else None, extra=extra, keep_none=True)

    def tensor(self, guard: Guard) -> None:
        """Type, dtype, device, sizes, strides and flags of a tensor."""
        facts: TensorFacts = guard.expected  # type: ignore[assignment]
        src = self.register(guard.source)
        if not _core.learn_tensor_type(facts.kind.get()):
            self.array(guard)
            return
        self.identity(_FIRST_CHECK + GuardKind.TENSOR, src, facts.kind, self.facts(facts))

    def facts(self, facts: TensorFacts) -> int:
        """The index of the facts in the program: tensors that look alike share them."""
        known = self._facts.get(facts)
        if known is not None:
            return known
        device, _, number = facts.device.partition(":")
        strides = () if facts.strides is None else facts.strides
        index = self._facts[facts] = self.program.add_tensor(
            [-1 if s is None else s for s in facts.shape],
            [-1 if s is None else s for s in strides],
            facts.strides is not None,
            dtype_of(facts.dtype).code,
            _DEVICE_KINDS[device],
            int(number or 0),
            facts.flag_mask,
            facts.flag_values,
        )
        return index

    def array(self, guard: Guard) -> None:
        """The type, then the layout: in C for NumPy's arrays, by attributes for others."""
        facts: TensorFacts = guard.expected  # type: ignore[assignment]
        src = self.register(guard.source)
        self.identity(_FIRST_CHECK + GuardKind.TYPE, src, facts.kind)
        dtype = numpy_dtype(facts)
        if dtype is None:
            self.add(_FIRST_CHECK + GuardKind.PYTHON, src=src, value=_ByAttributes(facts))
            return
        op = _FIRST_CHECK + GuardKind.ARRAY
        self.add(op, src=src, value=dtype, number=dtype.itemsize, extra=self.facts(facts))  # type: ignore[attr-defined]

    def keys(self, guard: Guard) -> None:
        """The keys of a dict: constants by value, others by weak reference or identity."""
        wanted: tuple[Constant | Identity, ...] = guard.expected  # type: ignore[assignment]
        keys = tuple(k.value if isinstance(k, Constant) else k.held for k in wanted)
        self.add(_FIRST_CHECK + GuardKind.DICT_KEYS, src=self.register(guard.source), value=keys)

    def has_key(self, guard: Guard) -> None:
        """A key of a dict. A key that is no constant is held: hashing needs it alive."""
        key, present = guard.expected  # type: ignore[misc]
        value = key.value if isinstance(key, Constant) else key.get()
        op = _FIRST_CHECK + GuardKind.DICT_HAS
        self.add(op, src=self.register(guard.source), value=value, number=present, keep_none=True)

    def absent(self, guard: Guard) -> None:
        """A name that the globals lack."""
        self.add(_FIRST_CHECK + GuardKind.NAME_ABSENT, value=sys.intern(guard.expected))  # type: ignore[arg-type]

    def attribute(self, guard: Guard) -> None:
        """Presence of an attribute: bit 0 wanted, bit 1 only in the instance's dict."""
        name, present, raw = guard.expected  # type: ignore[misc]
        op = _FIRST_CHECK + GuardKind.ATTR
        self.add(op, src=self.register(guard.source), value=sys.intern(name), number=int(present) | int(raw) << 1)

    def ambient(self, guard: Guard) -> None:
        """Ambient state, from its int cell if it has one."""
        state, wanted = guard.expected  # type: ignore[misc]
        op = _FIRST_CHECK + GuardKind.AMBIENT
        value = wanted.value if isinstance(wanted, Constant) else wanted.held
        if state.cell is not None and isinstance(value, int):
            self.add(op, value=(state.cell, value), number=1, extra=int(value))
        else:
            self.add(op, value=(state.read, value))

    def relation(self, guard: Guard) -> None:
        """A relation between several values."""
        regs = tuple(self.register(source) for source in guard.sources)
        number = guard.expected if guard.kind is GuardKind.OVERLAP else 0
        self.add(_FIRST_CHECK + guard.kind, regs=regs, number=number)  # type: ignore[arg-type]

    def shape(self, guard: Guard) -> None:
        """A condition over sizes: they are read from the tensors without making Python ints."""
        text, names = guard.expected  # type: ignore[misc]
        inputs = []
        for source in guard.sources:
            if isinstance(source, TensorProperty):
                inputs.append((self.register(source.base), _PROPERTIES[source.attribute], source.dim))
            else:
                inputs.append((self.register(source), 0, 0))
        index = self.program.add_shape(inputs, shape_words(text, names))
        self.add(_FIRST_CHECK + GuardKind.SHAPE, extra=index)


_SPECIAL: dict[GuardKind, Callable[[_Writer, Guard], None]] = {
    GuardKind.TENSOR: _Writer.tensor,
    GuardKind.ARRAY: _Writer.array,
    GuardKind.DICT_KEYS: _Writer.keys,
    GuardKind.DICT_HAS: _Writer.has_key,
    GuardKind.NAME_ABSENT: _Writer.absent,
    GuardKind.ATTR: _Writer.attribute,
    GuardKind.AMBIENT: _Writer.ambient,
    GuardKind.SAME: _Writer.relation,
    GuardKind.DISTINCT: _Writer.relation,
    GuardKind.NO_OVERLAP: _Writer.relation,
    GuardKind.OVERLAP: _Writer.relation,
    GuardKind.SHAPE: _Writer.shape,
}


# ---- arrays of other kinds ------------------------------------------------------------------------------------------

_LEARNED: dict[int, bool] = {}


def learn_numpy() -> bool:
    """Let C++ read NumPy's arrays, if NumPy is loaded (it is not loaded for this) and its arrays look as expected."""
    numpy = sys.modules.get("numpy")
    ndarray = getattr(numpy, "ndarray", None)
    if numpy is None or ndarray is None:
        return False
    if id(ndarray) not in _LEARNED:
        _LEARNED[id(ndarray)] = _core.learn_ndarray(ndarray, numpy.zeros((2, 3), numpy.float32).T)
    return _LEARNED[id(ndarray)]


def numpy_dtype(facts: TensorFacts) -> object:
    """The NumPy dtype of these facts when C++ can read arrays of this type; None otherwise."""
    kind = facts.kind.get()
    numpy = sys.modules.get("numpy")
    if numpy is None or not learn_numpy() or not isinstance(kind, type) or not issubclass(kind, numpy.ndarray):
        return None
    try:
        return numpy.dtype(str(facts.dtype))
    except TypeError:  # a type of ml_dtypes while ml_dtypes is not imported
        return None


class _ByAttributes:
    """Compares an array's dtype, shape and strides by its attributes: for arrays that C++ can not read."""

    __slots__ = ("facts",)

    def __init__(self, facts: TensorFacts) -> None:
        self.facts = facts

    def __call__(self, value: object) -> bool:
        facts = self.facts
        shape = tuple(value.shape)  # type: ignore[attr-defined]
        if str(value.dtype).rpartition(".")[2] != facts.dtype or len(shape) != len(facts.shape):  # type: ignore[attr-defined]
            return False
        if any(want is not None and have != want for have, want in zip(shape, facts.shape, strict=True)):
            return False
        strides = getattr(value, "strides", None)
        if facts.strides is None or strides is None:
            return True
        size = value.itemsize  # type: ignore[attr-defined]
        return all(
            n == 1 or want is None or have == want * size
            for n, have, want in zip(shape, strides, facts.strides, strict=True)
        )
